"""Settings of the C library for training on a CPU. They affect speed and memory, but not results.

A training step allocates the same large tensors repeatedly. By default, glibc requests each block of more than 32 MB
from the kernel and returns free memory at the end of the heap; the kernel then clears every page before it is reused.
With these settings, freed memory stays with the process for the next step. `docs/performance.md` has the figures.
"""

import ctypes
import os
import platform

# Names and numbers of <malloc.h>.
_SETTINGS = {
    "MMAP_MAX": (-4, 0),  # keep all blocks in the heap, whatever their size; none gets its own mapping
    "TRIM_THRESHOLD": (-1, -1),  # never return the free end of the heap to the kernel
    "TOP_PAD": (-2, 64 << 20),  # grow the heap by 64 MB more than needed, so that it grows rarely
}


def keep_freed_memory() -> bool:
    """Let this process keep freed memory. False if the C library is not glibc, or the environment configures malloc."""
    own = any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ)
    if own or platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    taken = [mallopt(number, value) == 1 for number, value in _SETTINGS.values()]
    return all(taken)
