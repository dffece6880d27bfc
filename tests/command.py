"""The command `papi`: in the test's own process, and in a process of its own where its memory is measured."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import papi.cli

NEEDS_PROC = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to ask for peak memory")


def papi_exit_code(*arguments: object) -> int:
    """Run a command and return its exit code; what it says goes to the captured output."""
    try:
        papi.cli.main([str(argument) for argument in arguments])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def peak_megabytes(*arguments: object) -> float:
    """The largest memory a command ever held. Asked of the kernel: ru_maxrss would count the test's own memory, too."""
    code = (
        "import re, sys, papi.cli\n"
        "try: papi.cli.main()\n"
        "finally: print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    return int(done.stderr.split()[-1]) / 1024
