"""`papi labels --format TOOL`: resolved labels and decisions in the format that an annotation tool imports."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from papi.cli.terminal import make_console
from papi.config import CandidatesConfig
from papi.data.own.tools.back import SUFFIXES, WRITERS
from papi.data.own.tools.label_studio_import import Prediction, new_tasks, read_tasks, with_predictions
from papi.errors import UserError
from papi.files.durable import output_file, require_output
from papi.runs.decisions import Answer, read_answers
from papi.runs.folder import RunFolder
from papi.runs.labels import resolve
from papi.runs.schema import Arrays, Record, Sets

_DECIDED = "decision"
_NEXT = {
    "label-studio": "import this file in Label Studio; it shows the labels as predictions.",
    "cvat": "upload this file as annotations of the task, in the format CVAT 1.1.",
    "coco": "import this file where COCO is taken; every label has its score.",
    "via": "import this file as annotations in VIA.",
    "crowd": "read this file with pandas; its index for crowd-kit is the column task.",
}


def write_back(
    run: Path,
    out: Path | None,
    tool: str,
    tasks: Path | None,
    decisions: Path | None,
    prefix: str | None,
    record: Record,
    sets: Sets,
    arrays: Arrays,
) -> None:
    """Write the run's labels for a tool; for Label Studio, with the tasks of the run's export, or of `tasks`."""
    folder = RunFolder(run)
    file, within = out or run / f"{tool}{SUFFIXES.get(tool, '.json')}", None if out else run
    inputs = [each for each in (tasks, decisions) if each is not None]
    require_output(file, inputs=[*folder.files, *inputs], within=within)
    if sets.file_names is None:
        raise UserError(f"the images of {run} have no file names: no tool can be told which they are.")
    files = tuple(str(name) for name in sets.file_names)
    answers = {} if decisions is None else read_answers(decisions, len(files), record.classes, files)
    known = _predictions(record, sets, arrays, files, answers)
    text, told = (WRITERS[tool](known), len(known)) if tool in WRITERS else _tasks(folder, known, tasks, prefix)
    with output_file(file, within=within) as half:
        half.write_text(text, "utf-8", newline="")
    console = make_console()
    rest = len(files) - told
    left = f"; {rest:,} images of the run have no task" if rest > 0 else ""
    console.print(f"{told:,} images with labels are in {file}{left}", soft_wrap=True)
    console.print(f"Next: {_NEXT[tool]}")


def _tasks(
    folder: RunFolder, known: Mapping[str, Prediction | None], tasks: Path | None, prefix: str | None
) -> tuple[str, int]:
    """The file for Label Studio, and the number of tasks in it."""
    sets = folder.read_run_config().candidates
    export = tasks or _own_export(sets)
    if export is None:
        written = list(new_tasks(known, prefix or ""))
    elif prefix is not None:
        raise UserError(f"--image-prefix is for images without tasks; those of {export} have their own addresses.")
    else:
        written = list(with_predictions(*read_tasks(export, sets.column), known))
        if not written:
            raise UserError(
                f"no task of {export} is about an image of {folder.path}: give the export it was trained with."
            )
    return json.dumps(written, ensure_ascii=False, indent=1), len(written)


def _own_export(sets: CandidatesConfig) -> Path | None:
    """The export that the run was trained with, if it was one of Label Studio."""
    named = sets.format == "label-studio" or (sets.format is None and sets.file and sets.file.suffix.lower() == ".json")
    if sets.file is None or not named:
        return None
    if not sets.file.is_file():
        raise UserError(f"{sets.file}, which the run was trained with, is not there any more: give it with --tasks.")
    return sets.file


def _predictions(
    record: Record, sets: Sets, arrays: Arrays, files: tuple[str, ...], answers: Mapping[int, Answer]
) -> dict[str, Prediction | None]:
    """What to write about each file. An image that a person found bad, or without a right candidate, gets nothing."""
    found = resolve(sets.candidates, arrays.confidence, arrays.second_opinion)
    version = f"papi {record.versions.get('papi-pll', '')} {record.config.get('method', '')}".strip()
    score = np.round(found.confidence, 6).tolist()
    known: dict[str, Prediction | None] = {
        name: Prediction([record.classes[found.label[row]]], score[row], version) for row, name in enumerate(files)
    }
    for row, answer in answers.items():
        if answer.labels:
            known[files[row]] = Prediction([record.classes[k] for k in answer.labels], 1.0, _DECIDED)
        elif answer.kind != "skip":
            known[files[row]] = None
    return known
