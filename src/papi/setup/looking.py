"""Detects the data in a folder and derives the options of `papi train` for `papi init`. Nothing is trained."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from papi.data.own.annotation_arrays import SETS, Annotations, load_npz
from papi.data.own.annotations import RESERVED, read_annotations
from papi.data.own.entries import Rules
from papi.data.own.folders import classes_below, holds_run, image_files, locate, split_folders
from papi.data.own.image_folder import sorted_by_class
from papi.data.own.names import joined
from papi.data.own.references import find
from papi.data.own.tables import cell_number, read_table
from papi.errors import UserError

_TABLES = (".csv", ".tsv", ".jsonl", ".parquet", ".xlsx", ".json", ".xml", ".npz", ".mat")
_TRIED = 300  # file names of a table to search for in each folder
_SHOWN = 5  # classes listed in a line
_MOST_BASES = 50
_WHICH_LABELS = "Which file has the candidate labels?"

Value = str | int | float | bool


@dataclass(frozen=True)
class Understood:
    """Options by name, with paths relative to the inspected folder, and the reasons for them, one line each."""

    options: dict[str, Value]
    told: tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """A question for the user: its text, the option that answers it, and the possible answers."""

    text: str
    option: str
    choices: tuple[Path, ...]


@dataclass(frozen=True)
class _Labels:
    """A file with candidate labels of images."""

    file: Path
    found: Annotations
    base: Path  # the folder that its file names are relative to
    options: dict[str, Value] = field(default_factory=dict)  # options needed to read it


def look(folder: Path, data: Path | None = None, table: Path | None = None) -> Understood | Question:
    """Return the options for the data in a folder, or a question. `data` and `table` are the answers so far."""
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: specify the folder with your images and tables.")
    files = [table] if table is not None else list(_files(folder))
    if data is not None and not data.is_dir():
        return _features(folder, [data], [file for file in files if file != data])
    images = [file for file in image_files(data or folder) if not _in_run(file, folder)]
    if not images:
        return _features(folder, [file for file in files if _holds_samples(file)], files)
    labels = [each for each in (_labels(file, folder, data, images) for file in files) if each is not None]
    if not labels:
        return _by_class(folder, data or folder, images, files)
    chosen = next((each for each in labels if each.file.stem == "metadata" and each.file.parent == each.base), None)
    if chosen is None and len(labels) > 1:
        return Question(
            "Which file has the candidate labels?", "--candidates.file", tuple(each.file for each in labels)
        )
    return _annotated(folder, chosen or labels[0], len(images))


def _files(folder: Path) -> Iterator[Path]:
    """Yield the tables and exports in a folder and its subfolders, except those of runs."""
    below = (each for each in sorted(folder.iterdir()) if each.is_dir() and not each.name.startswith("."))
    for place in (folder, *below):
        if holds_run(place):
            continue
        for file in sorted(place.iterdir()):
            if file.is_file() and file.suffix.lower() in _TABLES and not file.name.startswith("."):
                yield file


def _in_run(file: Path, folder: Path) -> bool:
    return any(holds_run(place) for place in file.parents if place != folder and folder in place.parents)


def _labels(file: Path, folder: Path, data: Path | None, images: list[Path]) -> _Labels | None:
    """Return the labels in a file if it names any of the images."""
    if file.suffix.lower() == ".mat":
        return None
    found = _read(file, Rules(report=_ignore))
    if found is None or found.file_names is None:
        return None
    bases = [data] if data is not None else _bases(folder, file, images)
    names = found.file_names[:_TRIED]
    hits = [sum(_is_there(base, name, found.loose) for name in names) for base in bases]
    most = max(hits)
    if not most:
        return None
    options: dict[str, Value] = {}
    split = {each: _read(file, Rules(report=_ignore, separator=each)) for each in joined(found.class_names)}
    for separator, other in split.items():
        if other is not None and len(other.class_names) <= len(found.class_names):
            options, found = {"candidates.separator": separator}, other
    return _Labels(file, found, bases[hits.index(most)], options)


def _read(file: Path, rules: Rules) -> Annotations | None:
    """Return the candidate sets in a file; None if it contains something else."""
    try:
        return read_annotations(file, rules)
    except UserError:
        return None


def _ignore(problem: str) -> None:
    """Ignore a problem: `papi check` reports them, and here only the kind of file matters."""


def _bases(folder: Path, file: Path, images: list[Path]) -> list[Path]:
    """Return the folders that the names in a file may be relative to, the most likely first."""
    places = {image.parent for image in images}
    above = {parent for place in places for parent in place.parents if folder in (parent, *parent.parents)}
    return list(
        dict.fromkeys([file.parent, folder, *sorted(places | above, key=lambda place: (len(place.parts), place))])
    )


def _is_there(base: Path, name: str, loose: bool) -> bool:
    return not isinstance(find(base, name) if loose else locate(base, name), str)


def _annotated(folder: Path, chosen: _Labels, images: int) -> Understood:
    found = chosen.found
    options: dict[str, Value] = {"data": _within(chosen.base, folder)}
    if not (chosen.file.stem == "metadata" and chosen.file.parent == chosen.base):
        options["candidates.file"] = _within(chosen.file, folder)
    options |= chosen.options
    people = len(found.annotators)
    if people > 1:
        options["candidates.votes"] = "dawid-skene"
    elif found.votes is not None and found.votes.max(initial=0) > 1:
        options["candidates.weigh"] = "auto"
    known = int((found.labels >= 0).sum())
    voters = f", from {people:,} annotators" if people > 1 else ""
    told = (
        f"{images:,} images in {chosen.base}",
        f"{chosen.file} has candidate labels for {len(found.where):,} of them, {_classes(found.class_names)}",
        f"{_sizes(found.candidates[~found.test])}{voters}",
        f"true labels for {known:,} rows" if known else "no true labels",
    )
    return Understood(options, told)


def _by_class(folder: Path, place: Path, images: list[Path], files: list[Path]) -> Understood:
    """Return the options for images without a table, whose folders may be classes."""
    classes = classes_below(split_folders(place)["train"])
    named = [name for name in classes if any(True for _ in image_files(split_folders(place)["train"] / name))]
    if not sorted_by_class(place) or len(named) < 2:
        tables = f" (read {', '.join(str(file) for file in files[:_SHOWN])})" if files else ""
        raise UserError(
            f"{folder} has {len(images):,} images, but no table that lists them{tables} and no folder per class: "
            "write a csv file with the columns file_name and candidates, such as a.jpg,rose|tulip, and try again."
        )
    run = f"../{folder.resolve().name}-run"  # inside the folder, it would become a class
    told = (
        f"{len(images):,} images in {place}, with one folder per class: {_classes(tuple(named))}",
        "no table of candidate labels: folder names are true labels, and candidate labels are synthesized from them",
        f"the run is written to {run}, outside the class folders",
    )
    return Understood({"data": _within(place, folder), "out": run}, told)


def _features(folder: Path, samples: list[Path], files: list[Path]) -> Understood | Question:
    """Return the options for a folder without images: arrays or a feature table."""
    if not samples:
        raise UserError(f"{folder} has no images and no table or array of samples: add your data, or specify --data.")
    if len(samples) > 1:
        return Question("Which file has the samples?", "--data", tuple(samples))
    (data,) = samples
    options: dict[str, Value] = {"data": _within(data, folder)}
    others = [file for file in files if file != data]
    told = [f"{data} contains the samples"]
    if not _holds_sets(data):
        if len(others) > 1:
            return Question(_WHICH_LABELS, "--candidates.file", tuple(others))
        if not others:
            raise UserError(
                f"{data} has neither candidate labels nor true labels: add a table with them to the folder."
            )
        options["candidates.file"] = _within(others[0], folder)
        told.append(f"{others[0]} contains their candidate labels, in the same order")
    else:
        told.append("it also contains candidate labels or true labels")
    return Understood(options, tuple(told))


def _holds_samples(file: Path) -> bool:
    """Return whether a file contains images or features, not only labels."""
    suffix = file.suffix.lower()
    try:
        if suffix == ".mat":
            return True
        if suffix == ".npz":
            return bool({"images", "features"} & load_npz(file).keys())
        if suffix in (".csv", ".tsv", ".parquet", ".xlsx"):
            table = read_table(file, _ignore)
            columns = [name for name in table.columns if name not in RESERVED]
            first = table.rows[:_TRIED]
            cells = [cell_number(row.values.get(name)) for row in first for name in columns]
            numbers = bool(cells) and all(cell is not None for cell in cells)
            votes = "candidates" not in table.columns and all(float(cell or 0).is_integer() for cell in cells)
            return numbers and not votes
    except UserError:
        pass
    return False


def _holds_sets(file: Path) -> bool:
    """Return whether the file of the samples also contains candidates or labels."""
    if file.suffix.lower() == ".mat":
        return True
    if file.suffix.lower() == ".npz":
        return bool({*SETS, "labels"} & load_npz(file).keys())
    return "candidates" in read_table(file, _ignore).columns


def _sizes(candidates: np.ndarray) -> str:
    sizes = candidates.sum(1)
    if not len(sizes):
        return "no training images yet"
    return f"{sizes.mean():.2f} candidate labels per image, {(sizes == 1).mean():.0%} have only one"


def _classes(names: tuple[str, ...]) -> str:
    more = ", …" if len(names) > _SHOWN else ""
    return f"{len(names):,} classes ({', '.join(names[:_SHOWN])}{more})"


def _within(path: Path, folder: Path) -> str:
    """Return a path relative to the folder."""
    return Path(os.path.relpath(path, folder)).as_posix()
