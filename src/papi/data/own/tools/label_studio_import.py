"""Writes tasks with predictions for Label Studio, which shows them as pre-annotations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from papi.data.own.references import possible_names
from papi.data.own.tools import label_studio
from papi.data.own.tools.formats import read_json_export
from papi.errors import UserError, unknown


@dataclass(frozen=True)
class Prediction:
    """What is written about one image."""

    labels: Sequence[str]
    score: float
    version: str  # of the model, or who has decided


@dataclass(frozen=True)
class Question:
    """The control of the labelling interface that has the labels. The names are those of Label Studio's template."""

    from_name: str = "choice"
    to_name: str = "image"
    kind: str = "choices"
    paths: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of a taxonomy: label → the names above it and it

    def result(self, labels: Sequence[str]) -> dict[str, object]:
        """An answer to it."""
        named = [list(self.paths.get(label, (label,))) for label in labels] if self.kind == "taxonomy" else list(labels)
        return {
            "from_name": self.from_name,
            "to_name": self.to_name,
            "type": self.kind,
            "value": {self.kind: named},
        }


def read_tasks(path: Path, column: str | None) -> tuple[list[Mapping[str, object]], Question]:
    """The tasks of an export, and the question that they answer. `column` is its name, where there are several."""
    content = read_json_export(path)
    if not label_studio.recognises(content) or not isinstance(content, list):
        raise UserError(f"{path} is not Label Studio's JSON export: export the project as JSON, or leave out --tasks.")
    tasks = [task for task in content if isinstance(task, Mapping) and isinstance(task.get("data"), Mapping)]
    found: dict[str, Question] = {}
    paths: dict[str, Sequence[str]] = {}
    for result in (each for task in tasks for each in _results(task)):
        kind, value = str(result.get("type")), result.get("value")
        if kind not in label_studio.ANSWERS or not isinstance(value, Mapping):
            continue
        name = str(result.get("from_name"))
        found.setdefault(name, Question(name, str(result.get("to_name")), kind, paths))
        listed = value.get("taxonomy")
        for names in listed if isinstance(listed, list) else ():
            if isinstance(names, list) and names:
                paths[str(names[-1]).strip()] = [str(name) for name in names]
    if column is not None and column not in found:
        raise UserError(f"{path}: {unknown('question', column, found)}")
    if column is None and len(found) > 1:
        raise UserError(f"{path} has several questions ({', '.join(found)}): train with --candidates.column NAME.")
    return tasks, found[column] if column is not None else next(iter(found.values()), Question())


def _results(task: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    annotations = task.get("annotations", task.get("completions"))
    for annotation in annotations if isinstance(annotations, list) else ():
        results = annotation.get("result") if isinstance(annotation, Mapping) else None
        yield from (each for each in results if isinstance(each, Mapping)) if isinstance(results, list) else ()


def with_predictions(
    tasks: Sequence[Mapping[str, object]], question: Question, known: Mapping[str, Prediction | None]
) -> Iterator[dict[str, object]]:
    """The tasks whose image is `known` by its name in the folder, each with its prediction, if there is one."""
    for task in tasks:
        data = task["data"]
        assert isinstance(data, Mapping)
        image = label_studio.image_of(data)
        name = next((each for each in (image, *possible_names(image)) if each in known), None) if image else None
        if name is None:
            continue
        number = {"id": task["id"]} if isinstance(task.get("id"), int) else {}
        yield number | {"data": dict(data), "predictions": _predictions(known[name], question)}


def new_tasks(known: Mapping[str, Prediction | None], prefix: str) -> Iterator[dict[str, object]]:
    """A task for each image, for a project that does not have them yet. `prefix` goes before the names of files."""
    question = Question()
    for name, prediction in known.items():
        yield {"data": {"image": prefix + name}, "predictions": _predictions(prediction, question)}


def _predictions(found: Prediction | None, question: Question) -> list[dict[str, object]]:
    if found is None:
        return []
    return [{"model_version": found.version, "score": found.score, "result": [question.result(found.labels)]}]
