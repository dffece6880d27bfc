"""Loads a folder of images: with one subfolder per class, or with a table of the candidates of each file."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from papi.data.dataset import Dataset, LeavingOut, Progress, Report, ViewRecipe
from papi.data.images.cache import DEFAULT_SIDE, LARGEST_KEPT, Wanted, find_faults, read_images
from papi.data.images.kept import keep
from papi.data.images.photos import Photos
from papi.data.own.annotation_arrays import Annotations, require_distinct
from papi.data.own.folders import (
    Nearby,
    classes_below,
    image_files,
    images_by_class,
    locate,
    misnamed,
    require_inside,
    split_folders,
    text_of,
)
from papi.data.own.references import matched
from papi.data.own.tables import read_text
from papi.errors import UserError
from papi.networks.preparation import Preparation

Size = int | Preparation | None  # squares of a side; photos in their proportions for an encoder; None decides
ReadTable = Callable[[Path, tuple[str, ...] | None], Annotations]  # the file, the classes if they are known

_METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
_CLASSES = "classes.txt"


def load_annotated(
    folder: Path, table: Path | None, read: ReadTable, size: Size, report: Report, progress: Progress
) -> tuple[Dataset, Annotations] | None:
    """Load the images of a table, training images first, with its rows in the same order.

    By default, the table is `metadata.csv`, `.jsonl` or `.parquet` in the folder, or in its subfolders `train` and
    `test`. Return None if there is no table.
    """
    found = read(table, _listed_classes(folder)) if table is not None else _find_metadata(folder, read)
    if found is None:
        return None
    if found.loose:
        found = matched(folder, found, report)
    assert found.file_names is not None
    if found.test.all():
        raise UserError(f"{found.source} has no usable training rows: add one per image.")
    files: list[Path] = []
    rows: list[int] = []
    nearby = Nearby(folder)
    # Training images first, so that both parts of a large set can stay on disk as one stretch each.
    for row in np.argsort(found.test, kind="stable"):
        located = locate(folder, found.file_names[row])
        if isinstance(located, str):
            report(f"{found.where[row]} {located}{nearby(found.file_names[row])}")
        else:
            files.append(located)
            rows.append(int(row))
    found = found.taking(np.array(rows, np.int64))
    notes = _left_out(folder, found, len(files))
    dataset = _from_files(folder, files, found.class_names, size, report, progress)
    good = report.without_bad(files) if isinstance(report, LeavingOut) else None
    if good is not None:
        found = found.taking(good)
        dataset = _from_files(folder, [files[k] for k in good], found.class_names, size, report, progress)
    return replace(dataset, file_names=found.file_names, notes=(*notes, *dataset.notes)), found


def load_by_class(folder: Path, size: Size, report: Report, progress: Progress) -> Dataset:
    """Load images with true labels: one subfolder per class, possibly below `train` and `test`."""
    splits = split_folders(folder)
    classes = classes_below(splits["train"], report)
    parts = [images_by_class(place, classes, report) for place in splits.values()]
    if not any(parts):
        raise UserError(
            f"{folder} has neither a table of candidates nor one subfolder per class: use --candidates.file FILE, or "
            "add a metadata.csv with the columns file_name and candidates."
        )
    if len(parts) > 1 and (strangers := set(classes_below(splits["test"], report)) - set(classes)):
        report(f"{splits['test'] / sorted(strangers)[0]} is a class that {splits['train']} does not have.")
    files = [file for part in parts for file, _ in part]
    if isinstance(report, LeavingOut):
        _from_files(folder, files, classes, size, report, progress)
        parts = [[each for each in part if each[0] not in report.files] for part in parts]
        files = [file for part in parts for file, _ in part]
    labels = np.array([label for part in parts for _, label in part], np.int64)
    dataset = _from_files(folder, files, classes, size, report, progress)
    count = len(parts[0])
    names = tuple(text_of(file.relative_to(folder)) or "" for file in files[:count])
    empty = [classes[number] for number in np.setdiff1d(np.arange(len(classes)), labels[:count])]
    if empty:
        note = f"folders in {splits['train']} without images still count as classes: {', '.join(empty)}."
        dataset = replace(dataset, notes=(*dataset.notes, note))
    outside = sum(1 for _ in image_files(folder)) - sum(map(len, parts))
    if outside > 0:
        note = (
            f"skipped {outside:,} images in {folder} that are in no class folder and in no table. If there is a table "
            "of candidates, specify it with --candidates.file FILE."
        )
        dataset = replace(dataset, notes=(*dataset.notes, note))
    train = replace(dataset, samples=dataset.samples[:count], labels=labels[:count], file_names=names)
    if len(parts) == 1:
        return train
    return replace(train, test_samples=dataset.samples[count:], test_labels=labels[count:])


def own_recipe(height: int, width: int) -> ViewRecipe:
    """Views for images of which only the size is known."""
    side = min(height, width)
    return ViewRecipe(crop_padding=min(max(2, side // 8), side - 1), cutout=side // 2)


def _left_out(folder: Path, found: Annotations, used: int) -> tuple[str, ...]:
    """Notes about images without a row. Images whose row has a problem do not count: that was reported."""
    if found.named is None:
        return ()
    spoilt = found.named.difference(found.file_names or ())
    files = list(image_files(folder))
    count = len(files) - used - sum(isinstance(locate(folder, name), Path) for name in spoilt)
    notes = (f"skipped {count:,} images in {folder} that have no row in {found.source}.",) if count > 0 else ()
    strange = next((file for file in files if text_of(file.relative_to(folder)) is None), None)
    return notes if strange is None else (*notes, f"a table cannot name all images: {misnamed(strange)}")


def _from_files(
    folder: Path, files: list[Path], classes: tuple[str, ...], size: Size, report: Report, progress: Progress
) -> Dataset:
    if isinstance(size, Preparation):
        find_faults(files, report, progress)
        return _of_photos(folder, classes, Photos(files, size))
    if size is not None and size > LARGEST_KEPT:
        return _of_photos(folder, classes, keep(Photos(files, Preparation(size)), report=report, progress=progress))
    images = read_images(files, Wanted(size), report=report, progress=progress)
    notes: tuple[str, ...] = ()
    if size is None and images.shape[2:] == (DEFAULT_SIDE, DEFAULT_SIDE):
        notes = (f"images are resized to {DEFAULT_SIDE} x {DEFAULT_SIDE} pixels; set another size with --data.size.",)
    recipe = own_recipe(*images.shape[2:])
    return Dataset(folder.resolve().name, classes, images, (), (), recipe, notes=notes)


def _of_photos(folder: Path, classes: tuple[str, ...], photos: Photos) -> Dataset:
    """Photos that keep their proportions, normalised as is usual for photos, or as their encoder wants them."""
    prepared, numbers = photos.preparation, np.arange(len(photos))
    return Dataset(folder.resolve().name, classes, numbers, prepared.mean, prepared.std, photos=photos)


def _find_metadata(folder: Path, read: ReadTable) -> Annotations | None:
    """The metadata tables of a Hugging Face image folder; file names are relative to the table."""
    own = _metadata_in(folder)
    if own is not None:
        return read(own, _listed_classes(folder))
    classes = _listed_classes(folder)
    joined: Annotations | None = None
    for split, place in split_folders(folder).items():
        table = _metadata_in(place)
        if table is None:
            continue
        part = read(table, classes)
        names = tuple(f"{split}/{name}" for name in part.file_names or ())
        named = None if part.named is None else frozenset(f"{split}/{name}" for name in part.named)
        part = replace(part, file_names=names, test=np.full(len(names), split == "test"), named=named)
        classes = part.class_names
        joined = part if joined is None else joined.followed_by(part)
    return joined


def sorted_by_class(folder: Path) -> bool:
    """Whether the classes of a folder are its folders, because it has no table of candidates."""
    return not any(_metadata_in(place) for place in (folder, *split_folders(folder).values()))


def _metadata_in(folder: Path) -> Path | None:
    table = next((folder / name for name in _METADATA if (folder / name).is_file()), None)
    if table is not None:
        require_inside(table, folder)
    return table


def _listed_classes(folder: Path) -> tuple[str, ...] | None:
    """The class names in `classes.txt`, one in each line: a way to fix the classes and their order."""
    path = folder / _CLASSES
    if not path.is_file():
        return None
    require_inside(path, folder)
    names = tuple(line.strip() for line in read_text(path).splitlines() if line.strip())
    require_distinct(names, str(path))
    nul = next((name for name in names if "\0" in name), None)
    if nul is not None:
        raise UserError(f"{path} has the class {nul!r}, which contains a NUL: rename it.")
    return names
