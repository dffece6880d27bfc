"""Prepares a run from its configuration: data and candidate sets, settings, and the method with its network.

Imports `training` and everything above it.
"""
