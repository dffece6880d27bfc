"""Safe file access: reading untrusted files, atomic writes, locks, and the places of the cache.

Imports only `errors`.
"""
