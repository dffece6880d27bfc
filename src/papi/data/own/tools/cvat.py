"""Reads the format `CVAT for images 1.1`: an XML file with tags for images."""

from collections.abc import Iterator
from pathlib import Path

# Document types, and with them entities, are refused below.
from xml.parsers import expat  # nosec B407

from papi.data.dataset import Report
from papi.data.own.entries import Statement
from papi.errors import UserError
from papi.files.reading import memory_bytes, opened, reason

NAME = "cvat"
_CHUNK = 2**16
_SHAPES = {"box", "polygon", "polyline", "points", "ellipse", "cuboid", "mask", "skeleton"}


def statements(path: Path, column: str | None, report: Report) -> Iterator[Statement]:
    """The tags of each image; an image without tags has no labels.

    `column` is an attribute of the tags: then its values are the labels, and not the names of the tags.
    """
    reader = _Reader(path, column, report)
    try:
        with opened(path, memory_bytes()) as stream:
            while part := stream.read(_CHUNK):
                reader.parser.Parse(part, False)
                yield from reader.take()
            reader.parser.Parse(b"", True)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({reason(error)}): check the name.") from error
    except expat.ExpatError as error:
        what = expat.errors.messages[error.code]
        raise UserError(f"{path}, line {error.lineno} is not valid XML ({what}): export it again.") from error
    yield from reader.take()


class _Reader:
    """Collects statements while the parser goes through the file, so that a large one is never in memory."""

    def __init__(self, path: Path, column: str | None, report: Report) -> None:
        self.path, self.column, self.report = path, column, report
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._refuse_doctype
        self.parser.buffer_text = True
        self.found: list[Statement] = []
        self.open: list[str] = []  # the elements around the current place
        self.image: tuple[str, str] | None = None  # its place and file
        self.labels: list[str] = []
        self.regions = False
        self.attribute: list[str] | None = None  # the text of the attribute that is being read

    def take(self) -> list[Statement]:
        """What was found since the last time."""
        found, self.found = self.found, []
        return found

    def _where(self) -> str:
        return f"{self.path}, line {self.parser.CurrentLineNumber}"

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if not self.open and name != "annotations":
            raise UserError(
                f"{self._where()} begins with <{name}> instead of <annotations>: export it as CVAT for images 1.1."
            )
        inside = self.open[-1] if self.open else ""
        self.open.append(name)
        if name == "image" and inside == "annotations":
            self._start_image(attributes)
        elif name == "track" and inside == "annotations":
            raise UserError(f"{self._where()} has tracks of a video: export the task as CVAT for images 1.1.")
        elif inside == "image" and name == "tag":
            self._start_tag(attributes)
        elif inside == "image" and name in _SHAPES:
            self.regions = True
        elif inside == "tag" and name == "attribute" and attributes.get("name") == self.column is not None:
            self.attribute = []

    def _start_image(self, attributes: dict[str, str]) -> None:
        file = attributes.get("name", "").strip()
        if not file:
            self.report(f"{self._where()} has an image without a name.")
        self.image = (self._where(), file) if file else None
        self.labels, self.regions = [], False

    def _start_tag(self, attributes: dict[str, str]) -> None:
        label = attributes.get("label", "").strip()
        if not label:
            self.report(f"{self._where()} has a tag without a label.")
        elif self.column is None:
            self._add(label)

    def _end(self, name: str) -> None:
        self.open.pop()
        if name == "attribute" and self.attribute is not None:
            self._add("".join(self.attribute).strip())
            self.attribute = None
        if name == "image" and self.open == ["annotations"] and self.image is not None:
            where, file = self.image
            if self.regions and not self.labels:
                self.report(f"{where} has shapes but no tags for {file!r}: labels must be for whole images.")
            else:
                self.found.append(Statement(where, file, labels=tuple(self.labels)))
            self.image = None

    def _add(self, label: str) -> None:
        if label and label not in self.labels:
            self.labels.append(label)

    def _text(self, text: str) -> None:
        if self.attribute is not None:
            self.attribute.append(text)

    def _refuse_doctype(self, *_: object) -> None:
        raise UserError(f"{self._where()} declares a document type, which CVAT never does: export it again.")
