"""A finished run is found again by its settings, whoever made it and whenever."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny import edit, tiny_suite, train_cell

from papi.config import RunConfig, as_typed
from papi.experiments import cells
from papi.experiments.results import DIGITS, VALUES, Origin, Result, read_run, read_runs
from papi.methods import find_method


@pytest.fixture(scope="module")
def config(lasting_toy_npz: Path) -> RunConfig:
    return next(tiny_suite(lasting_toy_npz).cells())


@pytest.fixture(scope="module")
def finished(config: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run that no test changes."""
    return train_cell(config, tmp_path_factory.mktemp("finished") / "run")


@pytest.fixture
def trained(finished: Path, tmp_path: Path) -> Path:
    """The same run, in a folder whose name says nothing, for tests that change it."""
    return shutil.copytree(finished, tmp_path / "elsewhere" / "any name")


def test_a_run_is_found_by_its_settings(config: RunConfig, trained: Path) -> None:
    assert list(read_runs(trained.parent)) == [cells.key(config)]
    assert list(read_runs(trained)) == [cells.key(config)]
    assert cells.key(dataclasses.replace(config, seed=5)) not in read_runs(trained.parent)


def test_runs_are_found_at_any_depth_and_equal_ones_once(config: RunConfig, trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "a" / "deep" / "place")
    edit(tmp_path / "a" / "deep" / "place" / "summary.json", lambda summary: summary.update(test_accuracy=0.125))
    found = read_runs(tmp_path)
    assert list(found) == [cells.key(config)]
    assert found[cells.key(config)].values["test_accuracy"] == 0.125  # the first by path


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_a_folder_without_runs(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert read_runs(tmp_path / name) == {}


def test_a_result_holds_what_the_run_gave(config: RunConfig, trained: Path) -> None:
    result = read_run(trained)
    assert result is not None
    summary = json.loads((trained / "summary.json").read_text())
    metrics = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    assert result.key == cells.key(config)
    for name, value in result.values.items():
        assert value == pytest.approx(summary[name], abs=10**-DIGITS)
        assert isinstance(value, int) == isinstance(summary[name], int)
    assert {name for name in VALUES if summary.get(name) is not None} == result.values.keys()
    assert result.values["peak_memory"] > 10e6
    for name, curve in result.curves.items():
        assert curve == [pytest.approx(row[name], abs=10**-DIGITS) for row in metrics]
    assert len(result.curves["test_accuracy"]) == 1
    record = json.loads((trained / "config.json").read_text())
    assert result.made.versions == record["versions"]
    assert result.made.threads == 1
    assert result.steps == 12  # of eight images each


def test_an_epoch_that_lacks_a_value_leaves_a_gap(trained: Path) -> None:
    lines = (trained / "metrics.jsonl").read_text().splitlines()
    second = json.loads(lines[0])
    del second["test_accuracy"]
    (trained / "metrics.jsonl").write_text(f"{lines[0]}\n{json.dumps(second)}\n")
    result = read_run(trained)
    assert result is not None
    assert result.curves["test_accuracy"][1] is None
    assert None not in result.curves["cpu_seconds"]


def test_runs_from_before_a_setting_existed_are_found(config: RunConfig, trained: Path) -> None:
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
    assert "cpu_seconds" not in result.values


def test_options_that_a_run_does_not_know_have_their_defaults_not_those_of_the_preset(
    config: RunConfig, trained: Path
) -> None:
    def as_papi(record: dict[str, Any]) -> None:
        for part in (record["config"], record["identity"]):
            part["method"] = "papi"
        record["identity"]["option"] = {"temperature": 0.25}

    edit(trained / "config.json", as_papi)
    result = read_run(trained)
    assert result is not None
    defaults = dataclasses.asdict(find_method("papi").Config()) | {"temperature": 0.25}
    spelt_out = tuple(f"{name}={as_typed(value)}" for name, value in defaults.items())
    assert result.key == cells.key(dataclasses.replace(config, method="papi", option=spelt_out))
    assert result.key != cells.key(dataclasses.replace(config, method="papi", option=("temperature=0.25",)))


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["config"].update(gone=1),  # a setting that is not known any more
        lambda record: record["identity"]["option"].update(gone=1),
        lambda record: record["config"].update(method="gone"),
        lambda record: record.pop("command"),
        lambda record: record.update(command=["/somewhere/recipes/validate.py", "--out", "x"]),
        lambda record: record.update(command=["/somewhere/papi", "labels", "run", "--fix", "x.csv"]),
    ],
)
def test_runs_that_are_not_understood_are_left_out(trained: Path, change: Callable[[dict[str, Any]], object]) -> None:
    assert read_run(trained) is not None
    edit(trained / "config.json", change)
    assert read_run(trained) is None
    assert read_runs(trained.parent) == {}


@pytest.mark.parametrize("file", ["summary.json", "config.json"])
def test_unfinished_runs_are_left_out(trained: Path, file: str) -> None:
    (trained / file).unlink()
    assert read_run(trained) is None


@pytest.mark.parametrize("file", ["summary.json", "config.json", "metrics.jsonl"])
def test_damaged_runs_are_left_out(trained: Path, file: str) -> None:
    (trained / file).write_text("{ half a\n")
    assert read_run(trained) is None


@pytest.mark.parametrize("program", ["/usr/bin/papi", "C:/tools/papi.exe", "/lib/papi/__main__.py"])
def test_any_way_to_start_papi_train_counts(trained: Path, program: str) -> None:
    edit(trained / "config.json", lambda record: record.update(command=[program, "train", "--seed", "0"]))
    assert read_run(trained) is not None


@pytest.mark.parametrize(("recorded", "told"), [("fedcba9", "fedcba9"), (None, None)])
def test_the_revision_is_the_one_that_the_run_recorded(trained: Path, recorded: str | None, told: str | None) -> None:
    edit(trained / "config.json", lambda record: record.update(commit=recorded))
    result = read_run(trained)
    assert result is not None
    assert result.made.commit == told


def test_runs_from_before_processors_were_recorded() -> None:
    assert Origin({"torch": "2"}, 1, "2026-01-01").processor == "unknown"
    assert Origin({"processor": "x86_64 AVX2"}, 1, "2026-01-01").processor == "x86_64 AVX2"


@pytest.mark.parametrize(
    ("images", "batch", "drop_last", "steps"), [(100, 32, False, 12), (100, 32, True, 9), (96, 32, True, 9)]
)
def test_steps(images: int, batch: int, drop_last: bool, steps: int) -> None:
    config = RunConfig(epochs=3, batch_size=batch, drop_last=drop_last)
    result = Result(config, {"training_images": images}, {}, Origin({}, 1, "2026-01-01"))
    assert result.steps == steps
