"""A run is found again by what decides its result, whoever made it and whenever."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from tiny import tiny_suite

import papi.cli
from papi import train as run
from papi.config import CandidatesConfig, OptimConfig, RunConfig, to_dict
from papi.experiments import SUITES, cells
from papi.experiments.compute import epochs_within, units
from papi.experiments.rows import collect, read_rows, read_run, write_rows
from papi.setup.settings import complete


def train(config: RunConfig, folder: Path) -> None:
    for _ in run.train(config, folder):
        pass


@pytest.fixture
def config(toy_npz: Path) -> RunConfig:
    return next(tiny_suite(toy_npz).cells())


@pytest.fixture
def trained(config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("sys.argv", ["/somewhere/papi/__main__.py", "train"])
    folder = tmp_path / "elsewhere" / "any name"
    train(dataclasses.replace(config, threads=1, device="cpu"), folder)
    return folder


def edit(file: Path, change: Any) -> None:
    record = json.loads(file.read_text())
    change(record)
    file.write_text(json.dumps(record))


def test_a_run_is_found_by_its_settings(config: RunConfig, trained: Path, tmp_path: Path) -> None:
    found = collect(tmp_path / "rows", {tmp_path / "elsewhere": None})
    assert list(found) == [cells.key(config)]
    other = dataclasses.replace(config, seed=5)
    assert cells.key(other) not in found


def test_what_changes_nothing_does_not_count(config: RunConfig) -> None:
    same = dataclasses.replace(config, threads=7, device="cuda", data_dir=Path("/data"))
    assert cells.key(same) == cells.key(config)
    assert cells.key(complete(config)) == cells.key(config)
    assert cells.key(dataclasses.replace(config, option=("view=weak",))) == cells.key(config)  # its default
    assert cells.key(dataclasses.replace(config, option=("view=plain",))) != cells.key(config)


def test_kinds_of_candidates_are_those_the_data_would_get() -> None:
    uniform = CandidatesConfig(kind="uniform")
    assert cells.key(RunConfig(data="cifar10")) == cells.key(RunConfig(data="cifar10", candidates=uniform))
    hierarchical = CandidatesConfig(kind="hierarchical")
    assert cells.key(RunConfig(data="cifar100-h")) == cells.key(RunConfig(data="cifar100-h", candidates=hierarchical))
    assert cells.key(RunConfig(data="cifar100-h")) != cells.key(RunConfig(data="cifar100-h", candidates=uniform))


def test_runs_from_before_a_setting_existed_are_found(config: RunConfig, trained: Path, tmp_path: Path) -> None:
    def forget(record: dict[str, Any]) -> None:
        for part in (record["config"], record["identity"]):
            del part["data_split"]
            del part["candidates"]["rule"]
        del record["identity"]["option"]["view"]

    edit(trained / "config.json", forget)
    edit(trained / "summary.json", lambda summary: summary.pop("cpu_seconds"))
    result = read_run(trained)
    assert result is not None
    assert result.key == cells.key(config)


def test_the_preset_of_today_does_not_fill_in_options_of_earlier_runs(
    toy_npz: Path, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_papi(record: dict[str, Any]) -> None:
        for part in (record["config"], record["identity"]):
            part["method"] = "papi"
        record["identity"]["option"] = {"temperature": 0.5}

    edit(trained / "config.json", as_papi)
    result = read_run(trained)
    assert result is not None
    assert result.config.options == {"temperature": "0.5"}
    monkeypatch.setitem(papi.setup.settings._QUICK_OPTIONS, "papi", lambda *_: {"passes": "one"})
    assert read_run(trained).key == result.key  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["config"].update(gone=1),  # a setting that is not known any more
        lambda record: record["identity"]["option"].update(gone=1),
        lambda record: record.update(command=["/somewhere/recipes/validate.py", "--out", "x"]),
    ],
)
def test_runs_that_are_not_understood_are_left_out(trained: Path, change: Any) -> None:
    assert read_run(trained) is not None
    edit(trained / "config.json", change)
    assert read_run(trained) is None


def test_unfinished_runs_are_left_out(trained: Path) -> None:
    (trained / "summary.json").unlink()
    assert read_run(trained) is None


def test_rows_hold_what_the_run_gave(config: RunConfig, trained: Path, tmp_path: Path) -> None:
    edit(trained / "config.json", lambda record: record.update(commit=None))  # the sources are not a checkout
    results = collect(tmp_path / "rows", {trained: "abc1234"})
    file = tmp_path / "rows" / "tiny.jsonl"
    write_rows(file, {cells.key(config)}, results)
    (row,) = read_rows(file)
    summary = json.loads((trained / "summary.json").read_text())
    metrics = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    assert row.key == cells.key(config)
    assert row.values["test_accuracy"] == pytest.approx(summary["test_accuracy"], abs=1e-5)
    assert row.values["cpu_seconds"] == pytest.approx(summary["cpu_seconds"], abs=1e-5)
    assert row.values["peak_memory"] > 10e6
    assert row.curves["test_accuracy"] == [pytest.approx(each["test_accuracy"], abs=1e-5) for each in metrics]
    assert row.made["commit"] == "abc1234"
    assert row.steps == 12


def test_a_run_that_knows_its_revision(config: RunConfig, trained: Path, tmp_path: Path) -> None:
    edit(trained / "config.json", lambda record: record.update(commit="fedcba9"))
    (row,) = collect(tmp_path / "rows", {trained: "abc1234"}).values()
    assert row.made["commit"] == "fedcba9"


def test_a_result_is_kept_once(config: RunConfig, trained: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    results = collect(rows, {trained: None})
    write_rows(rows / "first.jsonl", {cells.key(config)}, results)
    write_rows(rows / "second.jsonl", {cells.key(config)}, results)
    assert len(read_rows(rows / "first.jsonl")) == 1
    assert not (rows / "second.jsonl").exists()
    write_rows(rows / "first.jsonl", set(), {})
    assert len(read_rows(rows / "first.jsonl")) == 1  # what is there stays without its run


@pytest.mark.parametrize(
    "config",
    [
        RunConfig(),
        RunConfig(
            data="cifar100-h", limit=100, method="papi", option=("mixup=off", "passes=paper"), epochs=3, drop_last=False
        ),
        RunConfig(data="x.npz", data_size=32, data_test_share=0.5, optim=OptimConfig(lr=0.1, nesterov=True), seed=4),
        RunConfig(optim=OptimConfig(nesterov=False)),
        RunConfig(candidates=CandidatesConfig(kind="instance-dependent", rule="paper", allow_missing_truth=True)),
    ],
)
def test_arguments_give_the_same_config(config: RunConfig) -> None:
    _, bound, _ = papi.cli.app.parse_args(["train", *cells.arguments(config)])
    assert bound.arguments.get("config", RunConfig()) == config


def test_every_cell_of_every_suite_has_a_command_and_a_folder_of_its_own() -> None:
    for suites in SUITES.values():
        runs = {cells.key(config): config for suite in suites.values() for config in suite.cells()}
        assert len({cells.folder_name(config) for config in runs.values()}) == len(runs)
        some = list(runs.values())[::40]
        for config in some:
            _, bound, _ = papi.cli.app.parse_args(["train", *cells.arguments(config)])
            assert to_dict(bound.arguments.get("config", RunConfig())) == to_dict(config)


def test_encoder_units() -> None:
    """As counted in the methods' papers: a forward pass is one, a backward pass two."""
    known = {"papi": 10, "dpll": 9, "pico": 4, "valen": 6, "proden": 3, "lws": 4, "rc": 4, "cc": 3, "supervised": 3}
    assert {method: units(method, {}) for method in known} == known
    forms = {"passes=paper": 10, "passes=two": 6, "passes=one": 3, "mixup=off": 6, "alignment=off": 3}
    assert {form: units("papi", dict([form.split("=")])) for form in forms} == forms


def test_equal_compute() -> None:
    epochs = {"papi": 12, "dpll": 13, "pico": 30, "valen": 20, "proden": 40, "lws": 30, "rc": 30, "cc": 40}
    assert {method: epochs_within(120, method, {}) for method in epochs} == epochs
    assert epochs_within(360, "papi", {"passes": "two"}) == 60
