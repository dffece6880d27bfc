"""Real candidate sets: what the suite asks for, and the accuracy it must reach."""

import os
import statistics
from pathlib import Path

import pytest

from papi import train as run
from papi.config import RunConfig
from papi.experiments import cells, tables
from papi.experiments.estimate import seconds_here
from papi.experiments.paper import CC, PICO, PRODEN
from papi.experiments.realworld import PUBLISHED, SUITE, TABLE
from papi.experiments.suites import Entry
from recipes.rows import read_rows

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "docs" / "results" / "real-world.jsonl"
LOST = Path(os.environ.get("PAPI_TEST_DATA", ROOT / "data")) / "lost.mat"
# Published mean less two standard deviations, in %, for Lost, MSRCv2 and BirdSong.
LEAST = {PRODEN: (72.9, 50.7, 73.4), CC: (74.0, 47.0, 71.3), PICO: (71.6, 52.0, 73.6)}


def test_the_targets_are_the_published_numbers_less_two_deviations() -> None:
    for entry, wanted in LEAST.items():
        for task, least in zip(TABLE.tasks, wanted, strict=True):
            published = PUBLISHED[(entry.label, task.data_label, task.label)]
            assert published.mean - 2 * published.std == pytest.approx(least)


def test_all_methods_train_alike_on_another_split_for_each_seed() -> None:
    runs = [cells.settings_of(config) for config in SUITE.cells()]
    assert {(run.network, run.preset, run.data_test_share) for run in runs} == {("mlp", "quick", 0.2)}
    assert len({(run.epochs, run.batch_size, run.optim) for run in runs}) == 1
    assert {run.seed for run in runs} == {0, 1, 2, 3, 4}


def test_time_is_estimated_for_features_too() -> None:
    configs = list(TABLE.cells())
    assert 0 < seconds_here(configs[:1]) < seconds_here(configs)


@pytest.mark.parametrize("entry", LEAST, ids=lambda entry: entry.label)
def test_the_results_in_the_docs_reach_what_others_published(entry: Entry) -> None:
    results = {result.key: result for result in read_rows(ROWS)}
    for task, least in zip(TABLE.tasks, LEAST[entry], strict=True):
        found = tables.outcome(TABLE, entry, task, results)
        assert found.complete
        assert found.mean >= least
        assert "(published " in found.text()


@pytest.mark.slow
@pytest.mark.skipif(not LOST.exists(), reason="lost.mat is not here: set PAPI_TEST_DATA to its folder")
@pytest.mark.parametrize("entry", LEAST, ids=lambda entry: entry.label)
def test_lost(entry: Entry, tmp_path: Path) -> None:
    """Plain `papi train --data …/lost.mat`, five seeds."""
    found = []
    for seed in TABLE.seeds:
        config = RunConfig(data=str(LOST), method=entry.method, seed=seed, device="cpu", threads=1)
        *_, last = run.train(config, tmp_path / str(seed))
        assert isinstance(last, run.Finished)
        found.append(100 * last.summary.test_accuracy)
    assert statistics.mean(found) >= LEAST[entry][0]
