"""`papi doctor`: check that a run folder is intact, and explain how to repair it."""

import sys
from pathlib import Path

from papi.cli.terminal import make_console


def doctor(run: Path, /) -> None:
    """Check every file in a run folder and explain how to repair any damage.

    Parameters
    ----------
    run
        Folder of a run, finished or not.
    """
    from papi.runs.doctor import check_up  # imports torch, which `papi doctor --help` does not need

    found = check_up(run)
    console = make_console()
    for finding in found.findings:
        mark = "error" if finding.wrong else "ok"
        console.print(f"{mark:6} {finding.part + ':':12} {finding.says}", soft_wrap=True)
    console.print(found.advice, style="bold", soft_wrap=True)
    if not found.healthy:
        sys.exit(1)
