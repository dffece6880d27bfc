"""Archives of arrays, whole or damaged."""

from pathlib import Path

import numpy as np


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, which may hold no objects: those could run code.

    A file that cannot be opened is an OSError, a damaged one a ValueError: by itself it fails in zipfile, zlib,
    tokenize or numpy, as its bytes happen to be.
    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            return dict(arrays)
    except OSError:
        raise
    except Exception as error:
        raise ValueError(str(error)) from error
