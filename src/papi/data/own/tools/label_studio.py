"""Reads Label Studio's JSON export: a list of tasks, each with an image and annotations of several people."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from reprlib import repr as shortened

from papi.data.dataset import Report
from papi.data.images.decode import SUFFIXES
from papi.data.own.entries import Statement
from papi.errors import UserError

NAME = "label-studio"
ANSWERS = ("choices", "taxonomy")  # results that name labels of a whole image
_RATING = "rating"  # how sure the annotator is
_PLACES = ("x", "y", "points", "rle", "start", "end")  # a value with one of these is about a region
_REGIONS = (
    "rectangle", "rectanglelabels", "polygon", "polygonlabels", "brush", "brushlabels", "ellipse", "ellipselabels",
    "keypoint", "keypointlabels", "bitmask", "bitmasklabels", "vector", "vectorlabels",
)  # fmt: skip


def recognises(content: object) -> bool:
    """Whether this is a list of tasks."""
    if not isinstance(content, list) or not content or not isinstance(content[0], Mapping):
        return False
    return "data" in content[0] and bool({"annotations", "completions", "predictions"} & content[0].keys())


def statements(content: object, path: Path, column: str | None, report: Report) -> Iterator[Statement]:
    """What each annotator says about each task; a task that nobody has annotated is listed without labels.

    `column` is the name of the question in the labelling interface (`from_name`), where there are several.
    """
    if not isinstance(content, list):
        raise UserError(f"{path} is not Label Studio's JSON export, which is a list of tasks: export it as JSON.")
    asked: dict[str, str] = {}  # the first place of each question
    for number, task in enumerate(content, 1):
        where = f"{path}, task {number}"
        if not isinstance(task, Mapping) or not isinstance(task.get("data"), Mapping):
            report(f"{where} has no data: export the project as JSON.")
            continue
        if isinstance(task.get("id"), int):
            where = f"{where} (id {task['id']})"
        image = image_of(task["data"])
        if image is None:
            report(f"{where} has no image: none of its data {shortened(list(task['data']))} is an image file.")
            continue
        yield from _task(task, where, image, column, asked, report)
    if len(asked) > 1:
        raise UserError(
            f"{path} has several questions ({', '.join(asked)}; see {list(asked.values())[1]}): choose the one with "
            "the labels with --candidates.column."
        )


def image_of(data: Mapping[str, object]) -> str | None:
    """The image of a task: what `data` calls so, or the first value that is the name of an image file."""
    image = data.get("image")
    if isinstance(image, str) and image:
        return image
    texts = (value for value in data.values() if isinstance(value, str))
    return next((text for text in texts if Path(text.partition("?d=")[2] or text).suffix.lower() in SUFFIXES), None)


def _task(
    task: Mapping[str, object], where: str, image: str, column: str | None, asked: dict[str, str], report: Report
) -> Iterator[Statement]:
    given = task.get("annotations", task.get("completions", []))
    if not isinstance(given, list) or not all(isinstance(each, Mapping) for each in given):
        report(f"{where} has annotations that are not a list of objects: {shortened(given)}.")
        return
    found: dict[str, Statement] = {}  # of two annotations by one person, the later counts
    for number, annotation in enumerate(given, 1):
        if annotation.get("was_cancelled"):
            continue
        place = f"{where}, annotation {number}"
        said = _answer(annotation.get("result"), place, column, asked)
        if isinstance(said, str):
            report(f"{place} {said}.")
            continue
        labels, sureness = said
        if labels:
            who = _annotator(annotation.get("completed_by")) or f"annotation {number}"
            found[who] = Statement(place, image, who, labels, sureness=sureness)
    yield from found.values() if found else (Statement(where, image),)


def _answer(
    result: object, place: str, column: str | None, asked: dict[str, str]
) -> tuple[tuple[str, ...], float] | str:
    """The labels of an annotation and how sure it is, or what is wrong with it."""
    if not isinstance(result, list):
        return f"has a result that is not a list: {shortened(result)}"
    labels: list[str] = []
    sureness, region = 1.0, False
    for part in result:
        if not isinstance(part, Mapping) or not isinstance(part.get("value"), Mapping):
            return f"has a result without a value: {shortened(part)}"
        kind, value, question = str(part.get("type")), part["value"], str(part.get("from_name"))
        if kind == _RATING:
            rating = value.get(_RATING)
            if isinstance(rating, bool) or not isinstance(rating, int | float) or not 0 <= rating < float("inf"):
                return f"has the rating {shortened(rating)}, which must be a number of stars"
            sureness = float(rating) or 1.0  # no star at all is no rating
        elif kind in _REGIONS:
            region = True
        elif kind in ANSWERS and column in (None, question):
            if any(name in value for name in _PLACES):
                return f"answers {question!r} for a region: labels must be for whole images"
            named = _labels(kind, value.get(kind))
            if named is None:
                return f"has {kind} that are not a list of labels: {shortened(value.get(kind))}"
            asked.setdefault(question, place)
            labels += [label for label in named if label not in labels]
    if region and not labels:
        return "labels regions but not the whole image: add a question with choices for the image"
    return tuple(labels), sureness


def _labels(kind: str, value: object) -> list[str] | None:
    """The labels of choices; of a taxonomy, the last name on each path. None if there are none of that form."""
    if not isinstance(value, list):
        return None
    names = value if kind == "choices" else [path[-1] if isinstance(path, list) and path else None for path in value]
    texts = [name.strip() for name in names if isinstance(name, str) and name.strip()]
    return texts if len(texts) == len(names) else None


def _annotator(who: object) -> str | None:
    """The number of the person, or their address if the export has it."""
    if isinstance(who, Mapping):
        who = who.get("email") or who.get("id")
    return str(who) if isinstance(who, int | str) and who != "" else None
