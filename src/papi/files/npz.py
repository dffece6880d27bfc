"""Archives of arrays, whole or damaged."""

import errno
from pathlib import Path

import numpy as np


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, which may hold no objects: those could run code.

    A file that cannot be read raises OSError. A damaged one raises ValueError, wherever its bytes happen to fail: in
    zipfile, zlib, tokenize or numpy.
    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            return dict(arrays)
    except Exception as error:
        # A damaged directory of the archive can lead to a place before the file begins, which is EINVAL.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise ValueError(str(error)) from error
