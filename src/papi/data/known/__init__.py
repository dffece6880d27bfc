"""The published datasets: the table of them, download, and readers of their files.

Imports `images` and `own`, whose folders and tables some of them share.
"""
