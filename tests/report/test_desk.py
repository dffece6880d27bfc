"""What the desk offers, in which order, and what its script is told."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from papi.data.dataset import Opinions
from papi.report import desk as module
from papi.report.desk import Desk, desk, desk_of_two, order
from papi.report.fitting import Kept
from papi.report.run import Run
from runs_in_memory import run_of


def doubtful(count: int) -> Run:
    """Two candidates for each image; the confidence in the first falls from image to image."""
    first = np.linspace(0.99, 0.51, count)
    return run_of(np.column_stack([first, 1 - first]).tolist())


def made(run: Run, **options: object) -> Desk:
    found = desk(run, **options)  # type: ignore[arg-type]
    assert found is not None
    return found


def test_all_ambiguous_images_come_in_the_order_of_their_rank() -> None:
    run = doubtful(250)
    found = made(run)
    assert (found.total, found.shown) == (250, 250)
    assert [item[0] for item in found.state["items"]] == list(range(249, -1, -1))  # type: ignore[attr-defined]
    planned = order(run)
    assert planned is not None
    assert sorted(planned.plan.queue()) == list(range(250))


def test_images_with_one_candidate_are_not_in_doubt() -> None:
    assert made(run_of([[1.0, 0.0], [0.0, 1.0], [0.6, 0.4]])).total == 1
    certain = made(run_of([[1.0, 0.0]]))
    assert (certain.total, certain.shown, certain.first) == (0, 0, [])


def test_a_single_candidate_that_the_model_does_not_believe_in_is_offered() -> None:
    run = run_of([[0.6, 0.4], [0.6, 0.4]])
    run.candidates = np.array([[1, 1], [0, 1]], bool)
    assert [item[0] for item in made(run).state["items"]] == [1, 0]  # type: ignore[attr-defined]


def test_what_the_script_reads() -> None:
    run = run_of([[0.6, 0.4, 0.0], [0.2, 0.3, 0.5]])
    assert run.dataset is not None
    run.dataset = replace(run.dataset, file_names=("one.png", "</script>.png"))
    found = made(run)
    state = json.loads(json.dumps(found.state))
    assert state["key"].endswith(run.identity)
    assert state["classes"] == ["a", "b", "c"]
    items = {item[0]: item[1:] for item in state["items"]}
    assert items == {0: [[0, 1], [60, 40], "one.png"], 1: [[2, 1, 0], [50, 30, 20], "</script>.png"]}
    assert len(state["pictures"]) == 2
    assert {each.alt for each in found.first} == {"Training image 0, one.png", "Training image 1, </script>.png"}
    served = made(run, served=True).state
    assert (served["pictures"], served["links"], served["served"]) == ([], "", True)


def test_photos_are_linked_from_where_the_page_lies(tmp_path: Path) -> None:
    run = doubtful(3)
    assert made(run, page=tmp_path).state["links"] == ""  # arrays have no photos


def test_a_page_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit is left to the server; then nothing can be estimated."""
    run = doubtful(60)
    monkeypatch.setattr(module, "STATE_BYTES", 500)
    monkeypatch.setattr(module, "THUMBNAIL_BYTES", 1000)
    found = made(run)
    assert 5 < found.shown < found.total == 60
    assert found.state["plan"]["starts"] == []  # type: ignore[index]
    assert sum(len(uri) for _, uri in found.state["pictures"]) <= 1000  # type: ignore[attr-defined]
    assert made(run, served=True).shown == 60


def test_nothing_without_resolved_labels() -> None:
    run = run_of([[0.6, 0.4]])
    run.kept = Kept()
    assert desk(run) is None


def test_two_runs_side_by_side() -> None:
    """Both answers come first, then the other candidates; decisions join those of the first run."""
    a = run_of([[0.6, 0.3, 0.1], [0.9, 0.1, 0.0]])
    b = run_of([[0.1, 0.2, 0.7], [0.1, 0.9, 0.0]], path="other")
    found = desk_of_two((a, b), ("one", "two"), np.array([1, 0]))
    state = json.loads(json.dumps(found.state))
    assert state["key"].endswith(a.identity)
    assert state["items"] == [[1, [0, 1], []], [0, [0, 2, 1], []]]
    assert state["opinions"][1] == [{"run": "one", "label": 0, "share": 60}, {"run": "two", "label": 2, "share": 70}]


def test_who_named_a_label() -> None:
    run = run_of([[0.6, 0.4], [0.55, 0.45], [1.0, 0.0]])
    assert "annotators" not in made(run).state
    assert run.dataset is not None
    opinions = Opinions(("ann", "bob"), np.array([[5, 0, 0], [5, 1, 1], [3, 1, 0], [9, 0, 0]]), 10)
    run.dataset = replace(run.dataset, opinions=opinions, rows=np.array([3, 5, 9]))
    state = made(run).state
    assert [item[0] for item in state["items"]] == [1, 0]  # type: ignore[attr-defined]
    assert state["annotators"] == {"names": ["ann", "bob"], "said": [[0, 1], [1]]}
