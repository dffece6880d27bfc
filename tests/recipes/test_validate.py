"""Settings are measured on images that the run neither trains nor is tested on."""

import json
from dataclasses import replace
from pathlib import Path

import cyclopts
import numpy as np
import pytest

from papi.data.dataset import Dataset
from papi.experiments.results import read_run
from published_files import write_fashion
from recipes import validate
from recipes.validate import with_other_images, with_training_rows


def as_sets(images: np.ndarray) -> set[bytes]:
    return {image.tobytes() for image in images}


@pytest.mark.parametrize("limit", [3, 30, 60])
def test_measured_images_are_unused_training_images(toy_dataset: Dataset, limit: int) -> None:
    published = replace(
        toy_dataset, samples=np.random.default_rng(0).integers(0, 256, toy_dataset.samples.shape, np.uint8)
    )
    dataset = published.limited(limit)
    measured = with_other_images(dataset, published)
    assert measured.test_samples is not None
    assert measured.test_labels is not None
    assert published.test_samples is not None
    assert not as_sets(measured.test_samples) & as_sets(dataset.samples)
    assert not as_sets(measured.test_samples) & as_sets(published.test_samples)
    assert as_sets(measured.test_samples) <= as_sets(published.samples)
    assert set(measured.test_labels) == set(range(len(published.class_names)))
    np.testing.assert_array_equal(measured.samples, dataset.samples)


def test_something_must_be_left_to_measure_on(toy_dataset: Dataset) -> None:
    with pytest.raises(SystemExit, match="--limit"):
        with_other_images(toy_dataset, toy_dataset)


def test_rows_of_a_table_are_measured_on_others_of_its_training_rows() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(60, 4)).astype(np.float32)
    table = Dataset(
        name="table",
        class_names=("a", "b"),
        samples=rows[:50],
        mean=(0.0,) * 4,
        std=(1.0,) * 4,
        labels=random.integers(0, 2, 50),
        candidates=np.ones((50, 2), bool),
        test_samples=rows[50:],
        test_labels=np.zeros(10, np.int64),
    )
    first, second = with_training_rows(table, 0), with_training_rows(table, 1)
    for measured in (first, second):
        assert measured.test_samples is not None
        assert measured.candidates is not None
        assert len(measured.samples) == len(measured.candidates) == 40
        assert as_sets(measured.samples) | as_sets(measured.test_samples) == as_sets(rows[:50])
        np.testing.assert_allclose(measured.mean, measured.samples.mean(0), rtol=1e-5)
    assert as_sets(first.samples) != as_sets(second.samples)


def test_a_run_takes_the_options_of_papi_train(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_fashion(tmp_path / "data" / "fashion-mnist", train=60, test=10)
    options = "--data fashion-mnist --limit 30 --network small --method proden --epochs 1 --batch-size 10 --threads 1"
    where = ["--data-dir", str(tmp_path / "data"), "--out", str(tmp_path / "run"), "--data.test-share", "0.5"]
    app = cyclopts.App(result_action="return_value")
    app.default(validate.main)
    app([*options.split(), *where])
    assert "not test samples" in capsys.readouterr().out
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["training_images"] == 30
    assert read_run(tmp_path / "run") is None, "it must never be taken for a result"
