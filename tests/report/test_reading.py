"""Whatever is in a folder is read; whatever is not is said."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from papi.errors import UserError
from papi.report import Run, read_run, run_page
from papi.runs.folder import RunFolder
from papi.runs.schema import Arrays, ParentRecord, Sets
from photo_runs import CLASSES, write_photo_run
from run_folders import summary_of, write_run

Make = Callable[..., RunFolder]


def told(run: Run) -> str:
    return " ".join(run.problems)


def without_names(folder: RunFolder) -> None:
    """The record as a version wrote it that did not know of classes yet."""
    folder.write_record(replace(folder.begun(), classes=()))


def test_a_whole_run_has_no_problems(make_run: Make) -> None:
    folder = make_run()
    run = read_run(folder.path)
    assert run.problems == []
    assert run.finished
    assert (run.record, run.summary, list(run.rows)) == (folder.begun(), summary_of(folder), folder.read_rows())
    assert run.config == folder.begun().run_config
    assert run.resolved is not None
    assert run.kept.points is not None
    assert run.class_names == ("ant", "bee", "cat", "dog")
    run_page(run)


@pytest.mark.parametrize(
    ("file", "damage", "says"),
    [
        ("config.json", None, "config.json is missing"),
        ("config.json", "{", "config.json is damaged"),
        ("metrics.jsonl", None, "metrics.jsonl is missing"),
        ("metrics.jsonl", '{"epoch": 0, "loss": 1, "seconds": 1}\n{"epo\n', "metrics.jsonl is damaged (line 2"),
        ("metrics.jsonl", '{"epoch": 0, "loss": NaN, "seconds": 1, "test_accuracy": NaN}\n', ""),
        ("metrics.jsonl", "", ""),
        ("summary.json", None, "is unfinished: 3 of 3 epochs"),
        ("summary.json", "[]", "summary.json is damaged"),
        ("candidates.npz", None, "candidates.npz is missing"),
        ("candidates.npz", "PK half", "candidates.npz cannot be read"),
        ("arrays.npz", None, "arrays.npz is missing"),
        ("arrays.npz", "PK half", "arrays.npz cannot be read"),
        ("arrays.npz", "", "arrays.npz cannot be read"),
    ],
)
def test_a_damaged_run_is_shown_as_far_as_it_goes(make_run: Make, file: str, damage: str | None, says: str) -> None:
    path = make_run().path
    if damage is None:
        (path / file).unlink()
    else:
        (path / file).write_text(damage)
    run = read_run(path)
    assert says in told(run)
    page = run_page(run)
    assert "Some parts are missing" in page or not run.problems
    assert "</html>" in page


@pytest.mark.parametrize(
    ("file", "damage", "says"),
    [
        ("config.json", "[" * 100_000, "config.json is damaged"),
        ("config.json", '{"identity": {}, "config": {"data": 7}}', "config.json is damaged (no settings in it)"),
        ("config.json", '{"identity": {"seed": 0}, "config": {"data": 7}}', "data is 7, which does not fit"),
        ("config.json", '{"identity": {"seed": 0}, "config": {"limit": 2.5}}', "limit is 2.5, which does not fit"),
        ("config.json", '{"identity": {"seed": 0}, "config": {"candidates": []}}', "must be a JSON object; got []"),
        ("config.json", '{"identity": {"seed": 0}, "config": {"warp": 1}}', "PaPi of another version wrote them"),
        ("config.json", '{"identity": {"seed": 0}}', "does not have all settings"),
        ("config.json", '{"identity": {"seed": 0}, "command": 5}', "command is not a list of texts"),
        (
            "config.json",
            '{"identity": {"seed": 0}, "candidates": {"mean_candidates": "few"}}',
            "config.json is damaged",
        ),
        ("metrics.jsonl", "\xff\xfe\n", "metrics.jsonl is damaged"),
        ("metrics.jsonl", f'{{"epoch": 0, "loss": 1{"0" * 400}, "seconds": 1}}\n', "a number has 401 digits"),
        ("summary.json", '{"method": "papi"}', "a summary needs"),
    ],
)
def test_what_does_not_fit_is_a_sentence(make_run: Make, file: str, damage: str, says: str) -> None:
    path = make_run().path
    (path / file).write_text(damage)
    assert says in told(read_run(path))


@pytest.mark.parametrize("file", ["config.json", "metrics.jsonl", "summary.json", "candidates.npz", "arrays.npz"])
def test_a_folder_in_the_place_of_a_file(make_run: Make, file: str) -> None:
    path = make_run().path
    (path / file).unlink()
    (path / file).mkdir()
    assert file in told(read_run(path))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    file=st.sampled_from(["config.json", "metrics.jsonl", "summary.json", "candidates.npz", "arrays.npz"]),
    place=st.floats(0, 1, exclude_max=True),
    noise=st.binary(min_size=1, max_size=8),
)
def test_no_damage_is_a_traceback(tmp_path: Path, file: str, place: float, noise: bytes) -> None:
    """Bytes anywhere in any file are replaced."""
    folder = write_run(tmp_path / "run", images=12, tests=8)
    content = bytearray((folder.path / file).read_bytes())
    start = int(place * len(content))
    content[start : start + len(noise)] = noise
    (folder.path / file).write_bytes(content)
    run = read_run(folder.path)
    assert all(problem.endswith(".") for problem in run.problems)


def test_damaged_rows_in_the_middle_end_the_curves(make_run: Make) -> None:
    folder = make_run(epochs=5)
    lines = folder.metrics_file.read_text().splitlines(keepends=True)
    lines[2] = lines[2].replace("0.4", "0..4", 1).replace(":", ";", 1)
    folder.metrics_file.write_text("".join(lines))
    run = read_run(folder.path)
    assert [row.epoch for row in run.rows] == [0, 1]
    assert [problem for problem in run.problems if "line 3" in problem and "metrics.jsonl" in problem]
    assert "plot-accuracy" in run_page(run)


def test_half_a_last_line_costs_only_itself(make_run: Make) -> None:
    folder = make_run(epochs=3)
    whole = folder.metrics_file.read_text()
    folder.metrics_file.write_text(whole[:-20])
    run = read_run(folder.path)
    assert [row.epoch for row in run.rows] == [0, 1]
    assert len(run.problems) == 1
    assert "middle of a line" in run.problems[0]


def test_rows_of_another_version(make_run: Make) -> None:
    """A measurement that this version does not know is a log; what it knows is read."""
    folder = make_run()
    rows = [row.to_json() | {"sharpness": 0.3, "note": "warm"} for row in folder.read_rows()]
    folder.metrics_file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = read_run(folder.path)
    assert run.problems == []
    assert [row.logs["sharpness"] for row in run.rows] == [0.3] * 3
    assert run.rows[-1].test_accuracy == pytest.approx(0.8)


def test_a_summary_of_another_version(make_run: Make) -> None:
    folder = make_run()
    summary = summary_of(folder)
    values = summary.to_json() | {"carbon": 12, "history": [1, 2]}
    del values["peak_memory"]
    folder.summary_file.write_text(json.dumps(values))
    run = read_run(folder.path)
    assert run.problems == []
    assert run.summary == summary


def test_a_damaged_summary_is_still_one_of_a_finished_run(make_run: Make) -> None:
    folder = make_run()
    folder.summary_file.write_text("{")
    run = read_run(folder.path)
    assert run.finished
    assert "has not finished" not in told(run)
    assert "80.0%" in run_page(run)  # the accuracy of the last epoch


def test_settings_of_another_version_are_listed_and_not_used(make_run: Make) -> None:
    folder = make_run()
    record = folder.begun()
    folder.write_record(replace(record, config=record.config | {"warp_factor": 9}))
    run = read_run(folder.path)
    assert (run.config, run.dataset, run.method) == (None, None, "papi")
    assert "warp_factor" in told(run)
    assert run.class_names == ("ant", "bee", "cat", "dog")
    assert run.resolved is not None
    assert "warp_factor</th>" in run_page(run)


def test_truncated_arrays(make_run: Make) -> None:
    folder = make_run()
    whole = folder.arrays_file.read_bytes()
    for part in range(1, 5):
        folder.arrays_file.write_bytes(whole[: len(whole) * part // 5])
        run = read_run(folder.path)
        assert any("arrays.npz cannot be read" in problem for problem in run.problems)
    run_page(run)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"confidence": np.ones(120)},
        {"confidence": np.ones((0, 4))},
        {"confidence": np.array([["a", "b"]])},
        {"test_probabilities": np.ones((40, 4))},
    ],
)
def test_arrays_without_a_table_of_confidence(make_run: Make, wrong: dict[str, np.ndarray]) -> None:
    folder = make_run()
    np.savez(folder.arrays_file, **wrong)  # type: ignore[arg-type]
    run = read_run(folder.path)
    assert "arrays.npz cannot be read" in told(run)
    assert run.resolved is None


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"candidates": np.ones(120, bool)},
        {"candidates": np.ones((0, 4), bool)},
        {"candidates": np.array([["a", "b"]])},
        {"sets": np.ones((120, 4), bool)},
    ],
)
def test_sets_that_are_none(make_run: Make, wrong: dict[str, np.ndarray]) -> None:
    folder = make_run()
    np.savez(folder.candidates_file, **wrong)  # type: ignore[arg-type]
    run = read_run(folder.path)
    assert "candidates.npz cannot be read" in told(run)
    assert run.candidates is None


def test_an_unfinished_run_shows_its_curves(make_run: Make) -> None:
    folder = make_run(epochs=5)
    folder.write_rows(folder.read_rows()[:2])
    folder.summary_file.unlink()
    folder.arrays_file.unlink()
    run = read_run(folder.path)
    assert run.problems[0] == "This run is unfinished: 2 of 5 epochs are done."
    page = run_page(run)
    assert "plot-accuracy" in page
    assert 'id="look"' not in page


def test_a_run_before_its_first_epoch(make_run: Make) -> None:
    folder = make_run()
    folder.write_rows([])
    folder.summary_file.unlink()
    folder.arrays_file.unlink()
    page = run_page(read_run(folder.path))
    assert "0 of 3 epochs are done" in page
    assert 'id="learning"' not in page


def test_data_that_are_gone(make_run: Make) -> None:
    folder = make_run()
    (folder.path.parent / "data-known.npz").unlink()
    run = read_run(folder.path)
    assert len(run.problems) == 1
    assert "The data cannot be loaded" in run.problems[0]
    assert run.class_names == ("ant", "bee", "cat", "dog")  # the record has them
    page = run_page(run)
    assert "data:image" not in page
    assert "Which label is right?" in page  # deciding goes on by number


def test_class_names_come_from_the_model_if_nothing_else_has_them(make_run: Make) -> None:
    folder = make_run()
    (folder.path.parent / "data-known.npz").unlink()
    without_names(folder)
    assert read_run(folder.path).class_names == ("class 0", "class 1", "class 2", "class 3")
    assert "class names are unknown" in told(read_run(folder.path))
    card = json.dumps({"class_names": ["w", "x", "y", "z"]})
    save_file({"weight": np.zeros(1)}, folder.model_file, metadata={"papi": card})
    run = read_run(folder.path)
    assert run.class_names == ("w", "x", "y", "z")
    assert len(run.problems) == 1


@pytest.mark.parametrize("card", ["{", "[]", '{"class_names": 4}', '{"class_names": ["one"]}', "{}"])
def test_a_model_that_has_no_names_for_all_classes(make_run: Make, card: str) -> None:
    folder = make_run()
    (folder.path.parent / "data-known.npz").unlink()
    without_names(folder)
    save_file({"weight": np.zeros(1)}, folder.model_file, metadata={"papi": card})
    assert read_run(folder.path).class_names == ("class 0", "class 1", "class 2", "class 3")


def test_classes_are_counted_by_the_confidence_where_the_sets_are_gone(make_run: Make) -> None:
    folder = make_run()
    folder.candidates_file.unlink()
    folder.config_file.unlink()
    run = read_run(folder.path)
    assert run.class_names == ("class 0", "class 1", "class 2", "class 3")
    assert run.kept.test_probabilities is not None
    run_page(run)


def test_data_that_have_changed(make_run: Make) -> None:
    folder = make_run(images=120)
    make_run("other", images=96)  # writes other data to the same file
    run = read_run(folder.path)
    assert "has changed since the run" in run.problems[0]
    assert run.dataset is None
    run_page(run)


def test_data_of_another_content(make_run: Make) -> None:
    folder = make_run()
    record = folder.begun()
    folder.write_record(replace(record, identity=record.identity | {"data_hash": "another"}))
    run = read_run(folder.path)
    assert "may have changed since the run" in told(run)
    assert run.dataset is not None


def test_decided_sets_still_belong_to_their_data(make_run: Make) -> None:
    """A child of a run has single labels where a person has decided, and a hash that tells nothing of its data."""
    folder = make_run(truth=False)
    sets = folder.read_sets().candidates.copy()
    first = int(np.flatnonzero(sets.sum(1) > 1)[0])
    sets[first] = np.arange(sets.shape[1]) == sets[first].argmax()
    folder.write_sets(Sets(candidates=sets))
    assert "has changed since the run" in told(read_run(folder.path))
    record = folder.begun()
    parent = ParentRecord(folder="../before", model="0" * 64)
    folder.write_record(replace(record, parent=parent, identity=record.identity | {"data_hash": "another"}))
    run = read_run(folder.path)
    assert run.problems == []
    assert "../before" in run_page(run)


def test_another_folder_of_datasets(make_run: Make, tmp_path: Path) -> None:
    folder = make_run()
    record = folder.begun()
    folder.write_record(replace(record, config=record.config | {"data": "cifar10"}))
    run = read_run(folder.path, tmp_path / "elsewhere")
    assert "--data-dir" in told(run)
    assert "elsewhere" in told(run)


def test_arrays_that_do_not_belong_together(make_run: Make) -> None:
    folder = make_run()
    arrays = folder.read_arrays()
    assert arrays.test_probabilities is not None
    folder.write_arrays(
        replace(arrays, confidence=arrays.confidence[:-1], test_probabilities=arrays.test_probabilities[:-1])
    )
    run = read_run(folder.path)
    assert "so resolved labels are not shown" in told(run)
    assert "do not match the test images" in told(run)
    run_page(run)


def test_arrays_that_fit_in_part(make_run: Make) -> None:
    folder = make_run()
    folder.write_arrays(replace(folder.read_arrays(), prototypes=np.ones((4, 99), np.float32)))
    run = read_run(folder.path)
    assert len(run.problems) == 1
    page = run_page(run)
    assert "plot-map" in page
    assert "Stars are the prototypes" not in page


@pytest.mark.parametrize("name", ["run", "run with blanks"])
def test_what_can_be_mended_names_a_command(make_run: Make, name: str) -> None:
    folder = make_run(name)
    folder.arrays_file.unlink()
    folder.candidates_file.write_bytes(b"PK")
    for problem in read_run(folder.path).problems:
        assert f"`papi doctor {str(folder.path) if name == 'run' else repr(str(folder.path))}`" in problem


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(UserError, match="does not contain a run"):
            read_run(path)


def test_sets_that_seem_to_lack_the_truth_are_looked_at_first(make_run: Make) -> None:
    """As in the table of `papi labels`."""
    folder = make_run()
    arrays, candidates = folder.read_arrays(), folder.read_sets().candidates
    doubted = int(np.flatnonzero(~candidates.all(1))[-1])
    arrays.confidence[doubted] = np.where(candidates[doubted], 0.01, 0.9)
    folder.write_arrays(arrays)
    resolved = read_run(folder.path).resolved
    assert resolved is not None
    assert resolved.outside[doubted] >= 0
    assert resolved.rank[doubted] == 1


def test_a_feature_table_has_no_pictures(make_run: Make) -> None:
    """The same run on rows of numbers: everything but the pictures is there."""
    folder = make_run()
    data = folder.path.parent / "data-known.npz"
    with np.load(data) as opened:
        values = dict(opened)
    for kind in ("", "test_"):
        images = values.pop(f"{kind}images")
        values[f"{kind}features"] = images.reshape(len(images), -1).astype(np.float32)
    np.savez(data, **values)
    run = read_run(folder.path)
    assert run.problems == []
    page = run_page(run)
    assert "data:image" not in page
    assert "plot-trust" in page


def test_arrays_alone_are_a_trace_of_a_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_arrays(Arrays(confidence=np.ones((3, 2), np.float32)))
    run = read_run(tmp_path)
    assert run.class_names == ("class 0", "class 1")
    run_page(run)


def test_photos_of_a_feature_table(tmp_path: Path) -> None:
    """Its rows name files; the photos beside it are shown."""
    folder = write_photo_run(tmp_path / "run")
    sets = folder.read_sets()
    names = sets.file_names
    table = tmp_path / "photos" / "features.npz"
    features = np.zeros((60, 3), np.float32)
    np.savez(table, features=features, candidates=sets.candidates, class_names=np.array(CLASSES), file_names=names)
    record = folder.begun()
    folder.write_record(replace(record, config=record.config | {"data": str(table), "data_size": None}))
    run = read_run(folder.path)
    assert run.problems == []
    assert run.dataset is not None
    assert run.dataset.kind == "features"
    assert "data:image/jpeg" in run_page(run)
