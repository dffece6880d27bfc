"""Names that look like several labels in one, or like one label in several spellings."""

import pytest

from papi.data.known.sources import SOURCES
from papi.data.own.names import alike, joined, suspicions


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["rose", "rose, tulip", "tulip"], {",": ["rose, tulip"]}),
        (["rose;tulip", "tulip;lily", "rose;lily"], {";": ["rose;tulip", "tulip;lily", "rose;lily"]}),
        (["rose|tulip", "rose", "tulip"], {"|": ["rose|tulip"]}),
        (["a/b", "b/c", "c/a"], {"/": ["a/b", "b/c", "c/a"]}),
        (["rose tulip", "rose", "tulip"], {" ": ["rose tulip"]}),
        (["Washington, D.C.", "Paris", "Rome"], {}),
        (["T-shirt/top", "Shirt", "Coat"], {}),
        (["red rose", "white rose", "red tulip"], {}),  # no part is a name of its own
        (["rose,", "rose", ","], {}),
        ([], {}),
    ],
)
def test_several_labels_in_one_name(names: list[str], found: dict[str, list[str]]) -> None:
    assert joined(names) == found


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["Rose", "rose", "roses", "tulip"], [("Rose", "rose", "roses")]),
        (["t-shirt", "T shirt", "t_shirt"], [("t-shirt", "T shirt", "t_shirt")]),
        (["café", "cafe"], [("café", "cafe")]),
        (["1", "1.0", "01", "2"], [("1", "1.0", "01")]),
        (["box", "boxes"], [("box", "boxes")]),
        (["as", "a"], []),  # two letters are no stem
        (["bar 0", "bar 1", "bar 10"], []),
        (["犬", "猫", "?", "!"], []),
        (["कि", "की"], []),
    ],
)
def test_one_label_in_several_spellings(names: list[str], groups: list[tuple[str, ...]]) -> None:
    assert alike(names) == groups


def test_sentences_name_the_labels_and_what_to_do() -> None:
    told = suspicions(["rose", "Rose", "tulip", "rose;tulip"], "--candidates.separator")
    assert len(told) == 2
    assert "'rose;tulip'" in told[0]
    assert "--candidates.separator ';'" in told[0]
    assert "'rose' and 'Rose'" in told[1]


def test_published_names_are_above_suspicion() -> None:
    for source in SOURCES.values():
        assert suspicions(source.class_names or (), "--separator") == ()
