"""How many threads a run uses: those it asks for, those it began with, or what suits its network."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from papi import distributed
from papi.config import Settings
from papi.data.dataset import Dataset
from papi.errors import UserError
from papi.networks import NETWORKS, Factory
from papi.runs.folder import RunFolder


def set_threads(asked: int | None, folder: RunFolder | None) -> int | None:
    """Set the threads of a new run as requested. A resumed run keeps its number, so that results are bit-equal.

    Returns the number, or None if it is left open.
    """

    def recorded() -> int | None:
        record = folder.read_record() if folder is not None else None
        threads = asked if record is None else record.threads
        if folder is not None and asked not in (None, threads) and folder.read_summary() is None:
            raise UserError(
                f"the run in {folder.path} began with --threads {threads}, and would not be reproducible with {asked}: "
                "leave out --threads to continue it, or train in a new folder with --out."
            )
        return threads

    threads = distributed.from_first(recorded)
    if threads:
        torch.set_num_threads(threads)
    return threads


@contextmanager
def threads_for(settings: Settings, dataset: Dataset, network: Factory | nn.Module | None) -> Iterator[None]:
    """Use one thread to train a network of the package on features, unless the settings name a number.

    A step takes about a millisecond. Two threads hardly make it shorter, and if other programs use the cores, they wait
    for each other for most of the time: a run of 10 seconds took 170.
    """
    before = torch.get_num_threads()
    built_in = network is None and (settings.head or settings.network) in NETWORKS
    if settings.threads is None and dataset.kind == "features" and built_in:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
