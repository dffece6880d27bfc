"""Where the package keeps files that nobody has named."""

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_dir() -> Path:
    """The folder for what can be made again: $PAPI_CACHE if it is set, else `papi` in the user's cache folder."""
    named = os.environ.get("PAPI_CACHE")
    return Path(named) if named else user_cache_path("papi", appauthor=False)
