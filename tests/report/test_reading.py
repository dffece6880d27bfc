"""Whatever is in a folder is read; whatever is not is said."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from papi.errors import UserError
from papi.report import read_run, run_page
from papi.runs.folder import RunFolder

Make = Callable[..., RunFolder]


def test_a_whole_run_has_no_problems(make_run: Make) -> None:
    run = read_run(make_run().path)
    assert run.problems == []
    assert run.resolved is not None
    assert run.class_names == ("ant", "bee", "cat", "dog")
    run_page(run)


@pytest.mark.parametrize(
    ("file", "damage", "says"),
    [
        ("config.json", None, "config.json is missing"),
        ("config.json", "{", "config.json is damaged"),
        ("config.json", '{"identity": {}, "config": {"data": 7}}', "data are not at hand"),
        ("metrics.jsonl", None, "metrics.jsonl is missing"),
        ("metrics.jsonl", '{"epoch": 0, "loss": 1}\n{"epo\n[]\n', "one line that cannot be read"),
        ("metrics.jsonl", '{"epoch": 0, "loss": NaN, "test_accuracy": NaN}\n', ""),
        ("summary.json", None, "has not finished: 3 of 3 epochs"),
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
    assert says in " ".join(run.problems)
    page = run_page(run)
    assert "Not everything is here" in page or not run.problems
    assert "</html>" in page


def test_truncated_arrays(make_run: Make) -> None:
    folder = make_run()
    whole = folder.arrays_file.read_bytes()
    for part in range(1, 5):
        folder.arrays_file.write_bytes(whole[: len(whole) * part // 5])
        run = read_run(folder.path)
        assert any("arrays.npz cannot be read" in problem for problem in run.problems)
    run_page(run)


def test_an_unfinished_run_shows_its_curves(make_run: Make) -> None:
    folder = make_run(epochs=5)
    folder.write_rows(folder.read_rows()[:2])
    folder.summary_file.unlink()
    folder.arrays_file.unlink()
    run = read_run(folder.path)
    assert run.problems[0] == "This run has not finished: 2 of 5 epochs are done."
    page = run_page(run)
    assert "plot-accuracy" in page
    assert "cannot be ranked" in page


def test_a_run_before_its_first_epoch(make_run: Make) -> None:
    folder = make_run()
    folder.write_rows([])
    folder.summary_file.unlink()
    folder.arrays_file.unlink()
    assert "No epoch has been recorded yet" in run_page(read_run(folder.path))


def test_data_that_are_gone(make_run: Make) -> None:
    folder = make_run()
    (folder.path.parent / "data-known.npz").unlink()
    run = read_run(folder.path)
    assert "The data are not at hand" in run.problems[0]
    assert "names of the classes are not at hand" in run.problems[1]
    page = run_page(run)
    assert "<img" not in page
    assert "Which label is right?" in page  # deciding goes on by number


def test_data_that_have_changed(make_run: Make) -> None:
    folder = make_run(images=120)
    make_run("other", images=96)  # writes other data to the same file
    run = read_run(folder.path)
    assert "has changed since the run" in run.problems[0]
    assert run.dataset is None
    run_page(run)


def test_arrays_that_do_not_belong_together(make_run: Make) -> None:
    folder = make_run()
    arrays = folder.read_arrays(folder.arrays_file)
    arrays["confidence"] = arrays["confidence"][:-1]
    arrays["test_probabilities"] = arrays["test_probabilities"][:-1]
    folder.write_arrays(folder.arrays_file, arrays)
    run = read_run(folder.path)
    assert "do not belong together" in " ".join(run.problems)
    assert "do not fit the test images" in " ".join(run.problems)
    run_page(run)


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no run"):
        read_run(tmp_path)


def test_sets_that_seem_to_lack_the_truth_are_looked_at_first(make_run: Make) -> None:
    """As in the table of `papi labels`."""
    folder = make_run()
    arrays = folder.read_arrays(folder.arrays_file)
    candidates = folder.read_arrays(folder.candidates_file)["candidates"]
    doubted = int(np.flatnonzero(~candidates.all(1))[-1])
    arrays["confidence"][doubted] = np.where(candidates[doubted], 0.01, 0.9)
    folder.write_arrays(folder.arrays_file, arrays)
    resolved = read_run(folder.path).resolved
    assert resolved is not None
    assert resolved.outside[doubted] >= 0
    assert resolved.rank[doubted] == 1
