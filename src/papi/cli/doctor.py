"""`papi doctor`: whether a run folder is whole, and what can be done if it is not."""

import sys
from pathlib import Path

from papi.cli.terminal import make_console


def doctor(run: Path, /) -> None:
    """Check every file of a run folder and say how to repair what is damaged.

    Parameters
    ----------
    run
        Folder of a run, finished or not.
    """
    from papi.runs.doctor import check_up  # loads torch: `papi doctor --help` does without

    found = check_up(run)
    console = make_console()
    for finding in found.findings:
        mark = "wrong" if finding.wrong else "ok"
        console.print(f"{mark:6} {finding.part + ':':12} {finding.says}", soft_wrap=True)
    console.print(found.advice, style="bold", soft_wrap=True)
    if not found.healthy:
        sys.exit(1)
