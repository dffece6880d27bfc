"""Every tool: what people said comes out as it went in, and what is damaged is told by file and place."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tool_files
from papi.data.own.annotations import read_annotations
from papi.data.own.entries import Rules
from papi.data.own.tools.formats import FORMATS
from papi.errors import UserError

TOOLS = list(tool_files.WRITERS)
texts = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=6)
# A weight after a colon and several labels in a cell are forms of our own tables; a csv of answers may hold them, too.
labels = texts.filter(lambda name: not set(name) & set(":|[{") and name not in "?*")
said = st.dictionaries(
    texts.map(lambda name: f"{name.replace('/', '-')}.png"),
    st.dictionaries(texts, st.lists(labels, min_size=1, max_size=3, unique=True), min_size=1, max_size=3),
    min_size=1,
    max_size=5,
)


def sets_of(path: Path, rules: Rules = Rules()) -> dict[str, set[str]]:  # noqa: B008
    """File → candidates."""
    found = read_annotations(path, rules)
    assert found.file_names is not None
    return {
        name: {found.class_names[k] for k in np.flatnonzero(row)}
        for name, row in zip(found.file_names, found.candidates, strict=True)
    }


def test_every_format_has_a_name() -> None:
    assert set(FORMATS) == {"table", *TOOLS}


@pytest.mark.parametrize("tool", TOOLS)
@given(said)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_people_say_reads_back(tool: str, tmp_path: Path, answers: tool_files.Said) -> None:
    path = tool_files.write(tmp_path, tool, answers)
    prefix = "/data/upload/1/0123abcd-" if tool == "label-studio" else ""
    expected = {prefix + file: set(tool_files.together(by)) for file, by in answers.items()}
    assert sets_of(path) == expected
    assert sets_of(path, Rules(format=tool)) == expected
    if tool in ("label-studio", "crowd"):
        found = read_annotations(path, Rules())
        assert found.votes is not None
        assert found.opinions is not None
        assert (
            found.votes.sum()
            == len(found.opinions)
            == sum(len(set(each)) for by in answers.values() for each in by.values())
        )
        for row, annotator, label in found.opinions.tolist():
            file = (found.file_names or ())[row].removeprefix(prefix)
            assert found.class_names[label] in answers[file][found.annotators[annotator]]


GOOD = {"a.png": {"ann": ["rose", "tulip"]}, "b.png": {"ann": ["tulip"], "bob": ["violet"]}}


def spoilt(tool: str, old: str, new: str) -> str:
    text = tool_files.WRITERS[tool][0](GOOD)
    assert old in text, old
    return text.replace(old, new, 1)


MALFORMED = {
    "label-studio": [
        ("", "line 1, column 1 is not valid JSON"),
        ("[", "line 1, column 2 is not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('[{"id": 1, "image": "a.png", "choice": "rose"}]', "not the JSON of a supported tool"),
        (
            spoilt("label-studio", '"data": {"image": "/data/upload/1/0123abcd-b', '"date": {"image": "b'),
            "task 2 has no data",
        ),
        (
            spoilt("label-studio", '{"image": "/data/upload/1/0123abcd-a.png"}', '{"text": "good"}'),
            r"task 1 \(id 1\) has no image",
        ),
        (
            spoilt("label-studio", '"result": [', '"result": 5, "other": ['),
            r"task 1 \(id 1\), annotation 1 has a result that is not a list",
        ),
        (
            spoilt("label-studio", '"value": {"choices": ["rose", "tulip"]}', '"value": 3'),
            "annotation 1 has a result without a value",
        ),
        (
            spoilt("label-studio", '["rose", "tulip"]', '["rose", 5]'),
            "annotation 1 has choices that are not a list of labels",
        ),
        (
            spoilt("label-studio", '{"choices": ["rose", "tulip"]}', '{"choices": ["rose"], "x": 3, "y": 4}'),
            "annotation 1 answers 'choice' for a region",
        ),
        (
            spoilt("label-studio", '"from_name": "choice"', '"from_name": "other"'),
            r"several questions \(other, choice; see .*task 2",
        ),
        (
            spoilt("label-studio", '"annotations": [{', '"annotations": 3, "old": [{'),
            r"task 1 \(id 1\) has annotations that are not a list",
        ),
        (
            spoilt("label-studio", '["rose", "tulip"]', '["\\ud800"]'),
            r"task 1 \(id 1\), annotation 1 has the class .* not valid UTF-8",
        ),
    ],
    "cvat": [
        ("", "line 1 is not valid XML"),
        ("<annotations>", "line 1 is not valid XML"),
        ("<html></html>", "line 1 begins with <html>"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><annotations>&x;</annotations>', "line 1 declares a document type"),
        ("<annotations><image id='0'><tag label='rose'/></image></annotations>", "line 1 has an image without a name"),
        ("<annotations>\n<image name='a.png'><tag/></image></annotations>", "line 2 has a tag without a label"),
        (
            "<annotations>\n<image name='a.png'><box label='rose'/></image></annotations>",
            "line 2 has shapes but no tags",
        ),
        ("<annotations>\n\n<track id='0'></track></annotations>", "line 3 has tracks"),
        (spoilt("cvat", "</image>", "</picture>"), "line 10 is not valid XML"),
        (spoilt("cvat", "rose", "&rose;"), "line 6 is not valid XML"),
        (spoilt("cvat", 'label="rose"', 'label="rose'), "line 6 is not valid XML"),
        ("<annotations><image name='a.png'/></annotations>", "has no labels"),
    ],
    "coco": [
        ("{", "line 1, column 2 is not valid JSON"),
        ('{"images": [], "annotations": []}', "not the JSON of a supported tool"),
        ('{"images": {}, "annotations": [], "categories": []}', "images in .* must be a list"),
        ('{"images": [1], "annotations": [], "categories": []}', "images 1 must be an object"),
        (spoilt("coco", '"id": 11, "file_name"', '"id": 10, "file_name"'), "images 2 has the id 10"),
        (spoilt("coco", '"file_name": "a.png"', '"file_name": 3'), "images 1 has no file_name"),
        (spoilt("coco", '"name": "rose"', '"name": ""'), "categories 1 has no name"),
        (spoilt("coco", '"image_id": 10', '"image_id": 99'), "annotation 1 has the image_id 99"),
        (spoilt("coco", '"category_id": 1', '"category_id": null'), "annotation 1 has the category_id None"),
        (
            spoilt("coco", '"category_id": 1', '"category_id": 1, "bbox": [1, 2, 3, 4]'),
            "annotation 1 marks a region of 'a.png'",
        ),
        (
            spoilt("coco", '"category_id": 1', '"category_id": 1, "segmentation": [[1, 2, 3, 4]]'),
            "annotation 1 marks a region",
        ),
    ],
    "via": [
        ("filename,file_attributes\n", "has no labels"),
        ('filename,file_attributes\na.png,"{"\n', "line 2 has file_attributes that are not a JSON object"),
        ("filename,file_attributes\na.png,[]\n", "line 2 has file_attributes that are not a JSON object"),
        ("filename,file_attributes\n,{}\n", "line 2 has no filename"),
        ('filename,file_attributes\na.png,"{""f"": 3}"\n', "line 2 has 3 for the attribute 'f'"),
        ('filename,file_attributes\na.png,"{""f"": {""rose"": 1}}"\n', "line 2 has .* for the attribute 'f'"),
        ("filename,file_attributes\na.png\n", "line 2 has 1 cells"),
        ('filename,file_attributes\na.png,"{}\n', "line 2 is not valid csv"),
        (
            'filename,file_attributes\na.png,"{""f"": ""rose""}"\na.png,"{""f"": ""tulip""}"\n',
            "line 3 has other file_attributes for 'a.png'",
        ),
        (
            'filename,file_attributes\na.png,"{""f"": ""rose"", ""g"": ""big""}"\n',
            r"several attributes \(f, g; see .*line 2",
        ),
        (
            'filename,file_attributes,region_attributes\na.png,{},"{""f"": ""rose""}"\n',
            "line 2 has labels of regions, but none of the file 'a.png'",
        ),
    ],
    "crowd": [
        ("task,worker,label\n", "no usable rows"),
        ("task,worker,label\na.png,ann\n", "line 2 has 2 cells"),
        ("task,worker,label\na.png,,rose\n", "line 2 needs a file_name, an annotator and a label"),
        ("task,worker,label\n,ann,rose\n", "line 2 needs a file_name, an annotator and a label"),
        ("task,worker,label\na.png,ann,\n", "line 2 needs a file_name, an annotator and a label"),
        (
            "task,worker,label\na.png,ann,rose\na.png,ann,rose\n",
            "line 3 repeats the vote of annotator 'ann' for 'rose'",
        ),
        ("task,worker,label\na.png,ann,rose||tulip\n", "line 2 has an empty name among its candidates"),
        (
            "task,worker,label\na.png,ann,rose:0.5|tulip\n",
            "line 2 has weights for some candidates, but none for 'tulip'",
        ),
        ("task,worker,label,weight\na.png,ann,rose,-1\n", "line 2 has the weight '-1'"),
        ("task,worker,label,worker\na.png,ann,rose,1\n", "line 1 has the column 'worker' twice"),
        ('task,worker,label\na.png,ann,"rose\n', "line 2 is not valid csv"),
    ],
}


@pytest.mark.parametrize(
    ("tool", "text", "message"), [(tool, *each) for tool, all_ in MALFORMED.items() for each in all_]
)
def test_malformed_files(tool: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / f"export{tool_files.WRITERS[tool][1]}"
    path.write_text(text, "utf-8", newline="")
    with pytest.raises(UserError, match=message) as told:
        read_annotations(path, Rules())
    assert str(path) in str(told.value)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_given_format_is_believed(tool: str, tmp_path: Path) -> None:
    path = tmp_path / f"export{tool_files.WRITERS[tool][1]}"
    path.write_text("{}" if path.suffix == ".json" else "<a/>" if path.suffix == ".xml" else "a,b\n1,2\n")
    with pytest.raises(UserError, match=r"export\.(json|xml|csv)"):
        read_annotations(path, Rules(format=tool))


def test_images_without_labels_are_left_out_and_counted(tmp_path: Path) -> None:
    path = tool_files.write(tmp_path, "coco", {**GOOD, "c.png": {}})
    found = read_annotations(path, Rules())
    assert found.file_names == ("a.png", "b.png")
    assert any("skipped 1 unlabelled" in note for note in found.notes)


def test_a_json_of_another_kind_of_table(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps([{"file_name": "a", "candidates": ["x"]}]))
    with pytest.raises(UserError, match="not the JSON of a supported tool"):
        read_annotations(path, Rules())
