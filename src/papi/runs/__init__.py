"""A run on disk: its folder and files, identity, checkpoints, the model, labels, decisions and the doctor.

Imports `files`, `networks`, `data` and the base class of methods. It does not train.
"""
