"""Libraries that build encoders by name and download their weights: one module for each.

Imports `errors`, `files`, and from `networks` the preparation of photos and the reading of weights. The libraries are
extras, loaded when one of their encoders is requested.
"""
