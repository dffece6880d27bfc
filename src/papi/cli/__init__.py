"""The command `papi`: one module for each command, loaded when the command is called.

Only this package writes to the terminal. It may import everything else. The help of a command must appear at once, so
no module here loads torch before the arguments are known to be right.
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

            Without options, it trains PaPi on 10,000 small images of clothes that come with the package. Each image
            has its true label and every wrong label with probability 1/2. This takes about two minutes on two cores.
            To continue a run that was stopped, give the same command again.

            `papi train --help-all` also shows the expert options.""",
        "init": """Look at a folder with your data, say what was understood, and write papi.toml.

            After that, `papi train` in the folder needs no arguments.""",
        "check": """Read data and candidate labels without training, and report every problem with its file and line.

            The exit code is 0 if there are no problems and 2 if there are any.""",
        "methods": "List the methods, or describe one method and its options.",
        "datasets": "List the known datasets and whether they are on this machine; download them.",
    },
    "Look at a run": {
        "watch": "Draw the curves of a run in the terminal until training ends. Ctrl-C stops watching, not the run.",
        "report": """Write an HTML report on one run, or a comparison of several runs.

            The report is a single file and works offline. Unfinished runs can be reported, too. In the report on one
            run you can decide the labels of doubtful images.""",
        "labels": """Write the resolved label of every training image, its confidence, and a ranking of doubtful images.

            With `--fix`, training continues in a new folder with your decisions: the label you chose becomes the only
            candidate of its image. The new run's labels are written at the end. If it was stopped, give the same
            command again to continue.""",
        "evaluate": "Measure a trained model on test images: accuracy of each class and the most frequent confusions.",
        "doctor": """Check every file of a run folder and say how to repair what is damaged. Nothing is changed.

            The exit code is 0 if all is well, 1 if something is damaged or missing, and 2 if there is no run.""",
    },
    "Use a model": {
        "predict": """Classify new images: the label, its probability, and the runners-up.

            Images are read as they are needed, so there may be any number of them. Files that cannot be read are
            listed at the end. The exit code is 0 if anything was predicted.""",
        "export": """Export a trained model as a single file that maps batches of raw images to probabilities.

            The exported file is checked against the model before it is kept.""",
    },
    "Compare": {
        "compare": """Rank runs by how well they predict the candidate labels of held-out samples.

            Train with `--data.holdout 0.1` to hold samples out. True labels are not needed; where test accuracy is
            known, it is shown, too.""",
        "tune": """Search for good settings of a method by random trials, judged without true labels.

            The first trial is what `papi train` does; the others draw from the ranges that the method declares. Each
            trial is a `papi train` in its own folder that holds a part of the training samples out. Their candidate
            labels judge it. The same command continues a search that was stopped or killed.""",
        "bench": """Run an experiment of the paper or one of ours, and show its tables and figures.

            Each cell of the grid is a `papi train` in its own folder. Finished cells are never trained again, so the
            same command continues a grid that was stopped or killed. Start with `papi bench --list`.""",
    },
}


def _make_app() -> App:
    made = App(
        name="papi",
        version=__version__,
        help="""Learn image classifiers from ambiguous labels: each training image has several candidate labels.

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
# What torch says, and what the system says when it cannot load a library or start a thread.
_NO_MEMORY = "out of memory|can't allocate memory|failed to map segment|annot allocate memory|can't start new thread"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command, by default the one on the command line.

    Bad input, a full disk or too little memory ends in one sentence and exit code 2.
    """
    open_streams()
    output = Output(sys.stdout)
    try:
        with output.installed():
            _require_values(sys.argv[1:] if arguments is None else arguments)
            try:
                app(arguments)
            finally:
                output.flush()  # here, where a reader that has gone is not an error
    except BrokenPipeError:  # `papi … | head`: the reader has seen enough
        sys.exit(1)  # as rich does
    except UserError as error:
        _end(str(error))
    except OSError as error:
        what = "standard output" if output.failure else error.filename or "a file"
        _end(f"{what} cannot be used ({error.strerror or error}).")
    except (MemoryError, RuntimeError, ImportError) as error:
        if not isinstance(error, MemoryError) and not re.search(_NO_MEMORY, str(error)):
            raise
        _end("there is not enough memory for this: use a smaller --batch-size, or fewer or smaller samples.")
    except KeyboardInterrupt:  # before training begins, or in another command: there is nothing to save
        sys.exit(130)


def _require_values(arguments: Sequence[str]) -> None:
    """Stop at an empty word: it is what a shell makes of a variable that is not set, and would mean this folder."""
    for before, word in zip(["", *arguments], arguments, strict=False):
        if word == "" or re.fullmatch("--[^=]+=", word):
            option = before if word == "" else word[:-1]
            what = f"{option} has no value" if option.startswith("--") else "an argument is empty"
            raise UserError(f"{what}: give one, or leave it out. A shell variable that is not set is empty.")


def _end(sentence: str) -> NoReturn:
    name = f"papi, process {process()}" if process() else "papi"
    print(f"{name}: {printable(sentence)}", file=sys.stderr)
    sys.exit(2)
