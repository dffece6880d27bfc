"""Images in folders: find them, and make sure that none leads out of its folder."""

import os
from collections.abc import Iterator
from pathlib import Path

from papi.data.dataset import Report, refuse
from papi.data.images.decode import SUFFIXES
from papi.data.own.tables import is_utf8

_SPLITS = ("train", "test")


def locate(folder: Path, name: str) -> Path | str:
    """The file of that name inside the folder, or what is wrong with the name."""
    if not name:
        return "has no file name"
    if not is_utf8(name) or "\0" in name:
        return f"names {name!r}, which is no name in UTF-8: rename the file"
    path = folder / name
    # Links are followed first: what counts is where a name leads in the end.
    if os.path.isabs(name) or not path.resolve().is_relative_to(folder.resolve()):
        return f"names {name!r}, which leads out of {folder}: keep all images inside"
    if not path.is_file():
        return f"names {name!r}, which is {'no regular file' if path.exists() else 'not'} in {folder}"
    return path


def misnamed(path: Path) -> str:
    """The message about a name that is not UTF-8, which no table or report can hold; it shows the bytes."""
    shown = os.fsencode(path).decode("utf-8", "backslashreplace")
    return f"{shown} has a name that is not UTF-8: rename it."


def image_names(folder: Path) -> Iterator[str]:
    """Names of all image files below a folder, relative to it, in a fixed order, without hidden ones."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for file in sorted(files):
            if os.path.splitext(file)[1].lower() in SUFFIXES and not file.startswith("."):
                yield os.path.relpath(os.path.join(place, file), folder)


def split_folders(folder: Path) -> dict[str, Path]:
    """The folders `train` and `test` below a folder, if there is a `train`; else the folder itself, as `train`."""
    found = {split: folder / split for split in _SPLITS if (folder / split).is_dir()}
    return found if "train" in found else {"train": folder}


def classes_below(folder: Path, report: Report = refuse) -> tuple[str, ...]:
    """Names of the folders directly below, in order: one for each class."""
    names = sorted(each.name for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    for name in names:
        if not is_utf8(name):
            report(misnamed(folder / name))
    return tuple(filter(is_utf8, names))


def images_by_class(folder: Path, classes: tuple[str, ...], report: Report) -> list[tuple[Path, int]]:
    """The images below the folder of each class, with its number."""
    found = []
    for number, name in enumerate(classes):
        inside = folder / name
        if not inside.resolve().is_relative_to(folder.resolve()):
            report(f"{inside} is a link that leads out of {folder}: keep all images inside.")
            continue
        for image in image_names(inside):
            if not is_utf8(image):
                report(misnamed(inside / image))
                continue
            located = locate(folder, f"{name}/{image}")
            if isinstance(located, str):
                report(f"{inside} {located}.")
            else:
                found.append((located, number))
    return found
