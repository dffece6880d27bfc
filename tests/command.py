"""The command `papi` within the test's own process, for tests that start it often."""

import papi.cli


def papi_exit_code(*arguments: object) -> int:
    """Run a command and return its exit code; what it says goes to the captured output."""
    app = papi.cli.app
    papi.cli.app = lambda: app([str(argument) for argument in arguments])  # type: ignore[assignment]
    try:
        papi.cli.main()
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        papi.cli.app = app
    return 0
