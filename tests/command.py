"""The command `papi` within the test's own process, for tests that start it often."""

import papi.cli


def papi_exit_code(*arguments: object) -> int:
    """Run a command and return its exit code; what it says goes to the captured output."""
    try:
        papi.cli.main([str(argument) for argument in arguments])
    except SystemExit as end:
        return int(end.code or 0)
    return 0
