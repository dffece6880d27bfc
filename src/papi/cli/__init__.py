"""The `papi` command: one module per subcommand, imported when the subcommand is called.

Only this package writes to the terminal. It may import every other package. Help must appear immediately, so no module
here imports torch before the arguments have been checked.
"""

import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from cyclopts import App, Group

from papi import __version__
from papi.cli.options_file import add_file_options
from papi.cli.output import Output, open_streams
from papi.cli.terminal import printable, process
from papi.errors import UserError

_SECTIONS = {
    "Train": {
        "train": """Train a classifier from candidate labels.

            Without options, it trains PaPi on 10,000 small images of clothing that are part of the package. Each image
            has its true label and, with probability 1/2 each, every wrong label as candidates. This takes about two
            minutes on two cores. To continue an interrupted run, run the same command again.

            `papi train --help-all` also shows the expert options.""",
        "init": """Inspect a folder with your data, describe what was found, and write papi.toml.

            After that, `papi train` in the folder needs no arguments.""",
        "check": """Check data and candidate labels without training; report every problem with its file and line.

            The exit code is 0 if there are no problems, and 2 otherwise.""",
        "methods": "List the methods, or describe one method and its settings.",
        "datasets": "List the known datasets, show which are on this machine, and download them.",
    },
    "Inspect a run": {
        "watch": "Plot the curves of a run in the terminal until training ends. Ctrl-C stops watching, not the run.",
        "report": """Write an HTML report on one run, or a comparison of several runs.

            The report is a single file and works offline. It also works for unfinished runs. In the report on one run
            you can decide the labels of doubtful images.""",
        "labels": """Write the resolved label of every training image, its confidence, and a ranking of doubtful images.

            With `--fix`, training continues in a new folder with your decisions: the label you chose becomes the only
            candidate of its image. At the end, the labels of the new run are written. To continue an interrupted run,
            run the same command again.""",
        "evaluate": "Evaluate a trained model on test images: accuracy per class and the most frequent confusions.",
        "doctor": """Check every file in a run folder and explain how to repair any damage. Nothing is changed.

            The exit code is 0 if the run is intact, 1 if something is damaged or missing, and 2 if there is no run.""",
    },
    "Use a model": {
        "predict": """Classify new images: the most likely label, its probability, and the runners-up.

            Images are read in batches, so their number does not matter. Files that cannot be read are listed at the
            end. The exit code is 0 if at least one image was classified.""",
        "export": """Export a trained model as a single file that maps batches of raw images to probabilities.

            The exported file is checked against the model before it is kept.""",
    },
    "Compare": {
        "compare": """Rank runs by how well they predict the candidate labels of their validation sets.

            Train with `--data.holdout 0.1` to create a validation set. True labels are not needed. If test accuracy is
            known, it is shown as well.""",
        "tune": """Tune the settings of a method by random search, without true labels.

            The first trial uses the defaults of `papi train`; the others sample from the ranges that the method
            declares. Each trial is a training run in its own folder with a validation set, and is scored by the
            candidate labels of that set. To continue an interrupted search, run the same command again.""",
        "bench": """Run an experiment from the paper or one of our own, and show its tables and figures.

            Each run of the grid has its own folder. Finished runs are never trained again, so the
            same command continues an interrupted grid. Start with `papi bench --list`.""",
    },
}


def _make_app() -> App:
    made = App(
        name="papi",
        version=__version__,
        help="""Train image classifiers from ambiguous labels: each training image has several candidate labels.

        Start with `papi train`: it needs no data and no GPU, and takes about two minutes.""",
        config=(add_file_options,),
    )
    for place, (title, commands) in enumerate(_SECTIONS.items()):
        group = Group(title, sort_key=place)
        for order, (name, text) in enumerate(commands.items()):
            made.command(f"papi.cli.{name}:{name}", name=name, help=text, group=group, sort_key=order)
    made["--help"].group = made["--version"].group = Group("Options", sort_key=len(_SECTIONS))
    return made


app = _make_app()
# Messages of torch, and of the system when it cannot load a library or start a thread.
_NO_MEMORY = "out of memory|can't allocate memory|failed to map segment|annot allocate memory|can't start new thread"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command, by default the one on the command line.

    Bad input, a full disk or a lack of memory ends with a one-sentence message and exit code 2.
    """
    open_streams()
    output = Output(sys.stdout)
    try:
        with output.installed():
            _require_values(sys.argv[1:] if arguments is None else arguments)
            try:
                app(arguments)
            finally:
                output.flush()  # inside the try block, where a closed pipe is handled
    except BrokenPipeError:  # `papi … | head`: the reader has closed the pipe
        sys.exit(1)  # as rich does
    except UserError as error:
        _end(str(error))
    except OSError as error:
        what = "standard output" if output.failure else error.filename or "a file"
        _end(f"{what} cannot be read or written ({error.strerror or error}).")
    except (MemoryError, RuntimeError, ImportError) as error:
        if not isinstance(error, MemoryError) and not re.search(_NO_MEMORY, str(error)):
            raise
        _end("not enough memory: use a smaller --batch-size, or fewer or smaller samples.")
    except KeyboardInterrupt:  # before training begins, or in another command: there is nothing to save
        sys.exit(130)


def _require_values(arguments: Sequence[str]) -> None:
    """Reject empty arguments: a shell passes one for an unset variable, and as a path it would mean this folder."""
    for before, word in zip(["", *arguments], arguments, strict=False):
        if word == "" or re.fullmatch("--[^=]+=", word):
            option = before if word == "" else word[:-1]
            what = f"{option} has no value" if option.startswith("--") else "an argument is empty"
            raise UserError(f"{what}: fill it in or leave it out (an unset shell variable is empty).")


def _end(sentence: str) -> NoReturn:
    name = f"papi, process {process()}" if process() else "papi"
    print(f"{name}: {printable(sentence)}", file=sys.stderr)
    sys.exit(2)
