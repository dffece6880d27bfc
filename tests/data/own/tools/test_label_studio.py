"""Label Studio's own ways: several people, cancelled and repeated annotations, ratings, taxonomies, questions."""

import json
from pathlib import Path

import numpy as np
import pytest

from papi.data.own.annotation_arrays import Annotations
from papi.data.own.annotations import read_annotations
from papi.data.own.entries import Rules
from papi.errors import UserError
from tool_files import annotation, choices, task


def read(folder: Path, *tasks: dict[str, object], rules: Rules = Rules()) -> Annotations:  # noqa: B008
    path = folder / "export.json"
    path.write_text(json.dumps(tasks), "utf-8")
    return read_annotations(path, rules)


def sets_of(found: Annotations) -> list[set[str]]:
    return [{found.class_names[k] for k in np.flatnonzero(row)} for row in found.candidates]


def result(kind: str, value: object, question: str = "q") -> dict[str, object]:
    return {"from_name": question, "to_name": "image", "type": kind, "value": {kind: value}}


def test_several_people(tmp_path: Path) -> None:
    tasks = [
        task(1, "a.png", [annotation(1, choices(["rose"])), annotation(2, choices(["tulip", "rose"]))]),
        task(2, "b.png", [annotation({"id": 1, "email": "ann@x.org"}, choices(["tulip"]))]),
    ]
    found = read(tmp_path, *tasks)
    assert sets_of(found) == [{"rose", "tulip"}, {"tulip"}]
    assert found.annotators == ("1", "2", "ann@x.org")
    assert found.votes is not None
    assert found.votes.tolist() == [[2, 1], [0, 1]]
    assert sets_of(read(tmp_path, tasks[0], rules=Rules("at-least-2"))) == [{"rose"}]


def test_cancelled_annotations_are_skipped(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        task(1, "a.png", [annotation(1, choices(["rose"])), annotation(2, choices(["tulip"]), cancelled=True)]),
        task(2, "b.png", [annotation(2, choices(["violet"]))]),
    )
    assert sets_of(found) == [{"rose"}, {"violet"}]


def test_of_two_annotations_by_one_person_the_later_counts(tmp_path: Path) -> None:
    found = read(tmp_path, task(1, "a.png", [annotation(1, choices(["rose"])), annotation(1, choices(["tulip"]))]))
    assert sets_of(found) == [{"tulip"}]


def test_ratings_are_weights(tmp_path: Path) -> None:
    said = [
        annotation(1, choices(["rose"]), result("rating", 4)),
        annotation(2, choices(["tulip"]), result("rating", 1)),
        annotation(3, choices(["tulip"]), result("rating", 0)),  # no star: not rated
    ]
    found = read(tmp_path, task(1, "a.png", said))
    assert found.weights is not None
    assert found.weights.tolist() == [pytest.approx([4 / 6, 2 / 6])]


def test_a_taxonomy_names_the_end_of_each_path(tmp_path: Path) -> None:
    said = annotation(1, result("taxonomy", [["Plants", "rose"], ["Plants", "Bulbs", "tulip"]]))
    assert sets_of(read(tmp_path, task(1, "a.png", [said]))) == [{"rose", "tulip"}]


def test_one_of_several_questions(tmp_path: Path) -> None:
    said = annotation(1, choices(["rose"], "kind"), choices(["sharp"], "quality"))
    with pytest.raises(UserError, match=r"several questions \(kind, quality;.*--candidates.column"):
        read(tmp_path, task(1, "a.png", [said]))
    assert sets_of(read(tmp_path, task(1, "a.png", [said]), rules=Rules(column="quality"))) == [{"sharp"}]


def test_regions_beside_an_answer_for_the_image_do_not_matter(tmp_path: Path) -> None:
    box = {**result("rectanglelabels", ["petal"]), "value": {"x": 1, "y": 2, "rectanglelabels": ["petal"]}}
    assert sets_of(read(tmp_path, task(1, "a.png", [annotation(1, box, choices(["rose"]))]))) == [{"rose"}]
    with pytest.raises(UserError, match=r"annotation 1 labels regions but not the whole image"):
        read(tmp_path, task(1, "a.png", [annotation(1, box)]))


def test_an_image_under_another_name(tmp_path: Path) -> None:
    photo = {
        **task(1, "", [annotation(1, choices(["rose"]))]),
        "data": {"n": 3, "photo": "/data/local-files/?d=x/a.jpg"},
    }
    assert read(tmp_path, photo).file_names == ("/data/local-files/?d=x/a.jpg",)
