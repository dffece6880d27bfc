"""`papi bench`: the paper's tables and figures, and our own, each by one command."""

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
    """Run an experiment of the paper or one of ours, and show its tables and figures.

    Parameters
    ----------
    suite
        The name of an experiment, `all`, or `package.module:SUITE` for one of your own.
    """
    from papi.cli.bench_suites import run_suites  # loads torch: not before the options are right

    run_suites(suite, output, training)
