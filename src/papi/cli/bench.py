"""`papi bench`: reproduce the tables and figures of the paper and our own experiments."""

from typing import Annotated

from cyclopts import Parameter

from papi.cli.bench_options import Output, Training

_OUTPUT, _TRAINING = Output(), Training()


def bench(
    suite: str | None = None,
    /,
    *,
    output: Annotated[Output, Parameter(name="*")] = _OUTPUT,
    training: Annotated[Training, Parameter(name="*")] = _TRAINING,
) -> None:
    """Run an experiment from the paper or one of our own, and show its tables and figures.

    Parameters
    ----------
    suite
        Name of an experiment, `all`, or `package.module:SUITE` for your own.
    """
    from papi.cli.bench_suites import run_suites  # imports torch: check the options first

    run_suites(suite, output, training)
