"""Trees of classes: coarse labels in candidate sets, levels, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tool_files
from papi.data.own.annotations import read_annotations
from papi.data.own.entries import Rules
from papi.data.own.trees import Tree, read_tree
from papi.errors import UserError

TABLE = "label,parent\nrose,Rosaceae\napple,Rosaceae\nRosaceae,plants\ntulip,Liliaceae\nLiliaceae,plants\ncat,animals\n"
NESTED = {"plants": {"Rosaceae": ["rose", "apple"], "Liliaceae": {"tulip": {}}}, "animals": ["cat"]}


def tree(folder: Path) -> Tree:
    (folder / "tree.csv").write_text(TABLE)
    return read_tree(folder / "tree.csv")


def sets_of(folder: Path, text: str, rules: Rules, classes: tuple[str, ...] | None = None) -> list[set[str]]:
    path = folder / "labels.csv"
    path.write_text(text)
    found = read_annotations(path, rules, classes)
    return [{found.class_names[k] for k in np.flatnonzero(row)} for row in found.candidates]


def test_both_forms_are_one_tree(tmp_path: Path) -> None:
    (tmp_path / "tree.json").write_text(json.dumps(NESTED))
    nested = read_tree(tmp_path / "tree.json")
    assert dict(nested.parents) == dict(tree(tmp_path).parents)
    assert set(nested.leaves) == {"rose", "apple", "tulip", "cat"}
    assert nested.line("apple") == ["plants", "Rosaceae", "apple"]


def test_levels_go_from_the_top_down(tmp_path: Path) -> None:
    levels = tree(tmp_path).levels(("cat", "rose", "apple", "tulip"))
    assert levels == (
        ("animals", "plants", "plants", "plants"),
        ("cat", "Rosaceae", "Rosaceae", "Liliaceae"),  # a class that is less deep is its own group
    )


def test_a_coarse_label_stands_for_its_classes(tmp_path: Path) -> None:
    rules = Rules(tree=tree(tmp_path))
    text = "file_name,candidates\na,Rosaceae\nb,plants|cat\nc,rose|Rosaceae\nd,tulip\n"
    assert sets_of(tmp_path, text, rules) == [
        {"rose", "apple"}, {"rose", "apple", "tulip", "cat"}, {"rose", "apple"}, {"tulip"},
    ]  # fmt: skip


def test_coarse_exclusions_and_weights(tmp_path: Path) -> None:
    rules = Rules(tree=tree(tmp_path))
    text = "file_name,candidates,excluded\na,,Rosaceae\nb,plants,rose\n"
    assert sets_of(tmp_path, text, rules) == [{"tulip", "cat"}, {"apple", "tulip"}]
    (tmp_path / "w.csv").write_text("file_name,candidates\na,Rosaceae:0.6|tulip:0.4\nb,cat\n")
    found = read_annotations(tmp_path / "w.csv", rules)
    assert found.weights is not None
    share = dict(zip(found.class_names, found.weights[0].tolist(), strict=True))
    assert share == pytest.approx({"rose": 0.3, "apple": 0.3, "tulip": 0.4, "cat": 0})


def test_votes_agree_below_coarse_labels(tmp_path: Path) -> None:
    text = "file_name,annotator,label\na,ann,Rosaceae\na,bob,rose\nb,ann,cat\nb,bob,cat\n"
    assert sets_of(tmp_path, text, Rules("at-least-2", tree=tree(tmp_path))) == [{"rose"}, {"cat"}]


def test_an_export_with_coarse_labels(tmp_path: Path) -> None:
    path = tool_files.write(tmp_path, "cvat", {"a.png": {"": ["plants"]}, "b.png": {"": ["cat"]}})
    found = read_annotations(path, Rules(tree=tree(tmp_path)))
    assert found.candidates.sum(1).tolist() == [3, 1]


def test_classes_that_are_known_limit_the_tree(tmp_path: Path) -> None:
    rules = Rules(tree=tree(tmp_path))
    assert sets_of(tmp_path, "file_name,candidates\na,plants\nb,cat\n", rules, ("cat", "rose")) == [{"rose"}, {"cat"}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label,parent\na,b\nb,a\nc,\nd,\n", "line 2: 'a' is its own ancestor"),
        ("label,parent\na,b\na,c\n", "line 3 puts 'a' below 'c', but .*line 2 puts it below 'b'"),
        ("label,parent\n,b\n", "line 2 has a label that is empty"),
        ("label,parent\na,b\n", "1 labels without children"),
        ("label,above\na,b\n", "has no column 'parent'"),
        ("label,parent\n" + "".join(f"{k},{k + 1}\n" for k in range(40)), "more than 32 levels deep"),
    ],
)
def test_what_is_no_tree(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "tree.csv").write_text(text)
    with pytest.raises(UserError, match=message):
        read_tree(tmp_path / "tree.csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read as JSON"),
        ("3", "contains 3: use nested objects"),
        ('{"a": 5}', "contains 5"),
        ('{"a": ["b", 3]}', "nest"),
    ],
)
def test_what_is_no_nested_tree(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "tree.json").write_text(content)
    with pytest.raises(UserError, match=message):
        read_tree(tmp_path / "tree.json")


def test_labels_outside_the_tree_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"line 2: unknown label 'dog'"):
        sets_of(tmp_path, "file_name,candidates\na,dog\nb,cat\n", Rules(tree=tree(tmp_path)))
    with pytest.raises(UserError, match=r"has no class 'dog'"):
        tree(tmp_path).levels(("cat", "dog"))


names = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=4)


@given(st.lists(names, min_size=3, max_size=12, unique=True), st.data())
def test_every_label_stands_for_the_leaves_whose_line_it_is_on(labels: list[str], data: st.DataObject) -> None:
    parents: dict[str, str | None] = {labels[0]: None}
    for label in labels[1:]:
        parents[label] = data.draw(st.sampled_from([None, *parents]))
    found = Tree(Path("x"), parents)
    for label in labels:
        assert set(found.classes_for([label])) == {leaf for leaf in found.leaves if label in found.line(leaf)}
    for level in found.levels(found.leaves):
        assert all(group in found.line(leaf) for group, leaf in zip(level, found.leaves, strict=True))
