"""Images in folders: find them, and make sure that none leads out of its folder.

Names are text, as tables hold them. On disk they are bytes, and they are UTF-8 whatever the locale says.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from papi.data.dataset import Report, refuse
from papi.data.images.decode import SUFFIXES
from papi.data.own.tables import is_utf8
from papi.errors import UserError

_SPLITS = ("train", "test")
_LONGEST = 255  # characters of a name in a message: no file has a longer one
_RUN_FILES = ("config.json", "candidates.npz")  # every run folder has both once training has begun


def text_of(path: str | Path) -> str | None:
    """A path as text; None if its bytes are not UTF-8."""
    try:
        return os.fsencode(path).decode()
    except UnicodeError:
        return None


def path_of(name: str) -> str:
    """The path with this name, which must be UTF-8. The two differ only where the locale is not UTF-8."""
    return os.fsdecode(name.encode())


def leads_out(path: Path, folder: Path) -> bool:
    """Whether a path ends outside the folder once all links are followed."""
    root = os.path.realpath(folder)
    return os.path.commonpath((root, os.path.realpath(path))) != root


def require_inside(path: Path, folder: Path) -> None:
    """Raise an error if a path is a link that leads out of the folder."""
    if leads_out(path, folder):
        raise UserError(f"{path} is a link that leads out of {folder}: put the file or folder itself there.")


def locate(folder: Path, name: str) -> Path | str:
    """The file of that name inside the folder, or what is wrong with the name."""
    if not name:
        return "has no file name"
    if not is_utf8(name) or "\0" in name:
        return f"names {name!r}, which is no name in UTF-8: rename the file"
    path = folder / path_of(name)
    shown = repr(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…")
    absent = f"names {shown}, which is not in {folder}"
    if ".." not in name and not os.path.isabs(name) and not os.path.lexists(path):
        return absent  # known at once: a table can name a million such files
    # Links are followed first: what counts is where a name leads in the end.
    if os.path.isabs(name) or leads_out(path, folder):
        return f"names {shown}, which leads out of {folder}: keep all images inside"
    if not os.path.isfile(path):
        return f"names {shown}, which is no regular file in {folder}" if os.path.exists(path) else absent
    return path


class Nearby:
    """Finds the file that a wrong name may mean: with another folder before it, another ending, or another case."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[str, str] | None = None  # listed when the first wrong name comes

    def __call__(self, name: str) -> str:
        """The end of a sentence about a name that leads to no file."""
        if self._names is None:
            self._names = {}
            for file in image_files(self._folder):
                within = text_of(file.relative_to(self._folder))
                for key in () if within is None else _keys(within):
                    self._names.setdefault(key, within or "")
        found = next((self._names[key] for key in _keys(name) if key in self._names), None)
        return "." if found is None else f": did you mean {found!r}?"


def _keys(name: str) -> tuple[str, ...]:
    """What two names share if they differ in case, in their folder, or in their ending, the most telling first."""
    path = name.replace("\\", "/").casefold()
    file = path.rpartition("/")[2]
    return path, file, os.path.splitext(path)[0], os.path.splitext(file)[0]


def misnamed(path: Path) -> str:
    """The message about a name that is not UTF-8, which no table or report can hold; it shows the bytes."""
    shown = os.fsencode(path).decode("utf-8", "backslashreplace")
    return f"{shown} has a name that is not UTF-8: rename it."


def image_files(folder: Path) -> Iterator[Path]:
    """All image files below a folder, in a fixed order, without hidden ones. Links to folders are not followed."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for file in sorted(files):
            if os.path.splitext(file)[1].lower() in SUFFIXES and not file.startswith("."):
                yield Path(place, file)


def skipped_files(folder: Path) -> list[Path]:
    """Files below a folder that are taken for no images, without hidden ones, in a fixed order."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        found += [
            Path(place, file)
            for file in sorted(files)
            if os.path.splitext(file)[1].lower() not in SUFFIXES and not file.startswith(".")
        ]
    return found


def split_folders(folder: Path) -> dict[str, Path]:
    """The folders `train` and `test` below a folder, if there is a `train`; else the folder itself, as `train`."""
    found = {split: folder / split for split in _SPLITS if (folder / split).is_dir()}
    if "train" not in found:
        return {"train": folder}
    for place in found.values():
        require_inside(place, folder)
    return found


def holds_run(folder: Path) -> bool:
    """Whether a folder is one that PaPi has trained in."""
    return all((folder / name).is_file() for name in _RUN_FILES)


def classes_below(folder: Path, report: Report = refuse) -> tuple[str, ...]:
    """Names of the folders directly below, in order: one for each class. A folder that holds a run is none."""
    found = (each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    names = []
    for place in sorted(each for each in found if not holds_run(each)):
        name = text_of(place.name)
        if name is None:
            report(misnamed(place))
        else:
            names.append(name)
    return tuple(sorted(names))


def images_by_class(folder: Path, classes: tuple[str, ...], report: Report) -> list[tuple[Path, int]]:
    """The images below the folder of each class, with its number."""
    found = []
    root = os.path.realpath(folder)
    for number, name in enumerate(classes):
        inside = folder / path_of(name)
        if leads_out(inside, folder):
            report(f"{inside} is a link that leads out of {folder}: keep all images inside.")
            continue
        if os.path.realpath(inside) == root:
            report(f"{inside} is a link to the folder that it is in: remove it.")
            continue
        for image in image_files(inside):
            within = text_of(image.relative_to(folder))
            if within is None:
                report(misnamed(image))
                continue
            located = locate(folder, within)
            if isinstance(located, str):
                report(f"{inside} {located}.")
            else:
                found.append((located, number))
    return found
