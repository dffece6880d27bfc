"""Image files: decoding, and the memory-mapped cache of what was decoded.

Imports the form of a dataset.
"""
