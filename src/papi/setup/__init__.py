"""From what a person asked for to what trains: data and candidate sets, settings, the method with its network.

Imports `training` and everything above it.
"""
