"""Whole runs on a toy problem: results, files, stopping and going on."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from papi import train as run
from papi.config import CandidatesConfig, CheckpointConfig, OptimConfig, RunConfig
from papi.data import candidates as generators
from papi.data.dataset import Dataset
from papi.errors import UserError
from papi.runs import checkpoint
from papi.runs.folder import RunFolder
from papi.runs.identity import identity_hash
from papi.train import one_run
from papi.training.engine import EpochEnded, NonFiniteError, Stepped

CONFIG = RunConfig(
    data="toy", epochs=3, batch_size=20, device="cpu", threads=1, option=("ramp_epochs=1", "confidence_momentum=0.5,0")
)


def train(
    data: Dataset, folder: Path | None, config: RunConfig = CONFIG, stop: Callable[[], bool] | None = None
) -> Any:
    """All events of a run."""
    assert data.labels is not None
    mask = generators.uniform(data.labels, len(data.class_names), 0.3, seed=0)
    target = None if folder is None else RunFolder(folder)
    return list(run.fit(data, mask, run.settings_for(config, data), target, stop or (lambda: False)))


def stop_after(steps: int) -> Callable[[], bool]:
    """A stop request that comes when it has been asked for `steps` times: after each step and each epoch."""
    calls = iter(range(10**9))
    return lambda: next(calls) + 1 >= steps


def model(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


VARYING = ("seconds", "cpu_seconds", "images_per_second")


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows without what a clock decides."""
    return [{k: v for k, v in row.to_json().items() if k not in VARYING} for row in RunFolder(folder).read_rows()]


def test_a_method_that_needs_sets_says_so(toy_dataset: Dataset) -> None:
    """Of ten images that may be anything, one has weights: that one teaches something."""
    assert toy_dataset.labels is not None
    mask = generators.uniform(toy_dataset.labels, len(toy_dataset.class_names), 0.3, seed=0)
    mask[10:] &= np.arange(mask.shape[1]) == toy_dataset.labels[10:, None]
    mask[:10] = True
    prior = np.where(mask, 1 / mask.sum(1, keepdims=True), 0).astype(np.float32)
    prior[3] = np.arange(len(prior[3])) / np.arange(len(prior[3])).sum()

    def notes(method: str, sets: np.ndarray = mask, prior: np.ndarray | None = None) -> tuple[str, ...]:
        config = RunConfig(data="toy", method=method, epochs=1, device="cpu", threads=1)
        data = replace(toy_dataset, candidates=sets, prior=prior)
        started: tuple[str, ...] = next(iter(run.fit(data, sets, run.settings_for(config, data)))).problems
        return started

    (said,) = notes("cc")
    assert said.startswith(f"cc learns nothing from 10 of {len(mask)} samples")
    assert "from 9 of" in notes("cc", prior=prior)[0]
    assert notes("cc", mask[np.arange(len(mask)) % (len(mask) - 10) + 10]) == ()
    assert notes("papi") == ()


def test_it_learns(toy_dataset: Dataset, tmp_path: Path) -> None:
    summary = train(toy_dataset, tmp_path, replace(CONFIG, epochs=10))[-1].summary
    assert summary.test_accuracy > 0.8
    assert summary.disambiguation_accuracy > 0.9


def test_files_and_their_contents(toy_dataset: Dataset, tmp_path: Path) -> None:
    finished = train(toy_dataset, tmp_path)[-1]
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {
        "config.json", "metrics.jsonl", "summary.json", "candidates.npz", "arrays.npz", "model.safetensors",
        "checkpoint.pt", "checkpoint.previous.pt",
    }  # fmt: skip
    stored = json.loads((tmp_path / "summary.json").read_text())
    summary = RunFolder(tmp_path).read_summary()
    assert summary == finished.summary
    needed = {
        "method", "dataset", "network", "seed", "epochs", "mean_candidates", "test_accuracy", "test_accuracy_best",
        "test_accuracy_last10", "prototype_accuracy", "disambiguation_accuracy", "seconds", "cpu_seconds",
        "images_per_second", "peak_memory",
    }  # fmt: skip
    assert needed <= {name for name, value in stored.items() if value is not None}
    written = RunFolder(tmp_path).read_rows()
    assert [row.epoch for row in written] == [0, 1, 2]
    assert {
        "loss", "loss_classification", "loss_alignment", "learning_rate", "test_accuracy", "prototype_accuracy",
        "disambiguation_accuracy", "mean_confidence", "intra_similarity", "inter_similarity",
        "linear_only_right", "prototype_only_right",
    } <= written[-1].to_json().keys()  # fmt: skip
    assert summary.test_accuracy == written[-1].test_accuracy
    assert summary.test_accuracy_best == max(row.test_accuracy for row in written)
    arrays = RunFolder(tmp_path).read_arrays()
    assert arrays.confidence.shape == (96, 4)
    np.testing.assert_allclose(arrays.test_probabilities.sum(1), 1, atol=1e-5)


