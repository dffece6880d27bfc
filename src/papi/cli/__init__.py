"""The command `papi`. Only this package writes to the terminal; torch is loaded when a command needs it."""

import io
import os
import re
import sys
from typing import NoReturn

from cyclopts import App

from papi import __version__
from papi.cli.bench import bench
from papi.cli.check import check
from papi.cli.compare import compare
from papi.cli.datasets import datasets
from papi.cli.doctor import doctor
from papi.cli.evaluate import evaluate
from papi.cli.export import export
from papi.cli.labels import labels
from papi.cli.methods import methods
from papi.cli.predict import predict
from papi.cli.report import report
from papi.cli.terminal import printable, process
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
app.command(compare)
app.command(labels)
app.command(predict)
app.command(export)
app.command(report)
app.command(watch)
app.command(bench)
app.command(methods)
app.command(datasets)
app.command(check)
app.command(doctor)


def main() -> None:
    """Run a command. A person's mistake, and a disk or a memory that is full, ends in one sentence and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows few characters shows ? for the rest
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # here, where a reader who has gone is not an error
    except BrokenPipeError:  # `papi … | head`: whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)  # as rich does
    except UserError as error:
        _end(str(error))
    except OSError as error:
        _end(f"{error.filename or 'a file'} cannot be used ({error.strerror or error}).")
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not re.search("out of memory|can't allocate memory", str(error)):
            raise
        _end("there is not enough memory for this: use a smaller --batch-size, or fewer or smaller samples.")
    except KeyboardInterrupt:  # before training begins, or in another command: there is nothing to save
        sys.exit(130)


def _end(sentence: str) -> NoReturn:
    name = f"papi, process {process()}" if process() else "papi"
    print(f"{name}: {printable(sentence)}", file=sys.stderr)
    sys.exit(2)
