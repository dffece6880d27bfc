"""Results that are kept without their runs."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import edit, tiny_suite, train_cell
from toy_results import EPOCHS, results

from papi.config import RunConfig
from papi.errors import UserError
from papi.experiments import cells
from papi.experiments.results import Origin, Result, read_run
from recipes.rows import collect, read_rows, write_rows

DOCS = Path(__file__).parents[2] / "docs" / "results"


@pytest.fixture
def config(toy_npz: Path) -> RunConfig:
    return next(tiny_suite(toy_npz).cells())


@pytest.fixture
def trained(config: RunConfig, tmp_path: Path) -> Path:
    return train_cell(config, tmp_path / "elsewhere" / "run")


def test_a_row_holds_what_the_run_gave(config: RunConfig, trained: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows" / "tiny.jsonl"
    write_rows(file, {cells.key(config)}, collect(tmp_path / "rows", {trained: None}))
    (row,) = read_rows(file)
    run = read_run(trained)
    assert run is not None
    assert row.key == run.key == cells.key(config)
    assert (row.values, row.curves, row.made) == (run.values, run.curves, run.made)
    assert row.steps == run.steps


@pytest.mark.parametrize("recorded", [None, "fedcba9"])
def test_the_revision_of_adopted_runs(trained: Path, recorded: str | None, tmp_path: Path) -> None:
    """The one that is given is for runs that did not record theirs."""
    edit(trained / "config.json", lambda record: record.update(commit=recorded))
    (result,) = collect(tmp_path / "rows", {trained.parent: "abc1234"}).values()
    assert result.made.commit == (recorded or "abc1234")
    (result,) = collect(tmp_path / "rows", {trained.parent: None}).values()
    assert result.made.commit == recorded


def test_a_row_comes_before_a_run(config: RunConfig, trained: Path, tmp_path: Path) -> None:
    """A run that is repeated does not change what was published."""
    rows = tmp_path / "rows"
    write_rows(rows / "tiny.jsonl", {cells.key(config)}, collect(rows, {trained: None}))
    edit(trained / "summary.json", lambda summary: summary.update(test_accuracy=0.0))
    (kept,) = collect(rows, {trained: None}).values()
    assert kept.values["test_accuracy"] > 0
    (read,) = collect(tmp_path / "none", {trained: None}).values()
    assert read.values["test_accuracy"] == 0


def test_a_result_is_kept_once(tmp_path: Path) -> None:
    found = results()
    some = set(list(found)[:5])
    write_rows(tmp_path / "first.jsonl", some, found)
    write_rows(tmp_path / "second.jsonl", some, found)
    assert {row.key for row in read_rows(tmp_path / "first.jsonl")} == some
    assert not (tmp_path / "second.jsonl").exists()
    write_rows(tmp_path / "second.jsonl", set(found), found)
    assert {row.key for row in read_rows(tmp_path / "second.jsonl")} == found.keys() - some


def test_rows_stay_without_their_runs(tmp_path: Path) -> None:
    found = results()
    file = tmp_path / "toy.jsonl"
    write_rows(file, set(found), found)
    before = file.read_bytes()
    write_rows(file, set(), {})
    assert file.read_bytes() == before
    write_rows(file, set(found), found)
    assert file.read_bytes() == before


def test_only_wanted_results_are_kept(tmp_path: Path) -> None:
    found = results()
    write_rows(tmp_path / "none.jsonl", {"unknown"}, found)
    assert not (tmp_path / "none.jsonl").exists()


CONFIG = next(iter(results().values())).config
numbers = st.floats(-1e6, 1e6) | st.integers(-(10**9), 10**9)
origins = st.builds(
    Origin,
    versions=st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=3),
    threads=st.integers(1, 64),
    date=st.dates().map(str),
    commit=st.none() | st.text("0123456789abcdef", min_size=7, max_size=7),
)


@given(
    values=st.dictionaries(st.text(max_size=9), numbers, max_size=4),
    curves=st.dictionaries(st.text(max_size=9), st.lists(st.none() | numbers, max_size=4), max_size=3),
    made=origins,
)
def test_any_result_survives_in_a_row(
    values: dict[str, float],
    curves: dict[str, list[float | None]],
    made: Origin,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    each = Result(CONFIG, values, curves, made)
    file = tmp_path_factory.mktemp("rows") / "one.jsonl"
    write_rows(file, {each.key}, {each.key: each})
    (row,) = read_rows(file)
    assert (row.key, row.values, row.curves, row.made) == (each.key, values, curves, made)


@pytest.mark.parametrize("line", ["", "no json", "[]", "{}", '{"settings": {"gone": 1}}', '{"settings": {}}'])
def test_a_line_that_is_no_row_is_named(line: str, tmp_path: Path) -> None:
    found = results()
    file = tmp_path / "toy.jsonl"
    write_rows(file, set(found), found)
    with file.open("a") as stream:
        stream.write(f"{line}\n")
    with pytest.raises(UserError, match=rf"toy\.jsonl, line {len(found) + 1}, .*remove it"):
        collect(tmp_path, {})


def published() -> Iterator[tuple[Path, Result]]:
    for file in sorted(DOCS.glob("*.jsonl")):
        for result in read_rows(file):
            yield file, result


def test_every_published_row_is_understood_and_kept_once() -> None:
    rows = list(published())
    assert len({result.key for _, result in rows}) == len(rows) > 400
    for _, result in rows:
        assert 0 < result.values["test_accuracy"] < 1
        assert len(result.curves["test_accuracy"]) == result.config.epochs


def test_keeping_published_rows_again_changes_nothing(tmp_path: Path) -> None:
    kept = collect(DOCS, {})
    for file in sorted(DOCS.glob("*.jsonl")):
        keys = {result.key for result in read_rows(file)}
        write_rows(tmp_path / file.name, keys, kept)
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()


def test_rows_are_one_json_object_a_line(tmp_path: Path) -> None:
    found = results(EPOCHS)
    write_rows(tmp_path / "toy.jsonl", set(found), found)
    lines = (tmp_path / "toy.jsonl").read_text().splitlines()
    assert len(lines) == len(found)
    assert all(isinstance(json.loads(line), dict) for line in lines)
    assert lines == sorted(lines)  # so that a new result changes one line
