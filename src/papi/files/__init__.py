"""Files that are whole or refused, and where they lie: atomic writes, locks, archives of arrays, the cache folder.

Imports nothing of the package but errors.
"""
