"""A run on disk: its folder, what stands in its files, identity, checkpoints, the model, labels, decisions, doctor.

Imports `files`, `networks` and `data`, and what a method is; it trains nothing.
"""
