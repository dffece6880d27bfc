"""Reads COCO JSON with labels of whole images: every category of an image is a candidate."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from reprlib import repr as shortened
from typing import TypeGuard

from papi.data.dataset import Report
from papi.data.own.entries import Statement
from papi.errors import UserError

NAME = "coco"


def recognises(content: object) -> bool:
    """Whether this has the three lists of COCO."""
    return isinstance(content, Mapping) and {"images", "annotations", "categories"} <= content.keys()


def statements(content: object, path: Path, column: str | None, report: Report) -> Iterator[Statement]:
    """The categories of each image, in the order of the images; an image without annotations has no labels."""
    if not isinstance(content, Mapping):
        raise UserError(f"{path} is not COCO, which is an object with images, annotations and categories.")
    if column is not None:
        raise UserError(f"{path} is COCO, which has only one set of labels: leave out --candidates.column.")
    names = dict(_by_id(content, "categories", "name", path, report))
    images = dict(_by_id(content, "images", "file_name", path, report))
    sizes = {each["id"]: each for each in _objects(content, "images", path) if _is_number(each.get("id"))}
    labels: dict[int, list[str]] = {number: [] for number in images}
    for number, each in enumerate(_objects(content, "annotations", path), 1):
        where = f"{path}, annotation {number}"
        image, category = each.get("image_id"), each.get("category_id")
        if not _is_number(image) or image not in images:
            report(f"{where} has the image_id {shortened(image)}, which is not an image in the file.")
        elif not _is_number(category) or category not in names:
            report(f"{where} has the category_id {shortened(category)}, which is not a category in the file.")
        elif _is_region(each, sizes[image]):
            report(f"{where} marks a region of {images[image]!r}: labels must be about whole images.")
        elif names[category] not in labels[image]:
            labels[image].append(names[category])
    for place, (number, file) in enumerate(images.items(), 1):
        yield Statement(f"{path}, image {place} (id {number})", file, labels=tuple(labels[number]))


def _objects(content: Mapping[str, object], name: str, path: Path) -> list[Mapping[str, object]]:
    listed = content.get(name)
    if not isinstance(listed, list):
        raise UserError(f"{name} in {path} must be a list; got {shortened(listed)}.")
    for number, each in enumerate(listed, 1):
        if not isinstance(each, Mapping):
            raise UserError(f"{path}, {name} {number} must be an object; got {shortened(each)}.")
    return listed


def _by_id(
    content: Mapping[str, object], name: str, column: str, path: Path, report: Report
) -> Iterator[tuple[int, str]]:
    """The texts in a column by `id`, which may occur once."""
    seen = set()
    for number, each in enumerate(_objects(content, name, path), 1):
        key, text = each.get("id"), each.get(column)
        if not _is_number(key) or key in seen:
            report(f"{path}, {name} {number} has the id {shortened(key)}: it must be a unique number.")
        elif not isinstance(text, str) or not text.strip():
            report(f"{path}, {name} {number} has no {column}: got {shortened(text)}.")
        else:
            seen.add(key)
            yield key, text.strip()


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_region(annotation: Mapping[str, object], image: Mapping[str, object]) -> bool:
    """Whether an annotation is about less than the whole image. Some tools give a whole image as a box."""
    if annotation.get("segmentation"):
        return True
    box = annotation.get("bbox")
    return bool(box) and box != [0, 0, image.get("width"), image.get("height")]
