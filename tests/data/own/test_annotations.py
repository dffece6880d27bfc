"""Candidate sets in every form people bring them, written by us and by them, good and bad."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation_files import write_annotations
from papi.data.own.annotations import Rules, read_annotations
from papi.data.own.tables import read_table
from papi.data.own.votes import vote_shares
from papi.errors import UserError


def write(folder: Path, text: str, name: str = "labels.csv", encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def sets_of(path: Path, votes: str = "union", **options: bool) -> dict[str, set[str]]:
    """File name → candidates."""
    found = read_annotations(path, Rules(votes, **options))
    assert found.file_names is not None
    return {
        name: {found.class_names[k] for k in np.flatnonzero(row)}
        for name, row in zip(found.file_names, found.candidates, strict=True)
    }


EXPECTED = {"a.png": {"cat", "dog"}, "b.png": {"dog"}, "c.png": {"bird", "cat"}}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("l.csv", "file_name,candidates\na.png,cat|dog\nb.png,dog\nc.png,cat|bird\n"),
        ("l.csv", "\ufefffile_name,candidates\r\na.png,cat|dog\r\nb.png,dog\r\n\r\nc.png,cat|bird\r\n"),
        ("l.csv", 'candidates,file_name,note\n"cat|dog",a.png,"one, two"\n dog ,b.png,\n cat | bird,c.png,"x\ny"\n'),
        ("l.csv", 'file_name,candidates\na.png,"[""cat"", ""dog""]"\nb.png,"[""dog""]"\nc.png,cat|bird\n'),
        ("l.csv", "file_name,bird,cat,dog\na.png,0,1,1\nb.png,0,0,1\nc.png,1,1,0\n"),
        ("l.jsonl", '{"file_name": "a.png", "candidates": ["cat", "dog"]}\n\n'
                    '{"file_name": "b.png", "candidates": "dog"}\n{"file_name": "c.png", "candidates": "cat|bird"}\n'),
    ],
)  # fmt: skip
def test_forms_of_one_table(name: str, text: str, tmp_path: Path) -> None:
    assert sets_of(write(tmp_path, text, name)) == EXPECTED


def test_a_class_with_the_separator_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    write_annotations(path, ["a"], np.array([[True, True]]), ["on|off", "[x]"])
    assert sets_of(path) == {"a": {"on|off", "[x]"}}


names = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="\r\n"), min_size=1, max_size=6)


@given(
    st.lists(names, min_size=2, max_size=5, unique=True),
    st.lists(names, min_size=1, max_size=6, unique=True),
    st.data(),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "npz"])
def test_what_we_write_reads_back(
    suffix: str, tmp_path: Path, class_names: list[str], files: list[str], data: st.DataObject
) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    rows = st.lists(st.booleans(), min_size=len(class_names), max_size=len(class_names)).filter(any)
    sets = np.array([data.draw(rows) for _ in files])
    labels = np.array([data.draw(st.sampled_from(np.flatnonzero(row).tolist())) for row in sets])
    test = np.array([data.draw(st.booleans()) for _ in files])
    path = tmp_path / f"sets.{suffix}"
    write_annotations(path, files, sets, class_names, labels, test)
    found = read_annotations(path, Rules())
    assert found.file_names == tuple(files)
    assert found.test.tolist() == test.tolist()
    for row, (mine, theirs) in enumerate(zip(sets, found.candidates, strict=True)):
        assert {class_names[k] for k in np.flatnonzero(mine)} == {found.class_names[k] for k in np.flatnonzero(theirs)}
        assert class_names[labels[row]] == found.class_names[found.labels[row]]


def test_numbers_are_labels_too_and_sort_as_numbers(tmp_path: Path) -> None:
    path = write(
        tmp_path, '{"file_name": "a", "candidates": [10, 9]}\n{"file_name": "b", "candidates": 2}\n', "l.jsonl"
    )
    found = read_annotations(path, Rules())
    assert found.class_names == ("2", "9", "10")


def test_true_labels_and_splits(tmp_path: Path) -> None:
    path = write(tmp_path, "file_name,candidates,label,split\na,cat|dog,dog,train\nb,cat,,\nc,,cat,test\n")
    found = read_annotations(path, Rules())
    assert found.labels.tolist() == [1, -1, 0]
    assert found.test.tolist() == [False, False, True]


VOTES = "file_name,annotator,label\na,ann,cat\na,bob,dog\na,eve,cat\nb,ann,cat|bird\nb,bob,bird\nb,ann,dog\n"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("union", {"a": {"cat", "dog"}, "b": {"cat", "bird", "dog"}}),
        ("at-least-2", {"a": {"cat"}, "b": {"bird"}}),
        ("vaguest", {"a": {"cat"}, "b": {"cat", "bird", "dog"}}),
    ],
)
def test_votes_in_a_long_table(rule: str, expected: dict[str, set[str]], tmp_path: Path) -> None:
    assert sets_of(write(tmp_path, VOTES), rule) == expected


def test_votes_are_counted(tmp_path: Path) -> None:
    found = read_annotations(write(tmp_path, VOTES), Rules("at-least-2"))
    assert found.votes is not None
    shares = vote_shares(found.votes, found.candidates)
    assert shares.sum(1) == pytest.approx(1)
    assert not shares[~found.candidates].any()


def test_counts_by_class(tmp_path: Path) -> None:
    path = write(tmp_path, "file_name,cat,dog,bird\na,3,1,0\nb,0,2,2\n")
    assert sets_of(path) == {"a": {"cat", "dog"}, "b": {"dog", "bird"}}
    assert sets_of(path, "at-least-2") == {"a": {"cat"}, "b": {"dog", "bird"}}
    shares = vote_shares(np.array([[3, 1, 0]]), np.array([[True, True, False]]))
    assert shares == pytest.approx(np.array([[0.7, 0.3, 0]]))


def test_counts_as_arrays(tmp_path: Path) -> None:
    path = tmp_path / "votes.npz"
    np.savez(path, counts=np.array([[48, 3, 0], [0, 1, 50]], np.uint8))
    found = read_annotations(path, Rules("at-least-2"), by_name=False)
    assert found.candidates.tolist() == [[True, True, False], [False, False, True]]
    with pytest.raises(UserError, match="vote counts without annotators"):
        read_annotations(path, Rules("vaguest"), by_name=False)


HEAD = "file_name,candidates,label\na,cat|dog,cat\n"

BAD = {
    "unknown label": (HEAD + "b,cat|dog,dgo\n", r"line 3: unknown label 'dgo': did you mean 'dog'"),
    "empty candidate set": (HEAD + "b,,\n", r"line 3: the candidate set is empty"),
    "empty name": (HEAD + "b,cat||dog,\n", r"line 3 has an empty name among its candidates"),
    "candidate twice": (HEAD + "b,cat|cat,\n", r"line 3 lists the candidate 'cat' twice"),
    "truth outside its set": (HEAD + "b,cat,dog\n", r"line 3: the true label 'dog' is not among the candidates"),
    "same file twice": (HEAD + "a,dog,\n", r"line 3 and .*line 2 both describe 'a'"),
    "missing column": ("file,candidates\na,cat|dog\n", r"has no column 'file_name', .*did you mean 'file'"),
    "misspelt candidates": ("file_name,canddiates\na,cat|dog\n", r"no column 'candidates', .*you mean 'canddiates'"),
    "votes without end": ("file_name,ant,bee\na,2,1\nb,inf,1\n", r"line 3 .*inf"),
    "column twice": ("file_name,candidates,candidates\na,b,c\n", r"line 1 has the column 'candidates' twice"),
    "cells": (HEAD + "b,cat\n", r"line 3 has 2 cells, but the header has 3"),
    "open quote": (HEAD + 'b,"cat,dog\n', r"line 3 is not valid csv"),
    "nothing": ("", r"is empty"),
    "header alone": ("file_name,candidates\n", r"labels.csv has no usable rows"),
    "header of classes alone": ("file_name,cat,dog\n", r"labels.csv has no usable rows"),
    "spaces": ("file_name candidates\na cat|dog\n", r"has no column 'file_name'"),
    "nameless class": ("file_name,cat,dog,\na,1,0,\n", r"labels.csv has a column without a name"),
    "split": ("file_name,candidates,split\na,cat|dog,tset\n", r"line 2: unknown split 'tset': did you mean 'test'"),
    "test row": ("file_name,candidates,split\na,cat|dog,test\n", r"line 2 is a test row without a true label"),
    "class column": ("file_name,cat,dog\na,1,0\nb,yes,0\n", r"line 3 has 'yes' in the column 'cat'"),
    "vote twice": (VOTES + "a,ann,cat\n", r"line 8 repeats the vote of annotator 'ann' for 'cat' on 'a'"),
    "vote for nothing": (VOTES + "a,,cat\n", r"line 8 needs a file_name, an annotator and a label"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_tables(name: str, tmp_path: Path) -> None:
    text, message = BAD[name]
    with pytest.raises(UserError, match=message):
        read_annotations(write(tmp_path, text), Rules())


def test_wrong_encoding_names_the_line(tmp_path: Path) -> None:
    path = write(tmp_path, "file_name,candidates\na,cat|dog\nb,kätzchen\n", encoding="latin-1")
    with pytest.raises(UserError, match=r"labels.csv, line 3 is not UTF-8 \(byte 0xe4\)"):
        read_annotations(path, Rules())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 is not valid JSON"),
        ("[1]", "line 2 is not a JSON object"),
        ('{"file_name": "b", "candidates": {"cat": "1"}}', "line 2 has candidates without a number for each label"),
        ('{"file_name": "b", "candidates": [null]}', "line 2 has candidates that are not a list of labels"),
        ('{"file_name": "b", "candidates": []}', "line 2: the candidate set is empty"),
        ('{"file_name": "b"}', "line 2: the candidate set is empty"),
        ('{"file_name": "b\\udcff", "candidates": ["cat"]}', "line 2 has half a character"),
        ('{"file_name": "b", "candidates": ["cat\\ud83d"]}', "line 2 has half a character"),
    ],
)
def test_bad_json(line: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps({"file_name": "a", "candidates": ["cat", "dog"]}) + f"\n{line}\n", "l.jsonl")
    with pytest.raises(UserError, match=message):
        read_annotations(path, Rules())


def test_escapes_in_json_are_letters(tmp_path: Path) -> None:
    path = write(tmp_path, '{"file_name": "a", "candidates": ["k\\u00e4tzchen", "\\ud83d\\ude00"]}\n', "l.jsonl")
    assert sets_of(path) == {"a": {"kätzchen", "😀"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "l.jsonl is empty: write one JSON object per line"),
        ("\n \n", "l.jsonl is empty"),
        ("{\n[1]\n", "l.jsonl has no usable rows"),
    ],
)
def test_json_without_rows(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        read_annotations(write(tmp_path, text, "l.jsonl"), Rules(report=lambda problem: None))


def test_missing_truth_can_be_allowed_and_is_counted(tmp_path: Path) -> None:
    path = write(tmp_path, HEAD + "b,cat,dog\n")
    found = read_annotations(path, Rules(allow_missing_truth=True))
    assert found.notes == (f"1 of 2 rows in {path} have a true label that is not a candidate.",)


def test_all_problems_can_be_collected(tmp_path: Path) -> None:
    problems: list[str] = []
    path = write(tmp_path, HEAD + "b,,\nc,cat|cat,\na,dog,\nd,dog,dog\n")
    found = read_annotations(path, Rules(report=problems.append))
    assert [problem.split("line ")[1][0] for problem in problems] == ["4", "3", "5"]
    assert found.file_names == ("a", "d")


def test_no_label_with_enough_votes(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"labels.csv, line 8: no label has enough votes"):
        read_annotations(write(tmp_path, VOTES + "c,ann,dog\n"), Rules("at-least-2"))
    # The true label is none of the classes that are left; that is not what has to be said.
    truth = "file_name,annotator,label,true_label\na,ann,cat,\na,bob,cat,\nb,ann,dog,dog\n"
    with pytest.raises(UserError, match=r"labels.csv, line 4: no label has enough votes"):
        read_annotations(write(tmp_path, truth), Rules("at-least-2"))


@pytest.mark.parametrize(
    ("text", "most"),
    [
        (VOTES, 2),
        ("file_name,annotator,label,true_label\na,ann,violet,violet\n", 1),
        ("file_name,cat,dog\na,3,1\nb,0,2\n", 3),
        ("file_name,cat,dog\na,1,1\nb,0,1\n", 1),
    ],
)
def test_no_label_at_all_with_enough_votes(text: str, most: int, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"no label in .*labels.csv has 9 votes, the maximum is {most}:"):
        read_annotations(write(tmp_path, text), Rules("at-least-9"))


def test_no_array_with_enough_votes(tmp_path: Path) -> None:
    np.savez(tmp_path / "l.npz", counts=np.array([[3, 1], [0, 2]]))
    with pytest.raises(UserError, match=r"no label in .*l.npz has 9 votes, the maximum is 3:"):
        read_annotations(tmp_path / "l.npz", Rules("at-least-9"), by_name=False)


@pytest.mark.parametrize("rule", ["at-least-2", "at-least-1", "vaguest"])
def test_a_rule_for_votes_without_votes(rule: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"labels.csv has no votes: leave out --candidates.votes"):
        read_annotations(write(tmp_path, HEAD), Rules(rule))
    np.savez(tmp_path / "l.npz", candidates=np.eye(2))
    with pytest.raises(UserError, match=r"l.npz has no votes: leave out --candidates.votes"):
        read_annotations(tmp_path / "l.npz", Rules(rule), by_name=False)


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint64, np.float16, np.float64])
def test_zero_and_one_of_any_type(kind: type, tmp_path: Path) -> None:
    np.savez(tmp_path / "l.npz", candidates=np.eye(2, dtype=kind))
    assert np.array_equal(read_annotations(tmp_path / "l.npz", Rules(), by_name=False).candidates, np.eye(2))
    np.savez(tmp_path / "l.npz", counts=np.eye(2, dtype=kind))
    assert np.array_equal(read_annotations(tmp_path / "l.npz", Rules(), by_name=False).candidates, np.eye(2))


FRACTION = np.array([[1, 0, 1], [0, 1, 0], [1, 0.6, 0.6]])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"candidate": np.ones((2, 2))}, "has no array 'candidates', .*did you mean 'candidate'"),
        ({"candidates": np.ones(2)}, "N x K array of 0 or 1"),
        ({"candidates": np.array([[1, 1], [0, 0]])}, "row 2: the candidate set is empty"),
        ({"candidates": FRACTION}, r"l.npz: row 3 of candidates must contain 0 or 1; got 0.6"),
        ({"candidates": FRACTION * 2 // 1}, r"row 1 of candidates must contain 0 or 1; got 2.0"),
        ({"candidates": np.array([[1, 0], [np.nan, 1]])}, r"row 2 of candidates must contain 0 or 1; got nan"),
        ({"candidates": np.array([[1, 0], [1, -1]])}, r"row 2 of candidates must contain 0 or 1; got -1"),
        ({"counts": FRACTION}, r"row 3 of counts must contain whole numbers of votes; got 0.6"),
        ({"counts": np.array([[1, 0], [np.nan, 1]])}, r"row 2 of counts must contain whole numbers of votes; got nan"),
        ({"counts": np.array([[1, 0], [np.inf, 1]])}, r"row 2 of counts must contain whole numbers of votes; got inf"),
        ({"counts": np.array([[1, 0], [3, -2]])}, r"row 2 of counts must contain whole numbers of votes; got -2"),
        ({"candidates": np.eye(2), "class_names": np.array(["a", "a"])}, "l.npz lists the class 'a' twice"),
        ({"candidates": np.eye(2), "class_names": np.array(["a", " "])}, "name 2 of class_names .* got ' '"),
        ({"candidates": np.eye(2), "class_names": np.array(["a\udcff", "b"])}, r"l.npz .*texts that are not Unicode"),
        ({"candidates": np.eye(2), "class_names": np.array("ab")}, "class_names .* must be a list of strings"),
        ({"candidates": np.eye(2), "class_names": np.array([b"a", b"b"])}, "class_names .* must be a list of strings"),
        ({"candidates": np.ones((2, 2)), "labels": np.array([0, 5])}, "row 2 of labels of .* got 5"),
        (
            {"candidates": np.ones((2, 2)), "file_names": np.array(["a"])},
            "2 rows of candidates, but file_names has shape",
        ),
        ({"candidates": np.ones((2, 2)), "class_names": np.array(["a"])}, "2 columns of candidates for 1 classes"),
        ({"candidates": np.ones((2, 2)), "split": np.array(["train", "tset"])}, "unknown split 'tset'"),
        ({"candidates": np.array([[1, None]], object)}, "cannot be read"),
        ({"weights": np.ones(2)}, "N x K array of numbers of zero or more"),
        ({"weights": np.array([[0.5, -1]])}, r"row 1 of weights must contain numbers of zero or more; got -1.0"),
        ({"probabilities": np.array([[1, 0], [np.nan, 1]])}, r"row 2 of probabilities .* got nan"),
        ({"weights": np.array([[0.5, 1], [0, 0]])}, "row 2: the candidate set is empty"),
        (
            {"weights": np.eye(2), "candidates": np.eye(2)[::-1]},
            "row 1 of weights has no value above zero for its cand",
        ),
        (
            {"weights": np.eye(2), "candidates": np.ones((3, 2))},
            r"candidates of shape \(3, 2\) but weights of shape \(2, 2\)",
        ),
        ({"weights": np.eye(2), "counts": np.eye(2)}, "both weights and counts: leave one out"),
        ({"weights": np.eye(2), "probabilities": np.eye(2)}, "both weights and probabilities: leave one out"),
    ],
)
def test_bad_arrays(arrays: dict[str, np.ndarray], message: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "l.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=message):
        read_annotations(tmp_path / "l.npz", Rules(), by_name=False)


def test_no_table(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"use .csv, .tsv, .jsonl, .parquet, .xlsx, .npz"):
        read_annotations(write(tmp_path, "x", "labels.doc"), Rules())
    with pytest.raises(UserError, match="cannot be read"):
        read_annotations(tmp_path / "nothing.csv", Rules())


def test_parquet_needs_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(UserError, match=r"pip install 'papi-pll\[parquet\]'"):
        read_table(tmp_path / "l.parquet", lambda problem: None)


def test_damaged_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    with pytest.raises(UserError, match="is not a readable parquet file"):
        read_table(write(tmp_path, "PAR1 and then nothing", "l.parquet"), lambda problem: None)
