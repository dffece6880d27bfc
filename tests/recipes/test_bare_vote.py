"""The vote alone: golden values, groups that are easy to tell apart, and the table of the docs."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from papi.data import candidates as generators
from papi.data.dataset import Dataset, column_statistics
from papi.methods.neighbours import NeighbourVotesConfig
from recipes.bare_vote import SPACES, main, measured, predicted, voters

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("PAPI_TEST_DATA", ROOT / "data"))
PAGE = ROOT / "docs" / "methods" / "neighbours.md"

# Two groups of three samples on a plane.
ROWS = torch.tensor([[0, 0], [1, 0], [0, 2], [5, 5], [6, 5], [5, 7]], dtype=torch.float64)
SETS = torch.tensor(
    [[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 1, 1, 1], [0, 0, 1, 0], [1, 0, 0, 1]], dtype=torch.bool
)


@pytest.mark.parametrize("ballot", ["whole", "shared"])
def test_golden_answer(ballot: str) -> None:
    query = torch.tensor([[4, 4]], dtype=torch.float64)
    config = NeighbourVotesConfig(k=3, ballot=ballot)  # type: ignore[arg-type]
    assert predicted(voters(ROWS, SETS, config), ROWS, query).tolist() == [2]


def test_the_nearer_sample_counts_for_more() -> None:
    """In the first group labels 0 and 1 have two votes each."""
    near = torch.tensor([[0.9, 0.0], [0.0, 1.9]], dtype=torch.float64)
    assert predicted(voters(ROWS, SETS, NeighbourVotesConfig(k=3)), ROWS, near).tolist() == [0, 1]


@pytest.mark.parametrize("space", SPACES)
def test_groups_that_are_easy_to_tell_apart(space: str) -> None:
    random = np.random.default_rng(0)
    labels = np.arange(400) % 4
    rows = (8 * np.eye(4)[labels] + random.standard_normal((400, 4))).astype(np.float32)
    data = Dataset(
        "groups",
        tuple("abcd"),
        rows[:300],
        *column_statistics(rows[:300]),
        labels=labels[:300],
        test_samples=rows[300:],
        test_labels=labels[300:],
        candidates=generators.uniform(labels[:300], 4, 0.3, seed=0),
    )
    assert min(measured(data, space)) > 0.95


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "BirdSong.mat").exists(), reason="no tables here: set PAPI_TEST_DATA to their folder")
def test_the_table_of_the_docs(capsys: pytest.CaptureFixture[str]) -> None:
    main(data_dir=DATA)
    assert capsys.readouterr().out in PAGE.read_text()
