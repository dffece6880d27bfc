"""Finds images in folders and makes sure that no path leads outside its folder.

Names are text, as in tables. On disk they are bytes, which are read as UTF-8 in every locale.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from papi.data.dataset import Report, refuse
from papi.data.images.decode import SUFFIXES
from papi.data.own.tables import is_utf8
from papi.errors import UserError

_SPLITS = ("train", "test")
_LONGEST = 255  # characters of a name in a message; no file has a longer name
_RUN_FILES = ("config.json", "candidates.npz")  # every run folder has both once training has begun


def text_of(path: str | Path) -> str | None:
    """Return a path as text; None if its bytes are not UTF-8."""
    try:
        return os.fsencode(path).decode()
    except UnicodeError:
        return None


def path_of(name: str) -> str:
    """Return the path for this UTF-8 name. The two differ only if the locale is not UTF-8."""
    return os.fsdecode(name.encode())


def leads_out(path: Path, folder: Path) -> bool:
    """Return whether a path is outside the folder after all links are resolved."""
    root = os.path.realpath(folder)
    return os.path.commonpath((root, os.path.realpath(path))) != root


def require_inside(path: Path, folder: Path) -> None:
    """Raise `UserError` if a path is a link that points outside the folder."""
    if leads_out(path, folder):
        raise UserError(f"{path} is a link that points outside {folder}: copy the file or folder there instead.")


def locate(folder: Path, name: str) -> Path | str:
    """Return the file with that name inside the folder, or a description of the problem."""
    if not name:
        return "has no file name"
    if not is_utf8(name) or "\0" in name:
        return f"names {name!r}, which is not valid UTF-8: rename the file"
    path = folder / path_of(name)
    shown = repr(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…")
    absent = f"names {shown}, which is not in {folder}"
    if ".." not in name and not os.path.isabs(name) and not os.path.lexists(path):
        return absent  # fast path: a table can name a million such files
    # Resolve links first: only the final target matters.
    if os.path.isabs(name) or leads_out(path, folder):
        return f"names {shown}, which is outside {folder}: keep all images inside"
    if not os.path.isfile(path):
        return f"names {shown}, which is not a regular file in {folder}" if os.path.exists(path) else absent
    return path


class Nearby:
    """Suggests a file for a wrong name: with a different folder, extension or case."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[str, str] | None = None  # filled at the first wrong name

    def __call__(self, name: str) -> str:
        """Return the end of a message about a name without a file, with a suggestion if there is one."""
        if self._names is None:
            self._names = {}
            for file in image_files(self._folder):
                within = text_of(file.relative_to(self._folder))
                for key in () if within is None else _keys(within):
                    self._names.setdefault(key, within or "")
        found = next((self._names[key] for key in _keys(name) if key in self._names), None)
        return "." if found is None else f": did you mean {found!r}?"


def _keys(name: str) -> tuple[str, ...]:
    """Return keys that two names share if they differ in case, folder or extension, the most specific first."""
    path = name.replace("\\", "/").casefold()
    file = path.rpartition("/")[2]
    return path, file, os.path.splitext(path)[0], os.path.splitext(file)[0]


def misnamed(path: Path) -> str:
    """Return the message about a name that is not UTF-8. It shows the bytes."""
    shown = os.fsencode(path).decode("utf-8", "backslashreplace")
    return f"{shown} has a name that is not UTF-8: rename it."


def image_files(folder: Path) -> Iterator[Path]:
    """Yield all image files below a folder in a fixed order, without hidden files. Linked folders are not followed."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for file in sorted(files):
            if os.path.splitext(file)[1].lower() in SUFFIXES and not file.startswith("."):
                yield Path(place, file)


def skipped_files(folder: Path) -> list[Path]:
    """Return the files below a folder that are not images in a fixed order, without hidden files."""
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
    """Return the subfolders `train` and `test` if there is a `train`; otherwise the folder itself as `train`."""
    found = {split: folder / split for split in _SPLITS if (folder / split).is_dir()}
    if "train" not in found:
        return {"train": folder}
    for place in found.values():
        require_inside(place, folder)
    return found


def holds_run(folder: Path) -> bool:
    """Return whether a folder is a run folder of PaPi."""
    return all((folder / name).is_file() for name in _RUN_FILES)


def classes_below(folder: Path, report: Report = refuse) -> tuple[str, ...]:
    """Return the sorted names of the subfolders, one per class. Run folders are ignored."""
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
    """Return the images below each class folder with the number of the class."""
    found = []
    root = os.path.realpath(folder)
    for number, name in enumerate(classes):
        inside = folder / path_of(name)
        if leads_out(inside, folder):
            report(f"{inside} is a link that points outside {folder}: keep all images inside.")
            continue
        if os.path.realpath(inside) == root:
            report(f"{inside} is a link to its own parent folder: remove it.")
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
