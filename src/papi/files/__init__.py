"""Files that are whole or refused, and where they lie: reading what anybody wrote, atomic writes, locks, the cache.

Imports nothing of the package but errors.
"""
