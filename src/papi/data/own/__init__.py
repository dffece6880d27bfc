"""Readers for your own data: folders of images, tables, votes, arrays and feature tables.

Imports `images` and `dataset`.
"""
