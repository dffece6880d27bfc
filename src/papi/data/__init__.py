"""Datasets, candidate sets and batches.

Imports the foundations and `methods` (the form of packed candidate sets). Inside: `images` and `views` know no
other room, `own` reads with `images`, `known` with both; `load` chooses between the two, and `loader` makes batches.
"""
