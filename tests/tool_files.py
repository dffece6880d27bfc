"""Exports of annotation tools, made by us in their documented forms."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

Said = Mapping[str, Mapping[str, Sequence[str]]]
"""File → annotator → labels. Tools that do not tell annotators apart get all labels as one."""


def choices(labels: Sequence[str], question: str = "choice") -> dict[str, object]:
    """One result of Label Studio."""
    return {
        "id": "aB3_x", "from_name": question, "to_name": "image", "type": "choices", "origin": "manual",
        "value": {"choices": list(labels)},
    }  # fmt: skip


def task(number: int, image: str, annotations: Sequence[dict[str, object]]) -> dict[str, object]:
    """One task of Label Studio, as exported."""
    return {
        "id": number, "annotations": list(annotations), "predictions": [], "file_upload": image.rpartition("/")[2],
        "drafts": [], "data": {"image": image}, "meta": {}, "created_at": "2026-01-05T10:00:00.000000Z",
        "updated_at": "2026-01-05T10:01:00.000000Z", "inner_id": number, "total_annotations": len(annotations),
        "cancelled_annotations": 0, "total_predictions": 0, "project": 1, "updated_by": 1, "comment_authors": [],
    }  # fmt: skip


def annotation(who: object, *results: dict[str, object], cancelled: bool = False) -> dict[str, object]:
    """One annotation of Label Studio."""
    return {
        "id": 7, "completed_by": who, "result": list(results), "was_cancelled": cancelled, "ground_truth": False,
        "created_at": "2026-01-05T10:00:30.000000Z", "lead_time": 4.2, "task": 1, "unique_id": "0f4e",
    }  # fmt: skip


def label_studio(said: Said, prefix: str = "/data/upload/1/0123abcd-") -> str:
    """Label Studio's JSON export."""
    tasks = [
        task(
            number, prefix + file, [annotation({"id": 3, "email": who}, choices(labels)) for who, labels in by.items()]
        )
        for number, (file, by) in enumerate(said.items(), 1)
    ]
    return json.dumps(tasks, ensure_ascii=False)


def cvat(said: Said) -> str:
    """CVAT for images 1.1."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<annotations>", "  <version>1.1</version>", "  <meta/>"]
    for number, (file, by) in enumerate(said.items()):
        lines.append(f'  <image id="{number}" name={quoteattr(file)} width="8" height="8">')
        for label in together(by):
            lines.append(f'    <tag label={quoteattr(label)} source="manual">\n    </tag>')
        lines.append("  </image>")
    return "\n".join([*lines, "</annotations>", ""])


def coco(said: Said) -> str:
    """COCO, with annotations of whole images."""
    names = list(dict.fromkeys(label for by in said.values() for label in together(by)))
    images = [{"id": 10 + number, "file_name": file, "width": 8, "height": 8} for number, file in enumerate(said)]
    annotations = [
        {"id": 100 + number, "image_id": 10 + image, "category_id": 1 + names.index(label)}
        for number, (image, label) in enumerate(
            (image, label) for image, by in enumerate(said.values()) for label in together(by)
        )
    ]
    categories = [{"id": 1 + number, "name": name, "supercategory": ""} for number, name in enumerate(names)]
    return json.dumps({"images": images, "annotations": annotations, "categories": categories}, ensure_ascii=False)


def via(said: Said) -> str:
    """VIA's csv, with checkboxes."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(
        ["filename", "file_size", "file_attributes", "region_count", "region_id", "region_shape_attributes",
         "region_attributes"]
    )  # fmt: skip
    for file, by in said.items():
        ticked = json.dumps({"flower": dict.fromkeys(together(by), True)}, ensure_ascii=False)
        writer.writerow([file, 812, ticked, 0, 0, "{}", "{}"])
    return stream.getvalue()


def crowd(said: Said) -> str:
    """crowd-kit's long table."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(["task", "worker", "label"])
    writer.writerows((file, who, label) for file, by in said.items() for who, labels in by.items() for label in labels)
    return stream.getvalue()


WRITERS = {
    "label-studio": (label_studio, ".json"),
    "cvat": (cvat, ".xml"),
    "coco": (coco, ".json"),
    "via": (via, ".csv"),
    "crowd": (crowd, ".csv"),
}


def together(by: Mapping[str, Sequence[str]]) -> list[str]:
    """The labels of all annotators."""
    return list(dict.fromkeys(label for labels in by.values() for label in labels))


def write(folder: Path, tool: str, said: Said) -> Path:
    """The export of a tool as a file."""
    writer, suffix = WRITERS[tool]
    path = folder / f"{tool}{suffix}"
    path.write_text(writer(said), "utf-8")
    return path
