"""`papi doctor`: whether a run folder is whole, and what can be done if it is not."""

import sys
from pathlib import Path

from papi.cli.terminal import make_console


def doctor(run: Path, /) -> None:
    """Check everything in a run folder and say what can be done. Nothing is changed.

    The exit code is 0 if all is well, 1 if something is damaged or missing, 2 if there is no run.

    Parameters
    ----------
    run
        Folder of a run, finished or not.
    """
    from papi.runs.doctor import check_up

    found = check_up(run)
    console = make_console()
    for finding in found.findings:
        mark = "wrong" if finding.wrong else "ok"
        console.print(f"{mark:6} {finding.part + ':':12} {finding.says}", soft_wrap=True)
    console.print(found.advice, style="bold", soft_wrap=True)
    if not found.healthy:
        sys.exit(1)
