"""What annotation tools export, one module for each: what every annotator says about every image.

Imports the entries and tables of `own`, and no other part of it. No module of a tool imports another.
"""
