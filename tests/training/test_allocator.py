"""The C library's settings: what was freed is used again without asking the kernel."""

import os
import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the settings are those of glibc")

# Page faults of the second of two strings of 80 MB, where the first was freed; and what the function says.
CODE = """
import resource, sys
from papi.training.allocator import keep_freed_memory
said = keep_freed_memory() if sys.argv[1] == "keep" else None
b"x" * 80_000_000
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
b"x" * 80_000_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, said)
"""


def run(mode: str, **environment: str) -> tuple[int, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run(
        [sys.executable, "-c", CODE, mode], env=clean | environment, check=True, capture_output=True, text=True
    )
    faults, said = done.stdout.split()
    return int(faults), said


def test_freed_memory_stays() -> None:
    pages = 80_000_000 // os.sysconf("SC_PAGE_SIZE")
    assert run("default")[0] > pages / 2
    assert run("keep") == (pytest.approx(0, abs=pages / 20), "True")


def test_settings_of_the_environment_count() -> None:
    assert run("keep", MALLOC_ARENA_MAX="2")[1] == "False"
