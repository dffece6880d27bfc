"""`papi train`: from options to a training run."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from papi.cli.options import SWITCH, THIS_RUN, config_options, print_all_options
from papi.config import RunConfig
from papi.training.allocator import keep_freed_memory

_DEFAULT = RunConfig()


@config_options(experts=False)
def train(
    *,
    out: Annotated[Path | None, THIS_RUN] = None,
    config: Annotated[RunConfig, Parameter(name="*")] = _DEFAULT,
    tensorboard: Annotated[bool, THIS_RUN, SWITCH] = False,
    help_all: Annotated[bool, THIS_RUN, SWITCH] = False,
) -> None:
    """Train a classifier from candidate labels.

    Parameters
    ----------
    out
        Folder for everything the run writes. [default: a folder in runs/, named after the settings]
    tensorboard
        Also log every epoch for TensorBoard.
    help_all
        Show all options, including the expert ones, and exit.
    """
    if help_all:
        print_all_options(train, "papi train")
        return
    keep_freed_memory()  # before anything large is allocated
    from papi.cli.train_progress import show_training  # loads torch for seconds: only once the options are right

    show_training(config, out or default_folder(config), tensorboard=tensorboard)


def default_folder(config: RunConfig) -> Path:
    """Return a folder in `runs` whose name tells the main settings."""
    data = Path(config.data).resolve().stem
    sets = config.candidates
    made = sets.file.stem if sets.file else f"{sets.kind or 'q'}{sets.flip_rate:g}"
    return Path("runs") / f"{data}-{config.method.rpartition(':')[2]}-{made}-seed{config.seed}"
