"""Images in folders: found in a fixed order, never outside."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from papi.data.dataset import refuse
from papi.data.own.folders import (
    classes_below,
    holds_run,
    image_files,
    images_by_class,
    leads_out,
    locate,
    misnamed,
    path_of,
    split_folders,
    text_of,
)
from papi.errors import UserError

linux = pytest.mark.skipif(sys.platform != "linux", reason="file names that are not UTF-8 are for Linux")


def image_names(folder: Path) -> list[str]:
    return [str(file.relative_to(folder)) for file in image_files(folder)]


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_images_are_found_by_suffix_in_order_and_below(tmp_path: Path) -> None:
    touch(tmp_path, "b.png", "a.JPG", "c.txt", "sub/z.webp", "sub/deeper/y.tif", "another/x.bmp", "no-suffix")
    found = image_names(tmp_path)
    assert set(found) == {"a.JPG", "b.png", "another/x.bmp", "sub/z.webp", "sub/deeper/y.tif"}
    assert found == image_names(tmp_path)
    assert found.index("a.JPG") < found.index("b.png")


def test_hidden_files_and_folders_are_left_out(tmp_path: Path) -> None:
    touch(tmp_path, ".hidden.png", ".git/a.png", "shown/.a.png", "shown/a.png")
    assert image_names(tmp_path) == ["shown/a.png"]
    assert classes_below(tmp_path) == ("shown",)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "has no file name"),
        ("../outside.png", "which is outside"),
        ("sub/../../outside.png", "which is outside"),
        ("/etc/passwd", "which is outside"),
        ("missing.png", "which is not in"),
        ("sub", "which is not a regular file in"),
        ("a\0b.png", "which is not valid UTF-8"),
        ("a\udcff.png", "which is not valid UTF-8"),
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
    assert "which is outside" in str(locate(tmp_path / "images", "outer.png"))


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
    assert "dog is a link that points outside" in problems[0]


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


@linux
@given(st.binary(min_size=1, max_size=12))
def test_text_and_path_are_the_same_bytes(name: bytes) -> None:
    text = text_of(os.fsdecode(name))
    try:
        expected = name.decode()
    except UnicodeDecodeError:
        assert text is None
        return
    assert text == expected
    assert os.fsencode(path_of(text)) == name


def test_links_that_go_round(tmp_path: Path) -> None:
    touch(tmp_path, "images/cat/a.png")
    folder = tmp_path / "images"
    (folder / "b.png").symlink_to("b.png")
    (folder / "c.png").symlink_to("d.png")
    (folder / "d.png").symlink_to("c.png")
    for name in ("b.png", "c.png", "d.png"):
        assert "which is not in" in str(locate(folder, name))
    (folder / "cat" / "again").symlink_to("..")
    assert [file.name for file in image_files(folder / "cat")] == ["a.png"]


def test_a_class_that_is_a_link_to_its_own_folder(tmp_path: Path) -> None:
    touch(tmp_path, "cat/a.png")
    (tmp_path / "round").symlink_to(".")
    problems: list[str] = []
    found = images_by_class(tmp_path, classes_below(tmp_path), problems.append)
    assert [file for file, _ in found] == [tmp_path / "cat/a.png"]
    assert problems == [f"{tmp_path}/round is a link to its own parent folder: remove it."]


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_split_that_is_a_link(split: str, tmp_path: Path) -> None:
    touch(tmp_path, "elsewhere/cat/1.png", "images/train/cat/1.png")
    folder = tmp_path / "images"
    if split == "train":
        (folder / "train").rename(folder / "inner")
    (folder / split).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=f"{split} is a link that points outside"):
        split_folders(folder)
    (folder / split).unlink()
    (folder / "inner").mkdir(exist_ok=True)
    (folder / split).symlink_to("inner")
    assert split in split_folders(folder)


def test_where_a_path_leads(tmp_path: Path) -> None:
    touch(tmp_path, "images-2/a.png", "images/a.png")
    (tmp_path / "named").symlink_to("images")
    assert not leads_out(tmp_path / "named" / "a.png", tmp_path / "named")
    assert not leads_out(tmp_path / "images" / "a.png", tmp_path / "named")
    assert leads_out(tmp_path / "images-2" / "a.png", tmp_path / "images")  # the beginning of a name is no folder


def test_a_run_is_no_class(tmp_path: Path) -> None:
    touch(tmp_path, "cat/1.png", "dog/1.png", "run/config.json", "run/candidates.npz", "bird/config.json")
    assert holds_run(tmp_path / "run")
    assert classes_below(tmp_path) == ("bird", "cat", "dog")