def test_equal_seeds_give_equal_bytes(toy_dataset: Dataset, tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train(toy_dataset, tmp_path / name, replace(CONFIG, seed=seed))
    assert model(tmp_path / "a") == model(tmp_path / "b")
    assert model(tmp_path / "a") != model(tmp_path / "c")


@pytest.mark.parametrize("steps", [1, 3, 6, 8, 12])
def test_stopped_and_continued_equals_uninterrupted(toy_dataset: Dataset, tmp_path: Path, steps: int) -> None:
    """Five steps make an epoch, and its end asks once more: this stops in the middle of epochs and at their ends."""
    train(toy_dataset, tmp_path / "whole")
    stopped = train(toy_dataset, tmp_path / "parts", stop=stop_after(steps))[-1]
    assert isinstance(stopped, run.Stopped)
    assert not (tmp_path / "parts" / "summary.json").exists()
    assert isinstance(train(toy_dataset, tmp_path / "parts")[-1], run.Finished)
    assert model(tmp_path / "whole") == model(tmp_path / "parts")
    assert rows(tmp_path / "whole") == rows(tmp_path / "parts")


def test_abandoned_and_continued_equals_uninterrupted(toy_dataset: Dataset, tmp_path: Path) -> None:
    """Like a kill: whoever runs it just goes away, between a save and the next."""
    train(toy_dataset, tmp_path / "whole")
    config = replace(CONFIG, checkpoint=CheckpointConfig("2"))
    assert toy_dataset.labels is not None
    mask = generators.uniform(toy_dataset.labels, 4, 0.3, seed=0)
    events = run.fit(toy_dataset, mask, run.settings_for(config, toy_dataset), RunFolder(tmp_path / "parts"))
    for _ in range(12):
        next(events)
    events.close()
    train(toy_dataset, tmp_path / "parts", config)
    assert model(tmp_path / "whole") == model(tmp_path / "parts")
    assert rows(tmp_path / "whole") == rows(tmp_path / "parts")


def test_a_damaged_checkpoint_costs_only_time(toy_dataset: Dataset, tmp_path: Path) -> None:
    train(toy_dataset, tmp_path / "whole")
    train(toy_dataset, tmp_path / "parts", stop=stop_after(12))  # after the second epoch
    file = tmp_path / "parts" / "checkpoint.pt"
    file.write_bytes(file.read_bytes()[:1000])
    events = train(toy_dataset, tmp_path / "parts")
    started = next(event for event in events if isinstance(event, run.Started))
    assert "checkpoint.pt" in started.problems[0]
    assert started.epoch == 1
    assert model(tmp_path / "whole") == model(tmp_path / "parts")


def test_both_checkpoints_damaged_starts_anew(toy_dataset: Dataset, tmp_path: Path) -> None:
    train(toy_dataset, tmp_path, stop=stop_after(12))
    for file in (tmp_path / "checkpoint.pt", checkpoint.previous(tmp_path / "checkpoint.pt")):
        file.write_bytes(b"")
    events = train(toy_dataset, tmp_path)
    started = next(event for event in events if isinstance(event, run.Started))
    assert (started.epoch, started.step, len(started.problems)) == (0, 0, 2)


def test_a_finished_run_is_not_trained_again(toy_dataset: Dataset, tmp_path: Path) -> None:
    first = train(toy_dataset, tmp_path)[-1]
    again = train(toy_dataset, tmp_path)
    assert len(again) == 1
    assert again[0].already
    assert again[0].summary == first.summary


def test_a_run_that_was_finished_meanwhile_is_not_trained_again(
    toy_dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two start at once in a folder that is not there yet; one is done before the other is ready."""
    build, first = one_run.prepare, []

    def slowly(*arguments: Any) -> Any:
        monkeypatch.setattr(one_run, "prepare", build)
        first.extend(train(toy_dataset, tmp_path / "run"))
        return build(*arguments)

    monkeypatch.setattr(one_run, "prepare", slowly)
    (only,) = train(toy_dataset, tmp_path / "run")
    assert only.already
    assert only.summary == first[-1].summary


def test_another_config_is_refused(toy_dataset: Dataset, tmp_path: Path) -> None:
    train(toy_dataset, tmp_path)
    with pytest.raises(UserError, match=r"optim\.lr is 0\.3 here and 0\.05 there"):
        train(toy_dataset, tmp_path, replace(CONFIG, optim=OptimConfig(lr=0.3)))


def test_threads_of_the_first_part_are_kept(toy_dataset: Dataset, tmp_path: Path) -> None:
    train(toy_dataset, tmp_path, replace(CONFIG, threads=2), stop=stop_after(2))
    try:
        started = next(
            e for e in train(toy_dataset, tmp_path, replace(CONFIG, threads=None)) if isinstance(e, run.Started)
        )
        assert started.threads == 2
    finally:
        torch.set_num_threads(1)


def started_threads(data: Dataset, folder: Path, config: RunConfig, stop: Callable[[], bool] | None = None) -> int:
    return next(event.threads for event in train(data, folder, config, stop) if isinstance(event, run.Started))


def test_a_network_of_the_package_trains_on_features_with_one_thread(toy_dataset: Dataset, tmp_path: Path) -> None:
    rows = toy_dataset.samples.reshape(len(toy_dataset.samples), -1)[:, :20].astype(np.float32)
    features = replace(toy_dataset, samples=rows, test_samples=None, test_labels=None, mean=(), std=()).measured()
    mlp = replace(CONFIG, network="mlp")
    default = replace(mlp, threads=None)
    torch.set_num_threads(2)
    try:
        train(features, tmp_path / "asked", replace(mlp, threads=2), stop_after(2))
        assert started_threads(features, tmp_path / "asked", default) == 2
        assert started_threads(features, tmp_path / "default", default, stop_after(2)) == 1
        assert torch.get_num_threads() == 2
        outside = replace(default, network="papi.networks.mlp:MLP")
        assert started_threads(features, tmp_path / "outside", outside) == 2
    finally:
        torch.set_num_threads(1)


def test_another_number_of_threads_is_refused(toy_dataset: Dataset, tmp_path: Path) -> None:
    train(toy_dataset, tmp_path, stop=stop_after(2))
    with pytest.raises(UserError, match="began with --threads 1, and would not be reproducible with 2"):
        train(toy_dataset, tmp_path, replace(CONFIG, threads=2))


@pytest.mark.parametrize(("what", "before"), [("torch", "1.0"), ("processor", "x86_64 SSE2")])
def test_other_versions_are_noted(what: str, before: str, toy_dataset: Dataset, tmp_path: Path) -> None:
    train(toy_dataset, tmp_path, stop=stop_after(2))
    record = json.loads((tmp_path / "config.json").read_text())
    record["versions"][what] = before
    (tmp_path / "config.json").write_text(json.dumps(record))
    started = next(event for event in train(toy_dataset, tmp_path) if isinstance(event, run.Started))
    assert started.problems[0].startswith(f"this run began with {what} {before} and continues with ")


def test_a_folder_in_use_is_refused(toy_dataset: Dataset, tmp_path: Path) -> None:
    assert toy_dataset.labels is not None
    mask = generators.uniform(toy_dataset.labels, 4, 0.3, seed=0)
    events = run.fit(toy_dataset, mask, run.settings_for(CONFIG, toy_dataset), RunFolder(tmp_path))
    next(events)
    with pytest.raises(UserError, match="is in use by process"):
        train(toy_dataset, tmp_path)
    events.close()  # type: ignore[attr-defined]
    assert isinstance(train(toy_dataset, tmp_path)[-1], run.Finished)


def test_a_network_that_is_not_finite_after_its_last_step(toy_dataset: Dataset, tmp_path: Path) -> None:
    """The loss of that step was finite: only what comes next would show it."""
    config = replace(
        CONFIG, epochs=1, batch_size=len(toy_dataset.samples), optim=OptimConfig(lr=1e38, weight_decay=1e30)
    )
    with pytest.raises(NonFiniteError, match=r"the network was not finite in epoch 1, step 1,.*--optim\.lr"):
        train(toy_dataset, tmp_path, config)
    assert RunFolder(tmp_path).read_summary() is None
    assert not (tmp_path / "checkpoint.pt").exists()


def test_a_loss_that_is_not_finite(toy_dataset: Dataset, tmp_path: Path) -> None:
    config = replace(CONFIG, optim=OptimConfig(lr=1e30), checkpoint=CheckpointConfig("1"))
    with pytest.raises(NonFiniteError, match=r"epoch 1, step \d.*samples \d+, .* 12 more.*--optim\.lr"):
        train(toy_dataset, tmp_path, config)
    record = RunFolder(tmp_path).read_record()
    assert record is not None
    kept, problems = checkpoint.load_newest(
        tmp_path / "checkpoint.pt", identity_hash(record.identity), torch.device("cpu")
    )
    assert kept is not None
    assert problems == []
    assert all(torch.isfinite(t).all() for t in kept["method"].values() if t.is_floating_point())


def test_without_true_labels_only_what_can_be_known(toy_dataset: Dataset, tmp_path: Path) -> None:
    assert toy_dataset.labels is not None
    mask = generators.uniform(toy_dataset.labels, 4, 0.3, seed=0)
    blind = replace(toy_dataset, labels=None, test_labels=None, test_samples=None, candidates=mask)
    *_, finished = run.fit(blind, mask, run.settings_for(CONFIG, blind), RunFolder(tmp_path))
    summary = finished.summary  # type: ignore[union-attr]
    assert summary.test_accuracy is None
    assert summary.disambiguation_accuracy is None
    assert RunFolder(tmp_path).read_rows()[-1].mean_confidence is not None
    # Training itself does not depend on what is known about the truth.
    train(toy_dataset, tmp_path / "seeing")
    assert model(tmp_path) == model(tmp_path / "seeing")


def test_without_a_folder_nothing_is_written(toy_dataset: Dataset, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    events = train(toy_dataset, None)
    assert sum(isinstance(event, Stepped) for event in events) == 15
    assert sum(isinstance(event, EpochEnded) for event in events) == 3
    assert not events[-1].already
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"method": "pappi"}, "did you mean 'papi'"),
        ({"network": "smal"}, "did you mean 'small'"),
        ({"preset": "quik"}, "did you mean 'quick'"),
        ({"option": ("mixpu=off",)}, "did you mean 'mixup'"),
        ({"device": "tpu"}, "--device tpu is not available"),
        ({"method": "nowhere.module:Method"}, "cannot be imported"),
        ({"method": "collections:OrderedDict"}, "not a subclass"),
    ],
)
def test_bad_names_write_nothing(toy_dataset: Dataset, tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        train(toy_dataset, tmp_path / "run", replace(CONFIG, **changes))
    assert not (tmp_path / "run").exists()


def test_unknown_dataset(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'fashion-mini'"):
        list(run.train(RunConfig(data="fashion_mini"), tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_candidate_seed_defaults_to_the_runs_seed(toy_npz: Path, tmp_path: Path) -> None:
    sets = []
    for name, seed, own in (("a", 3, None), ("b", 4, 3)):
        config = replace(CONFIG, data=str(toy_npz), seed=seed, epochs=1, candidates=CandidatesConfig(0.5, own))
        list(run.train(config, tmp_path / name))
        sets.append(RunFolder(tmp_path / name).read_sets().candidates)
    np.testing.assert_array_equal(*sets)
