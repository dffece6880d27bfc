"""Files that are whole or refused: atomic writes, locks, archives of arrays.

Imports nothing of the package but errors.
"""
