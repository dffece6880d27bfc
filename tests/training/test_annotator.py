"""The annotator network: what it is asked, that it is trained once, and that it can be stopped."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from papi.config import CandidatesConfig, RunConfig
from papi.data.candidates import frequent_pairs, instance_probabilities, statistics
from papi.data.dataset import Dataset
from papi.errors import UserError
from papi.setup.data import candidate_sets, load_dataset
from papi.train import Stopped, settings_for, train
from papi.training import annotator
from papi.training.annotator import annotator_logits


def test_it_learns_the_true_labels(toy_dataset: Dataset) -> None:
    logits = annotator_logits(toy_dataset, epochs=20, device="cpu")
    assert logits is not None
    assert logits.shape == (96, 4)
    assert (logits.argmax(1) == toy_dataset.labels).mean() > 0.9


def test_it_is_trained_once(toy_dataset: Dataset, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()

    def progress(what: str, done: int, total: int) -> None:
        calls[what] += 1

    first = annotator_logits(toy_dataset, epochs=1, device="cpu", progress=progress)
    assert calls == {"training the annotator": 2}
    assert [file.name for file in cache.rglob("*") if file.is_file()] == ["logits.npy"]
    monkeypatch.setattr(annotator, "_train", None)
    again = annotator_logits(toy_dataset, epochs=1, device="cpu")
    assert np.array_equal(first, again)  # type: ignore[arg-type]


def test_other_data_or_settings_are_another_annotator(toy_dataset: Dataset, cache: Path) -> None:
    other = toy_dataset.samples.copy()
    other[0, 0, 0, 0] ^= 1
    for data, epochs, seed in (
        (toy_dataset, 1, 0),
        (toy_dataset, 2, 0),
        (toy_dataset, 1, 1),
        (replace(toy_dataset, samples=other), 1, 0),
    ):
        annotator_logits(data, epochs=epochs, seed=seed, device="cpu")
    assert len(list(cache.rglob("logits.npy"))) == 4


def test_a_stopped_annotator_goes_on(toy_dataset: Dataset, cache: Path) -> None:
    whole = annotator_logits(replace(toy_dataset, name="same"), epochs=3, device="cpu")
    for file in cache.rglob("logits.npy"):
        file.unlink()
    asked = iter(range(100))
    assert annotator_logits(toy_dataset, epochs=3, device="cpu", stop_requested=lambda: next(asked) >= 2) is None
    assert list(cache.rglob("checkpoint.pt"))
    resumed = annotator_logits(toy_dataset, epochs=3, device="cpu")
    assert np.array_equal(whole, resumed)  # type: ignore[arg-type]


def test_a_damaged_memory_is_made_again(toy_dataset: Dataset, cache: Path) -> None:
    first = annotator_logits(toy_dataset, epochs=1, device="cpu")
    [file] = cache.rglob("logits.npy")
    file.write_bytes(b"nonsense")
    assert np.array_equal(first, annotator_logits(toy_dataset, epochs=1, device="cpu"))  # type: ignore[arg-type]


def test_features_are_annotated_by_a_perceptron() -> None:
    labels = np.arange(60) % 3
    features = np.eye(3, dtype=np.float32)[labels] + np.random.default_rng(0).normal(0, 0.1, (60, 3)).astype(np.float32)
    data = Dataset("f", ("a", "b", "c"), features, (0.3,) * 3, (0.5,) * 3, labels=labels)
    logits = annotator_logits(data, epochs=8, device="cpu")
    assert logits is not None
    assert (logits.argmax(1) == labels).mean() > 0.9
    with pytest.raises(UserError, match="takes images, and these data are features"):
        annotator_logits(data, network="wide-resnet", device="cpu")


def test_a_cache_that_cannot_be_written(toy_dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PAPI_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match=r"cannot be written .*set the environment variable PAPI_CACHE"):
        annotator_logits(toy_dataset, epochs=1, device="cpu")
    with pytest.raises(UserError, match="--device gpu is not available"):
        annotator_logits(toy_dataset, epochs=1, device="gpu")


@pytest.mark.parametrize("rule", ["released", "paper"])
def test_sets_from_a_config(toy_npz: Path, rule: str) -> None:
    sets = CandidatesConfig(kind="instance-dependent", annotator_epochs=2, rule=rule)  # type: ignore[arg-type]
    config = RunConfig(data=str(toy_npz), candidates=sets, device="cpu")
    dataset = load_dataset(config)
    made = candidate_sets(dataset, settings_for(config, dataset))
    assert made is not None
    assert dataset.labels is not None
    assert made[np.arange(len(made)), dataset.labels].all()
    again = candidate_sets(dataset, settings_for(config, dataset))
    assert again is not None
    assert np.array_equal(made, again)
    if rule == "paper":
        assert (made.sum(1) >= 2).all()  # the likeliest wrong label is certain


def test_a_stop_while_it_trains_writes_no_run(toy_npz: Path, tmp_path: Path) -> None:
    sets = CandidatesConfig(kind="instance-dependent", annotator_epochs=2)
    config = RunConfig(data=str(toy_npz), candidates=sets, device="cpu")
    assert list(train(config, tmp_path / "run", lambda: True)) == [Stopped(0, 0)]
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_clothes_are_confused_as_people_would(tmp_path: Path) -> None:
    """On real images: sets of a sensible size, and shirts are taken for tops, not for bags."""
    dataset = load_dataset(RunConfig(data="fashion-mini"))
    logits = annotator_logits(dataset, epochs=3, device="cpu")
    assert logits is not None
    assert dataset.labels is not None
    chances = instance_probabilities(logits, dataset.labels, "released", 0.4)
    from papi.data.candidates import instance_dependent

    sets = instance_dependent(dataset.labels, chances, 0)
    found = statistics(sets, dataset.labels)
    assert 2 < found["mean_candidates"] < 5
    similar = {"T-shirt/top", "Shirt", "Pullover", "Coat", "Dress"}, {"Sandal", "Sneaker", "Ankle boot"}
    pairs = frequent_pairs(sets, dataset.class_names, 6)
    assert all(any({first, second} <= group for group in similar) for first, second, _ in pairs), pairs
