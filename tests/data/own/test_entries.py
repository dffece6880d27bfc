"""Exclusions, statements of several people, and contradictions."""

from pathlib import Path

import numpy as np
import pytest

import tool_files
from papi.data.own.annotations import read_annotations
from papi.data.own.entries import Rules, Statement, gathered
from papi.errors import UserError


def sets_of(
    folder: Path, text: str, suffix: str = "csv", classes: tuple[str, ...] | None = None
) -> dict[str, set[str]]:
    path = folder / f"labels.{suffix}"
    path.write_text(text, "utf-8")
    found = read_annotations(path, Rules(), classes)
    return {
        name: {found.class_names[k] for k in np.flatnonzero(row)}
        for name, row in zip(found.file_names or (), found.candidates, strict=True)
    }


FLOWERS = ("lily", "rose", "tulip", "violet")


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        ("csv", "file_name,excluded\na,rose|tulip\nb,lily\n"),
        ("csv", 'file_name,excluded\na,"not rose, not tulip"\nb,not lily\n'),
        ("csv", "file_name,excluded\na,not rose|not tulip\nb,lily\n"),
        ("jsonl", '{"file_name": "a", "excluded": ["rose", "tulip"]}\n{"file_name": "b", "excluded": "not lily"}\n'),
        ("csv", 'file_name,candidates,excluded\na,,"not rose, not tulip"\nb,rose|tulip|violet,lily\n'),
        ("csv", "file_name,annotator,label,excluded\na,ann,,rose|tulip\na,bob,,rose|lily|tulip\nb,ann,,lily\n"),
    ],
)
def test_all_others_remain(suffix: str, text: str, tmp_path: Path) -> None:
    expected = {"a": {"lily", "violet"}, "b": {"rose", "tulip", "violet"}}
    assert sets_of(tmp_path, text, suffix, FLOWERS) == expected


def test_classes_are_found_in_exclusions_too(tmp_path: Path) -> None:
    text = "file_name,candidates,excluded\na,rose,\nb,,tulip\nc,violet|rose,\n"
    assert sets_of(tmp_path, text) == {"a": {"rose"}, "b": {"rose", "violet"}, "c": {"violet", "rose"}}


def test_a_class_whose_name_begins_with_not(tmp_path: Path) -> None:
    assert sets_of(tmp_path, "file_name,excluded\na,not a flower\n", classes=("not a flower", "rose")) == {
        "a": {"rose"}
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file_name,candidates,excluded\na,rose|tulip,tulip\n", r"labels.csv, line 2 both names and excludes 'tulip'"),
        ("file_name,excluded\na,lily|rose|tulip|violet\n", r"labels.csv, line 2: .*candidate"),
        ("file_name,excluded\na,daisy\n", r"labels.csv, line 2: unknown label 'daisy'"),
        ("file_name,excluded,label\na,rose,rose\n", r"labels.csv, line 2: the true label 'rose' is not among"),
        ("file_name,excluded\na,rose||tulip\n", r"labels.csv, line 2 has an empty name"),
        ('file_name,excluded\na,"[3.5]"\n', r"labels.csv, line 2 has exclusions that are not a list"),
        ("file_name,annotator,label,excluded\na,ann,rose,rose\n", r"labels.csv, line 2 both names and excludes 'rose'"),
    ],
)
def test_contradictions(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        sets_of(tmp_path, text, classes=FLOWERS)


def test_what_one_names_another_cannot_exclude() -> None:
    said = [Statement("1", "a", "ann", ("rose",)), Statement("2", "a", "bob", ("tulip",), excluded=("rose",))]
    (entry,) = gathered(said, Rules())
    assert sorted(entry.candidates) == ["rose", "tulip"]
    assert entry.excluded == []


def test_sure_people_count_more() -> None:
    said = [Statement("1", "a", "ann", ("rose",), sureness=4), Statement("2", "a", "bob", ("tulip", "rose"))]
    (entry,) = gathered(said, Rules())
    assert entry.weights == pytest.approx({"rose": 4.5, "tulip": 0.5})
    assert entry.votes == {"rose": 2, "tulip": 1}


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        ("csv", "file_name,candidates\na,rose|tulip\nb,\nc,?\nd,*\ne,violet\n"),
        ("csv", "file_name,rose,tulip,violet\na,1,1,0\nb,0,0,0\nc,,,\nd,0,0,0\ne,0,0,1\n"),
        ("csv", "file_name,annotator,label\na,x,rose|tulip\nb,x,\nc,x,?\nd,y,*\ne,x,violet\n"),
        ("jsonl", '{"file_name": "a", "candidates": ["rose", "tulip"]}\n{"file_name": "b"}\n'
                  '{"file_name": "c", "candidates": []}\n{"file_name": "d", "candidates": "*"}\n'
                  '{"file_name": "e", "candidates": "violet"}\n'),
    ],
)  # fmt: skip
def test_unlabelled_images_when_asked_for(suffix: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / f"labels.{suffix}"
    path.write_text(text, "utf-8")
    found = read_annotations(path, Rules(unlabelled=True))
    assert found.candidates.sum(1).tolist() == [2, 3, 3, 3, 1]
    assert any("3 of 5 rows" in note and "1 rows have only one candidate" in note for note in found.notes)
    with pytest.raises(UserError, match=r"line [0-9]"):
        read_annotations(path, Rules())


def test_unlabelled_rows_of_arrays_and_exports(tmp_path: Path) -> None:
    np.savez(tmp_path / "sets.npz", candidates=np.array([[1, 0], [0, 0], [0, 1]]), file_names=["a", "b", "c"])
    assert read_annotations(tmp_path / "sets.npz", Rules(unlabelled=True)).candidates.sum(1).tolist() == [1, 2, 1]
    export = tool_files.write(tmp_path, "label-studio", {"a": {"ann": ["rose"]}, "b": {}, "c": {"ann": ["tulip"]}})
    assert read_annotations(export, Rules(unlabelled=True)).candidates.sum(1).tolist() == [1, 2, 1]


def test_a_class_may_be_called_like_that(tmp_path: Path) -> None:
    assert sets_of(tmp_path, "file_name,candidates\na,?\n", classes=("?", "rose")) == {"a": {"?"}}
    assert sets_of(tmp_path, 'file_name,candidates\na,"[""?""]"\nb,rose\n') == {"a": {"?"}, "b": {"rose"}}
