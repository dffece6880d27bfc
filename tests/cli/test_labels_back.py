"""From the export of a tool to a trained run, and back: labels and decisions in the format of the tool."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tool_files
from command import papi_exit_code
from papi.cli.labels import labels
from papi.data.own.annotations import read_annotations
from papi.data.own.entries import Rules
from papi.errors import UserError

FLOWERS = ("rose", "tulip", "violet")
COUNT = 24


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with photos, an export and a run on both."""
    folder = tmp_path_factory.mktemp("flowers")
    (folder / "photos").mkdir()
    said: dict[str, dict[str, list[str]]] = {}
    for number in range(COUNT):
        pixels = np.full((8, 8, 3), 30, np.uint8)
        pixels[..., number % 3] = 200
        Image.fromarray(pixels).save(folder / "photos" / f"{number}.png")
        right, wrong = FLOWERS[number % 3], FLOWERS[(number + 1) % 3]
        said[f"{number}.png"] = {"ann@x.org": [right, wrong], "bob@x.org": [right]}
    tool_files.write(folder, "label-studio", said)
    options = ("--epochs", 1, "--threads", 1, "--device", "cpu", "--out", folder / "run")
    given = ("--data", folder / "photos", "--candidates.file", folder / "label-studio.json")
    assert papi_exit_code("train", *given, *options) == 0
    return folder


def tasks_in(path: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(path.read_text("utf-8"))
    return found


def test_tasks_come_back_with_their_labels(trained: Path) -> None:
    labels(trained / "run", format="label-studio")
    before, after = tasks_in(trained / "label-studio.json"), tasks_in(trained / "run" / "label-studio.json")
    assert [task["data"] for task in after] == [task["data"] for task in before]
    assert [task["id"] for task in after] == [task["id"] for task in before]
    labels(trained / "run")
    rows = (trained / "run" / "labels.csv").read_text().splitlines()[1:]
    for task, row in zip(after, rows, strict=True):
        (prediction,) = task["predictions"]
        (result,) = prediction["result"]
        assert result["value"]["choices"] == [row.split(",")[4]]
        assert (result["from_name"], result["to_name"], result["type"]) == ("choice", "image", "choices")
        assert prediction["score"] == pytest.approx(float(row.split(",")[5]), abs=1e-6)
        assert prediction["model_version"].startswith("papi")


def test_what_is_written_has_tasks_that_can_be_read(trained: Path, tmp_path: Path) -> None:
    """Predictions become annotations once a person accepts them in Label Studio."""
    labels(trained / "run", out=tmp_path / "back.json", format="label-studio")
    accepted = [
        {**task, "annotations": [tool_files.annotation(1, *task["predictions"][0]["result"])]}
        for task in tasks_in(tmp_path / "back.json")
    ]
    (tmp_path / "accepted.json").write_text(json.dumps(accepted))
    found = read_annotations(tmp_path / "accepted.json", Rules())
    assert found.candidates.sum(1).tolist() == [1] * COUNT


def test_decisions_take_the_place_of_labels(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(
        "file,label,answer\n0.png,violet,label\n1.png,rose|tulip,several\n2.png,,bad\n3.png,,skip\n"
    )
    labels(trained / "run", out=tmp_path / "back.json", format="label-studio", decisions=tmp_path / "d.csv")
    first, second, third, fourth, *_ = tasks_in(tmp_path / "back.json")
    assert first["predictions"][0]["result"][0]["value"] == {"choices": ["violet"]}
    assert first["predictions"][0]["model_version"] == "decision"
    assert second["predictions"][0]["result"][0]["value"] == {"choices": ["rose", "tulip"]}
    assert third["predictions"] == []
    assert fourth["predictions"][0]["model_version"] != "decision"


def test_tasks_of_another_export(trained: Path, tmp_path: Path) -> None:
    """A taxonomy keeps its paths, and tasks whose image is not in the run are left out."""
    value = {"taxonomy": [["Plants", "rose"], ["Plants", "violet"]]}
    result = {"from_name": "kind", "to_name": "img", "type": "taxonomy", "value": value}
    given = [
        tool_files.task(1, "s3://bucket/photos/0.png", [tool_files.annotation(1, result)]),
        tool_files.task(2, "s3://bucket/photos/other.png", []),
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(given))
    labels(trained / "run", out=tmp_path / "back.json", format="label-studio", tasks=tmp_path / "tasks.json")
    (task,) = tasks_in(tmp_path / "back.json")
    answer = task["predictions"][0]["result"][0]
    assert answer["from_name"] == "kind"
    assert answer["value"]["taxonomy"] in ([["Plants", "rose"]], [["tulip"]])


@pytest.mark.parametrize(("tool", "suffix"), [("cvat", "xml"), ("coco", "json"), ("via", "csv"), ("crowd", "csv")])
def test_other_tools_read_back_what_is_written(trained: Path, tmp_path: Path, tool: str, suffix: str) -> None:
    (tmp_path / "d.csv").write_text("file,label,answer\n0.png,violet,label\n1.png,rose|tulip,several\n2.png,,bad\n")
    out = tmp_path / f"back.{suffix}"
    labels(trained / "run", out=out, format=tool, decisions=tmp_path / "d.csv")  # type: ignore[arg-type]
    if tool == "crowd":  # what is agreed on has no workers any more
        out.write_text(out.read_text().replace("task,label", "file_name,candidates").replace("\n1.png,tulip", ""))
    found = read_annotations(out, Rules(column="label") if tool == "via" else Rules())
    sets = {
        name: {found.class_names[k] for k in np.flatnonzero(row)}
        for name, row in zip(found.file_names or (), found.candidates, strict=True)
    }
    assert len(sets) == COUNT - 1  # the bad one has no label
    assert sets["0.png"] == {"violet"}
    assert sets["1.png"] == ({"rose"} if tool == "crowd" else {"rose", "tulip"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": Path("x.json")}, "--format label-studio"),
        ({"decisions": Path("d.csv")}, "add --format"),
        ({"format": "label-studio", "image_prefix": "/data/"}, "--image-prefix cannot be used with the tasks"),
        ({"format": "label-studio", "fix": Path("d.csv")}, "--fix cannot be combined with --format"),
    ],
)
def test_options_that_do_not_fit(trained: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        labels(trained / "run", **options)  # type: ignore[arg-type]


def test_settings_of_another_version(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained / "run", tmp_path / "run")
    file = tmp_path / "run" / "config.json"
    file.write_text(file.read_text().replace('"instance_rate"', '"instance_ratio"'))
    with pytest.raises(UserError, match="'instance_ratio' is unknown here"):
        labels(tmp_path / "run", out=tmp_path / "new.json", format="label-studio")
    assert not (tmp_path / "new.json").exists()
