"""`papi train`: train a run from command-line options."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from papi.cli.options import SWITCH, THIS_RUN, config_options, print_all_options
from papi.cli.options_file import tell_options
from papi.cli.terminal import make_console
from papi.config import RunConfig
from papi.training.allocator import keep_freed_memory

_DEFAULT = RunConfig()


@config_options(experts=False)
def train(
    *,
    out: Annotated[Path | None, THIS_RUN] = None,
    config: Annotated[RunConfig, Parameter(name="*")] = _DEFAULT,
    finish_now: Annotated[bool, THIS_RUN, SWITCH] = False,
    tensorboard: Annotated[bool, THIS_RUN, SWITCH] = False,
    options_file: Annotated[Path | None, THIS_RUN] = None,
    help_all: Annotated[bool, THIS_RUN, SWITCH] = False,
) -> None:
    """Train a classifier from candidate labels.

    Parameters
    ----------
    out
        Folder for all output of the run. [default: a folder in runs/, named after the settings]
    finish_now
        Finish an interrupted run without further training: its last checkpoint becomes the result.
    tensorboard
        Also log every epoch for TensorBoard.
    options_file
        File with options that are not on the command line; `none` reads no file.
        [default: papi.toml in this folder, if it exists]
    help_all
        Show all options, including expert options, and exit.
    """
    if help_all:
        print_all_options(train, "papi train")
        return
    keep_freed_memory()  # before anything large is allocated
    from papi.cli.train_progress import show_training  # takes seconds to import torch: check the options first

    tell_options(make_console(), options_file)
    show_training(config, out or default_folder(config), tensorboard=tensorboard, finish_now=finish_now)


def default_folder(config: RunConfig) -> Path:
    """Return a folder in `runs` that is named after the main settings."""
    data = Path(config.data).resolve().stem
    sets = config.candidates
    made = sets.file.stem if sets.file else f"{sets.kind or 'q'}{sets.flip_rate:g}"
    return Path("runs") / f"{data}-{config.method.rpartition(':')[2]}-{made}-seed{config.seed}"
