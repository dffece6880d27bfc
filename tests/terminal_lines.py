"""Lines that a reader types into a terminal, typed in a folder, with the `papi` and `python` of the tests."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path


def follow(lines: Iterable[str], folder: Path) -> str:
    """Run shell commands one after another in a folder, and return what they print. All must succeed."""
    tools = folder.parent / f"{folder.name}-tools"
    tools.mkdir()
    for name, words in (("python", ""), ("papi", "-m papi ")):
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
        (tools / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    told = []
    for line in lines:
        done = subprocess.run(
            line, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        told.append(done.stdout)
    return "".join(told)
