"""Image files: decoding, and the memory-mapped cache of decoded images.

Imports the form of a dataset.
"""
