"""Libraries that build encoders from a name, and fetch their weights: one module for each.

Imports `errors`, `files`, and from `networks` how photos are prepared and weights are read. The libraries are extras,
loaded when an encoder of theirs is asked for.
"""
