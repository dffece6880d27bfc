"""Readers and writers for the formats of annotation tools, one module per tool.

Imports the entries and tables of `own`, and no other part of it. No module of a tool imports another.
"""
