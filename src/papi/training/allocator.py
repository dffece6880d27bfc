"""Settings of the C library for a process that trains on a CPU. They change speed and memory, never a result.

A training step allocates the same large tensors again and again. glibc asks the kernel for each block of more than
32 MB anew, and gives back what lies free at the end of the heap; the kernel then clears every page before it is used
again. With these settings what was once freed stays with the process, ready for the next step. `docs/performance.md`
has the figures.
"""

import ctypes
import os
import platform

# Names and numbers of <malloc.h>.
_SETTINGS = {
    "MMAP_MAX": (-4, 0),  # no block is a mapping of its own: all lie in the heap, whatever their size
    "TRIM_THRESHOLD": (-1, -1),  # the free end of the heap is never given back
    "TOP_PAD": (-2, 64 << 20),  # the heap grows by 64 MB more than is needed, so it seldom has to
}


def keep_freed_memory() -> bool:
    """Let this process keep what it frees. False where the C library is not glibc, or the environment has settings."""
    own = any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ)
    if own or platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    taken = [mallopt(number, value) == 1 for number, value in _SETTINGS.values()]
    return all(taken)
