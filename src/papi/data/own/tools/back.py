"""Writes labels in the import formats of annotation tools other than Label Studio."""

import csv
import io
import json
from collections.abc import Mapping
from xml.sax.saxutils import quoteattr  # nosec B406: it writes, and parses nothing

from papi.data.own.tools import coco, crowd, cvat, via
from papi.data.own.tools.label_studio_import import Prediction

Known = Mapping[str, Prediction | None]  # file → what is written about it


def write_cvat(known: Known) -> str:
    """`CVAT for images 1.1` with a tag for each label: upload it as annotations of the task."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<annotations>", "  <version>1.1</version>"]
    for number, (file, found) in enumerate(known.items()):
        lines.append(f'  <image id="{number}" name={quoteattr(file)}>')
        lines += [
            f'    <tag label={quoteattr(label)} source="auto"></tag>' for label in (found.labels if found else ())
        ]
        lines.append("  </image>")
    return "\n".join([*lines, "</annotations>", ""])


def write_coco(known: Known) -> str:
    """COCO with annotations of whole images, and a score for each."""
    names = sorted({label for found in known.values() if found for label in found.labels})
    images = [{"id": number, "file_name": file} for number, file in enumerate(known, 1)]
    labelled = [
        (image, label, found.score)
        for image, found in enumerate(known.values(), 1)
        if found is not None
        for label in found.labels
    ]
    annotations = [
        {"id": number, "image_id": image, "category_id": names.index(label) + 1, "score": score}
        for number, (image, label, score) in enumerate(labelled, 1)
    ]
    categories = [{"id": number, "name": name} for number, name in enumerate(names, 1)]
    content = {"images": images, "annotations": annotations, "categories": categories}
    return json.dumps(content, ensure_ascii=False, indent=1)


def write_via(known: Known, attribute: str = "label") -> str:
    """VIA's csv, with the labels as an attribute of the files: import it as annotations."""
    names = ("filename", "file_size", "file_attributes", "region_count", "region_id")
    rows = [[*names, "region_shape_attributes", "region_attributes"]]
    for file, found in known.items():
        ticked = {} if found is None else {attribute: dict.fromkeys(found.labels, True)}
        rows.append([file, "-1", json.dumps(ticked, ensure_ascii=False), "0", "0", "{}", "{}"])
    return _csv(rows)


def write_crowd(known: Known) -> str:
    """A row `task,label` for each label, as crowd-kit takes it for the true ones."""
    labelled = [[file, label] for file, found in known.items() if found is not None for label in found.labels]
    return _csv([["task", "label"], *labelled])


def _csv(rows: list[list[str]]) -> str:
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows(rows)
    return stream.getvalue()


WRITERS = {cvat.NAME: write_cvat, coco.NAME: write_coco, via.NAME: write_via, crowd.NAME: write_crowd}
SUFFIXES = {cvat.NAME: ".xml", coco.NAME: ".json", via.NAME: ".csv", crowd.NAME: ".csv"}
