"""The known datasets: their table, downloads, and readers for their files.

Imports `images` and `own`, whose folder and table formats some of them use.
"""
