"""decisions.csv while a server writes it."""

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papi.errors import UserError
from papi.report.ledger import Ledger
from papi.report.run import Run
from papi.runs.decisions import Answer, read_answers, table_of
from runs_in_memory import run_of


def many(count: int = 50) -> Run:
    return run_of([[0.5, 0.3, 0.2]] * count)


def read(file: Path, count: int = 50) -> dict[int, Answer]:
    return read_answers(file, count, ("a", "b", "c"), None)


def test_changes_are_on_disk_when_they_are_answered(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "decisions.csv", many())
    first = ledger.exchange({"version": -1, "changes": []})
    assert first["decisions"] == []
    assert not (tmp_path / "decisions.csv").exists()
    answer = ledger.exchange({"version": first["version"], "changes": [[3, "label", [1], "sure"], [7, "bad"]]})
    assert "decisions" not in answer  # nothing was missed
    assert read(tmp_path / "decisions.csv") == {3: Answer("label", (1,)), 7: Answer("bad")}
    ledger.exchange({"version": 0, "changes": [[3, None], [8, "several", [2, 0]]]})
    assert read(tmp_path / "decisions.csv") == {7: Answer("bad"), 8: Answer("several", (0, 2))}


def test_what_is_decided_anew_is_the_last(tmp_path: Path) -> None:
    """Undo takes back what comes last; a new note alone moves nothing."""
    ledger = Ledger(tmp_path / "decisions.csv", many())
    ledger.exchange({"version": 0, "changes": [[1, "label", [0]], [2, "label", [0]]]})
    ledger.exchange({"version": 0, "changes": [[1, "label", [0], "a note"]]})
    assert list(ledger.answers) == [1, 2]
    assert read(tmp_path / "decisions.csv")[1].note == "a note"
    ledger.exchange({"version": 0, "changes": [[1, "label", [1]]]})
    assert list(ledger.answers) == [2, 1]


def test_who_missed_something_is_told_everything(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "decisions.csv", many())
    version = ledger.exchange({"version": -1, "changes": []})["version"]
    ledger.exchange({"version": version, "changes": [[1, "skip"]]})
    told = ledger.exchange({"version": version, "changes": [[2, "none"]]})
    assert told["decisions"] == [[1, "skip", [], ""], [2, "none", [], ""]]


def test_another_program_may_write_too(tmp_path: Path) -> None:
    file = tmp_path / "decisions.csv"
    here, there = Ledger(file, many()), Ledger(file, many())
    here.exchange({"version": 0, "changes": [[1, "skip"]]})
    there.exchange({"version": 0, "changes": [[2, "bad"]]})
    here.exchange({"version": 0, "changes": [[3, "none"]]})
    assert sorted(read(file)) == [1, 2, 3]
    file.write_bytes(table_of({9: Answer("bad")}, ("a", "b", "c"), None))
    assert here.exchange({"version": 0, "changes": []})["decisions"] == [[9, "bad", [], ""]]


def test_many_at_once_lose_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "decisions.csv", many(80))

    def decide(start: int) -> None:
        for index in range(start, 80, 4):
            ledger.exchange({"version": 0, "changes": [[index, "label", [index % 3]]]})

    threads = [threading.Thread(target=decide, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read(tmp_path / "decisions.csv", 80) == {index: Answer("label", (index % 3,)) for index in range(80)}


def test_a_disk_that_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change is refused with a sentence, and what was saved before stays."""
    ledger = Ledger(tmp_path / "decisions.csv", many())
    ledger.exchange({"version": 0, "changes": [[1, "skip"]]})
    before = (tmp_path / "decisions.csv").read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UserError, match=r"decisions\.csv cannot be written \(No space left on device\)"):
        ledger.exchange({"version": 0, "changes": [[2, "bad"]]})
    assert (tmp_path / "decisions.csv").read_bytes() == before
    assert list(ledger.answers) == [1]
    monkeypatch.undo()
    ledger.exchange({"version": 0, "changes": [[2, "bad"]]})
    assert list(read(tmp_path / "decisions.csv")) == [1, 2]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.one_of(JSON, st.fixed_dictionaries({"changes": st.lists(JSON, max_size=3)})))
def test_any_message_is_understood_or_refused(message: object) -> None:
    ledger = Ledger(Path("/nowhere/decisions.csv"), many(3))
    try:
        ledger.exchange(message)
    except ValueError:
        assert ledger.answers == {}
