"""Accuracy of neighbour votes alone, without a network: a baseline for every method on feature tables.

    python -m recipes.bare_vote --data-dir FOLDER        # seconds; prints the table of docs/methods/neighbours.md

Uses the splits of `papi bench real-world`: each seed trains on four fifths and tests on a different fifth. Reports how
often the nearest training samples give most votes to the true label of a test sample, and how often the nearest other
samples give most votes to the true label of a training sample, among its candidates.
"""

from pathlib import Path

import cyclopts
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from papi.config import RunConfig
from papi.data.dataset import Dataset
from papi.experiments.realworld import TABLE
from papi.methods.neighbours import NeighbourVotes, NeighbourVotesConfig
from papi.networks import Network
from papi.setup.data import load_dataset

SPACES = ("raw", "standard", "unit")


def main(*, data_dir: Path) -> None:
    """Print a row per table and a column per feature space."""
    print("| test samples (training samples) right, % | " + " | ".join(SPACES) + " |\n|---|" + "---|" * len(SPACES))
    for task in TABLE.tasks:
        found = [
            [measured(load_dataset(RunConfig(data=task.data, data_dir=data_dir, seed=seed)), space) for space in SPACES]
            for seed in TABLE.seeds
        ]
        shown = (
            f"{mean[0]:.1f} ± {std[0]:.1f} ({mean[1]:.1f})"
            for mean, std in zip(100 * np.mean(found, 0), 100 * np.std(found, 0), strict=True)
        )
        print(f"| {task.label} | {' | '.join(shown)} |", flush=True)


def measured(data: Dataset, space: str) -> tuple[float, float]:
    """The shares of test samples and of training samples whose true label gets the most votes."""
    assert data.candidates is not None
    assert data.labels is not None
    assert data.test_labels is not None
    rows, others = (torch.from_numpy(each) for each in (data.samples, data.test_samples))
    if space != "raw":
        rows, others = ((each - torch.tensor(data.mean)) / torch.tensor(data.std) for each in (rows, others))
    config = NeighbourVotesConfig(space="unit" if space == "unit" else "standard")
    method = voters(rows, torch.from_numpy(data.candidates), config)
    method.vote(rows)
    resolved = method.confidence.all_rows.argmax(1).numpy()
    answered = predicted(method, rows, others).numpy()
    return float((answered == data.test_labels).mean()), float((resolved == data.labels).mean())


def voters(rows: Tensor, sets: Tensor, config: NeighbourVotesConfig) -> NeighbourVotes:
    """The method with a placeholder network that is never called."""
    return NeighbourVotes(Network(nn.Identity(), rows.shape[1], sets.shape[1], projection=None), sets, config)


def predicted(method: NeighbourVotes, rows: Tensor, others: Tensor) -> Tensor:
    """For each of `others` `(M, d)`, the label with the most votes among its nearest training samples `(N, d)`."""
    if method.config.space == "unit":
        rows, others = normalize(rows), normalize(others)
    nearest = torch.cdist(others, rows).topk(min(method.config.k, len(rows)), largest=False).indices
    index = torch.arange(len(rows), len(rows) + len(others))
    return method.count(torch.cat([rows, others]), index, nearest).argmax(1)


if __name__ == "__main__":
    cyclopts.run(main)
