"""The command `papi`. Only this package writes to the terminal; torch is loaded when a command needs it."""

import sys

from cyclopts import App

from papi import __version__
from papi.cli.bench import bench
from papi.cli.check import check
from papi.cli.datasets import datasets
from papi.cli.evaluate import evaluate
from papi.cli.labels import labels
from papi.cli.methods import methods
from papi.cli.report import report
from papi.cli.terminal import printable
from papi.cli.train import train
from papi.cli.watch import watch
from papi.errors import UserError

app = App(
    name="papi",
    version=__version__,
    help="""Learn image classifiers from ambiguous labels: each training image has several possible labels.

    Start with `papi train`: it needs no data and no GPU, and takes about two minutes.""",
)
app.command(train)
app.command(evaluate)
app.command(labels)
app.command(report)
app.command(watch)
app.command(bench)
app.command(methods)
app.command(datasets)
app.command(check)


def main() -> None:
    """Run a command. A person's mistake ends in one sentence and exit code 2."""
    try:
        app()
    except UserError as error:
        print(f"papi: {printable(str(error))}", file=sys.stderr)
        sys.exit(2)
