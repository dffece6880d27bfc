"""Images in folders: found in a fixed order, never outside."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from papi.data.dataset import refuse
from papi.data.own.folders import classes_below, image_names, images_by_class, locate, misnamed, split_folders
from papi.errors import UserError

linux = pytest.mark.skipif(sys.platform != "linux", reason="file names that are not UTF-8 are for Linux")


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_images_are_found_by_suffix_in_order_and_below(tmp_path: Path) -> None:
    touch(tmp_path, "b.png", "a.JPG", "c.txt", "sub/z.webp", "sub/deeper/y.tif", "another/x.bmp", "no-suffix")
    found = list(image_names(tmp_path))
    assert set(found) == {"a.JPG", "b.png", "another/x.bmp", "sub/z.webp", "sub/deeper/y.tif"}
    assert found == list(image_names(tmp_path))
    assert found.index("a.JPG") < found.index("b.png")


def test_hidden_files_and_folders_are_left_out(tmp_path: Path) -> None:
    touch(tmp_path, ".hidden.png", ".git/a.png", "shown/.a.png", "shown/a.png")
    assert list(image_names(tmp_path)) == ["shown/a.png"]
    assert classes_below(tmp_path) == ("shown",)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "has no file name"),
        ("../outside.png", "which leads out of"),
        ("sub/../../outside.png", "which leads out of"),
        ("/etc/passwd", "which leads out of"),
        ("missing.png", "which is not in"),
        ("sub", "which is no regular file in"),
        ("a\0b.png", "which is no name in UTF-8"),
        ("a\udcff.png", "which is no name in UTF-8"),
    ],
)
def test_names_that_cannot_be_used(name: str, says: str, tmp_path: Path) -> None:
    touch(tmp_path, "outside.png", "images/sub/a.png")
    located = locate(tmp_path / "images", name)
    assert isinstance(located, str)
    assert says in located


@given(st.lists(st.sampled_from(["..", ".", "sub", "a.png", "outside.png"]), min_size=1, max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_path_leads_out(tmp_path: Path, parts: list[str]) -> None:
    touch(tmp_path, "outside.png", "images/a.png", "images/sub/a.png")
    located = locate(tmp_path / "images", "/".join(parts))
    if isinstance(located, Path):
        assert located.resolve().is_relative_to(tmp_path / "images")
        assert located.is_file()


def test_links_count_as_what_they_lead_to(tmp_path: Path) -> None:
    touch(tmp_path, "outside.png", "images/a.png")
    (tmp_path / "images" / "inner.png").symlink_to("a.png")
    (tmp_path / "images" / "outer.png").symlink_to(tmp_path / "outside.png")
    assert locate(tmp_path / "images", "inner.png") == tmp_path / "images" / "inner.png"
    assert "leads out of" in str(locate(tmp_path / "images", "outer.png"))


def test_a_folder_may_be_divided(tmp_path: Path) -> None:
    assert split_folders(tmp_path) == {"train": tmp_path}
    (tmp_path / "test").mkdir()
    assert split_folders(tmp_path) == {"train": tmp_path}  # a class may be called test
    (tmp_path / "train").mkdir()
    assert split_folders(tmp_path) == {"train": tmp_path / "train", "test": tmp_path / "test"}


def test_images_have_the_number_of_their_class(tmp_path: Path) -> None:
    touch(tmp_path, "dog/1.png", "cat/2.png", "cat/1.png", "readme.txt")
    classes = classes_below(tmp_path)
    assert classes == ("cat", "dog")
    found = images_by_class(tmp_path, classes, refuse)
    assert found == [(tmp_path / "cat/1.png", 0), (tmp_path / "cat/2.png", 0), (tmp_path / "dog/1.png", 1)]


def test_a_class_that_is_a_link_out_of_the_folder(tmp_path: Path) -> None:
    touch(tmp_path, "elsewhere/1.png", "images/cat/1.png")
    (tmp_path / "images" / "dog").symlink_to(tmp_path / "elsewhere")
    problems: list[str] = []
    found = images_by_class(tmp_path / "images", ("cat", "dog"), problems.append)
    assert [number for _, number in found] == [0]
    assert len(problems) == 1
    assert "dog is a link that leads out of" in problems[0]


@linux
def test_names_that_are_not_utf8_are_shown_by_their_bytes(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path)
    os.mkdir(folder + b"/caf\xe9")
    os.mkdir(folder + b"/cat")
    for name in (b"/cat/a.png", b"/cat/b\xff.png"):
        os.close(os.open(folder + name, os.O_CREAT))
    problems: list[str] = []
    assert classes_below(tmp_path, problems.append) == ("cat",)
    assert [file.name for file, _ in images_by_class(tmp_path, ("cat",), problems.append)] == ["a.png"]
    assert problems == [
        f"{tmp_path}/caf\\xe9 has a name that is not UTF-8: rename it.",
        f"{tmp_path}/cat/b\\xff.png has a name that is not UTF-8: rename it.",
    ]
    with pytest.raises(UserError, match="not UTF-8"):
        classes_below(tmp_path)
    assert misnamed(Path("a\udcff")) == "a\\xff has a name that is not UTF-8: rename it."
