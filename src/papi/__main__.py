"""`python -m papi`, and `torchrun … -m papi`."""

import os
import sys

from papi.cli import main


def _main_of_many() -> None:
    """Run a command as one of many processes, and leave without taking torch apart.

    Its threads for messages can end the process with an abort while the interpreter shuts down, after everything is
    written; `torchrun` would take that for a failure.
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
    if "LOCAL_WORLD_SIZE" in os.environ:  # as `torchrun` sets it
        _main_of_many()
    else:
        main()
