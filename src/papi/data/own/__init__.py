"""What people bring: folders of images, tables, votes, arrays, feature tables.

Imports `images` and the form of a dataset.
"""
