"""`python -m papi`, and `torchrun … -m papi`."""

import os
import sys

from papi.cli import main


def _main_of_many() -> None:
    """Run a command as one of many processes, and exit without shutting torch down.

    During shutdown, torch's communication threads can abort the process after everything is written, and `torchrun`
    would report a failure.
    """
    code: object = 0
    try:
        main()
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    if "LOCAL_WORLD_SIZE" in os.environ:  # set by `torchrun`
        _main_of_many()
    else:
        main()
