"""Images as annotation tools refer to them, found in a folder of images."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tool_files
from papi.data.own.load import load_own
from papi.data.own.reading import Reading
from papi.data.own.references import find, possible_names
from papi.errors import UserError


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("a.png", "a.png"),
        ("/data/upload/1/0123abcd-a.png", "a.png"),
        ("/data/upload/12/0123abcd-kept.png", "0123abcd-kept.png"),
        ("upload/1/0123abcd-a.png", "a.png"),
        ("/data/local-files/?d=photos/roses/b.png", "roses/b.png"),
        ("/data/local-files/?d=photos/two%20words.png", "two words.png"),
        ("http://localhost:8080/data/local-files/?d=photos/two%20words.png", "two words.png"),
        ("s3://bucket/2026/roses/b.png", "roses/b.png"),
        ("https://example.org/photos/two%20words.png?token=1", "two words.png"),
        ("C:\\photos\\roses\\b.png", "roses/b.png"),
        ("/home/ann/photos/a.png", "a.png"),
    ],
)
def test_references_of_tools(reference: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "roses").mkdir()
    for file in ("a.png", "0123abcd-kept.png", "roses/b.png", "two words.png"):
        (tmp_path / file).touch()
    assert find(tmp_path, reference) == (name, tmp_path / name)


@pytest.mark.parametrize("reference", ["../secret.png", "/etc/passwd", "s3://bucket/../../secret.png", "", "\0.png"])
def test_no_reference_leads_out(reference: str, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "secret.png").touch()
    assert isinstance(find(tmp_path / "photos", reference), str)


def test_the_longest_name_comes_first() -> None:
    assert list(possible_names("/data/upload/1/0123abcd-a.png"))[-2:] == ["0123abcd-a.png", "a.png"]


def folder_of(path: Path, *names: str) -> Path:
    for number, name in enumerate(names):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), 40 * number, np.uint8)).save(path / name)
    return path


def test_an_export_beside_its_images(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "photos", "a.png", "b.png", "c.png", "left out.png")
    said = {"a.png": {"ann": ["rose"]}, "b.png": {"ann": ["tulip"], "bob": ["rose"]}, "c.png": {}}
    export = tool_files.write(tmp_path, "label-studio", said)
    dataset = load_own(folder, Reading(annotations=export))
    assert dataset.file_names == ("a.png", "b.png")
    assert dataset.candidates is not None
    assert dataset.candidates.tolist() == [[True, False], [True, True]]
    told = " ".join(dataset.notes)
    assert "skipped 1 unlabelled images in" in told  # c.png, which nobody has annotated
    assert "1 images in" in told  # left out.png, which the export does not list


def test_two_tasks_about_one_file(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "photos", "a.png", "b.png")
    text = tool_files.cvat({"x/a.png": {"": ["rose"]}, "y/a.png": {"": ["tulip"]}})
    (tmp_path / "export.xml").write_text(text, "utf-8")
    with pytest.raises(UserError, match=r"export.xml, line 9 and .*export.xml, line 5 both describe 'a.png'"):
        load_own(folder, Reading(annotations=tmp_path / "export.xml"))
