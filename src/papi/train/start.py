"""Starts a run: from a config in a folder, or on samples in memory."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from torch import nn

from papi import distributed
from papi.config import RunConfig, Settings
from papi.data.dataset import Dataset, silent
from papi.data.dataset import Progress as PreparationProgress
from papi.errors import UserError
from papi.networks import Factory, reference, title
from papi.networks.pretrained import Pretrained
from papi.runs.folder import RunFolder
from papi.runs.parent import Parent
from papi.setup.data import candidate_sets, load_dataset, require_apart
from papi.setup.default_encoder import with_network
from papi.setup.encoder import find_encoder, seen_by, with_tuning
from papi.setup.recorded import with_recorded
from papi.setup.settings import settings_for
from papi.setup.stopped import is_stopped
from papi.setup.threads import set_threads
from papi.train.events import Event, Stopped, StopRequested, never
from papi.train.head_first import head_first
from papi.train.one_run import one_run
from papi.training.devices import find_device, require_system


def train(
    config: RunConfig,
    path: Path,
    stop_requested: StopRequested = never,
    progress: PreparationProgress = silent,
    *,
    finish_now: bool = False,
) -> Iterator[Event]:
    """Load the data of a config, create candidate sets, and train in the folder `path`, as `papi train` does.

    This is a generator: training advances when you request the next event. Under `torchrun`, all processes call it
    together, and only the first one accesses the folder.

    Parameters
    ----------
    config
        The options of `papi train`.
    path
        The folder of the run. An interrupted run in it continues.
    stop_requested
        Called after each step; True stops the run with a checkpoint.
    progress
        Called during slow preparation: decoding images, training an annotator.
    finish_now
        Do not train: finish an interrupted run at its last checkpoint.

    Yields
    ------
    Event
        `Started`, then `Stepped`, `EpochEnded` and `Saved` repeatedly, and at the end `Finished` or `Stopped`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from papi.config import RunConfig
    >>> from papi.train import Finished, train
    >>> config = RunConfig(data="digits", limit=200, epochs=1, threads=1)
    >>> for event in train(config, Path("runs/short")):
    ...     if isinstance(event, Finished):
    ...         print(event.summary.epochs)
    1
    """
    require_system()
    require_apart(config, path)
    folder = RunFolder(path)
    if finish_now and not is_stopped(path) and not folder.summary_file.exists():
        raise UserError(f"{path} does not contain an interrupted run: leave out --finish-now to train.")
    with distributed.joined(find_device(config.device)), _owned(folder):
        # The annotator's predictions depend on it, too.
        config = replace(config, threads=set_threads(config.threads, folder))
        config, notes = with_network(config, folder)
        asked = with_tuning(config)
        config = with_recorded(asked, folder)
        encoder = find_encoder(config)
        preparation = None if encoder is None else encoder.preparation
        images = load_dataset(config, progress=progress, preparation=preparation).limited(config.limit)
        images = replace(images, notes=(*notes, *images.notes))
        dataset = seen_by(encoder, images, config, stop_requested, progress)
        if dataset is None:
            yield Stopped(0, 0)
            return
        settings = settings_for(config, dataset)
        candidates = candidate_sets(dataset, settings, stop_requested, progress)
        if candidates is None:
            yield Stopped(0, 0)
            return
        start = None
        if encoder is not None and config.tune == "all":
            found = head_first(dataset, candidates, asked, encoder, stop_requested, progress)
            if found is None:
                yield Stopped(0, 0)
                return
            dataset, start = found
        yield from one_run(
            dataset, candidates, settings, folder, stop_requested, start, encoder=encoder, finish_now=finish_now
        )


def fit(
    dataset: Dataset,
    candidates: np.ndarray,
    settings: Settings,
    folder: RunFolder | None = None,
    stop_requested: StopRequested = never,
    parent: Parent | None = None,
    network: Factory | nn.Module | None = None,
    encoder: Pretrained | None = None,
) -> Iterator[Event]:
    """Train on samples and candidate sets `(N, K) bool`. With a folder, everything is saved and a run can be resumed.

    Weights start from those of `parent` if given, otherwise at random. A `network` replaces the one in the settings. If
    the samples are features of a pretrained `encoder`, it becomes part of the model.
    """
    require_system()
    if folder is not None and network is not None and reference(network) is None:
        raise UserError(
            f"the network {title(network)} cannot be rebuilt from a run folder: put its factory into an importable "
            "module, or train without a folder."
        )
    with _owned(folder):
        settings = replace(settings, threads=set_threads(settings.threads, folder))
        yield from one_run(dataset, candidates, settings, folder, stop_requested, parent, network, encoder)


@contextmanager
def _owned(folder: RunFolder | None) -> Iterator[None]:
    """Lock the folder; if there are several processes, the first one locks it for all."""
    with ExitStack() as held:
        if folder is not None:
            distributed.from_first(lambda: held.enter_context(folder.owned()))
        yield
