"""Resolves image references of annotation tools: URLs, tool-specific prefixes, and paths in other folders."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np

from papi.data.dataset import Report
from papi.data.own.annotation_arrays import Annotations
from papi.data.own.folders import Nearby, locate

_LOCAL_FILES = "/data/local-files/?d="  # Label Studio: images on the disk of its server
_UPLOAD = re.compile(r"(?:.*/)?upload/(?:.*/)?[0-9a-f]{8}-([^/]+)")  # Label Studio: images that were uploaded


def possible_names(reference: str) -> Iterator[str]:
    """Yield the names that a file may have inside a folder of images, the most likely first.

    `/data/local-files/?d=photos/rose/1.jpg` can be `photos/rose/1.jpg`, `rose/1.jpg` or `1.jpg`. An upload may or may
    not have the eight digits that Label Studio puts before the name.
    """
    path = reference
    _, local, rest = reference.partition(_LOCAL_FILES)
    if local:
        path = unquote(rest.partition("&")[0])
    elif "://" in reference:
        yield reference.rpartition("/")[2]  # a name may contain characters with a special meaning in a URL
        path = unquote(urlsplit(reference).path)
    path = path.replace("\\", "/").lstrip("/")
    parts = path.split("/")
    for first in range(len(parts)):
        yield "/".join(parts[first:])
    upload = _UPLOAD.fullmatch(path)
    if upload is not None:
        yield upload[1]


def find(folder: Path, reference: str) -> tuple[str, Path] | str:
    """Return the name inside the folder and the file of a reference, or a description of the problem."""
    for name in (reference, *possible_names(reference)):
        located = locate(folder, name)
        if isinstance(located, Path):
            return name, located
    return str(locate(folder, reference))


def matched(folder: Path, found: Annotations, report: Report) -> Annotations:
    """Select the rows whose image is in the folder, by its name there. Report missing and repeated images."""
    assert found.file_names is not None
    names: list[str] = []
    rows: list[int] = []
    seen: dict[Path, str] = {}
    nearby = Nearby(folder)
    for row, reference in enumerate(found.file_names):
        located = find(folder, reference)
        if isinstance(located, str):
            report(f"{found.where[row]} {located}{nearby(reference)}")
            continue
        name, path = located
        before = seen.setdefault(path, found.where[row])
        if before != found.where[row]:
            report(f"{found.where[row]} and {before} both describe {name!r}: keep one entry per file.")
            continue
        names.append(name)
        rows.append(row)
    others = [find(folder, reference) for reference in (found.named or frozenset()).difference(found.file_names)]
    known = frozenset((*names, *(each[0] for each in others if not isinstance(each, str))))
    named = None if found.named is None else known
    return replace(found.taking(np.array(rows, np.int64)), file_names=tuple(names), named=named, loose=False)
