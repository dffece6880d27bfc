"""Weak and strong views of whole batches, of images and of features.

Imports the form of a dataset.
"""
