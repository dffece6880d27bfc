"""`papi labels --format TOOL`: write resolved labels and decisions in the import format of an annotation tool."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from papi.cli.terminal import counted, make_console
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
    "cvat": "upload this file to the task as annotations in the format CVAT 1.1.",
    "coco": "import this file in any tool that reads COCO; every label has its score.",
    "via": "import this file in VIA as annotations.",
    "crowd": "read this file with pandas; for crowd-kit, use the column task as the index.",
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
    """Write the labels of a run for a tool; for Label Studio, with the tasks of the run's export or of `tasks`."""
    folder = RunFolder(run)
    file, within = out or run / f"{tool}{SUFFIXES.get(tool, '.json')}", None if out else run
    inputs = [each for each in (tasks, decisions) if each is not None]
    require_output(file, inputs=[*folder.files, *inputs], within=within)
    if sets.file_names is None:
        raise UserError(f"the images of {run} have no file names, which annotation tools need: use --format csv.")
    files = tuple(str(name) for name in sets.file_names)
    answers = {} if decisions is None else read_answers(decisions, len(files), record.classes, files)
    known = _predictions(record, sets, arrays, files, answers)
    text, told = (WRITERS[tool](known), len(known)) if tool in WRITERS else _tasks(folder, known, tasks, prefix)
    with output_file(file, within=within) as half:
        half.write_text(text, "utf-8", newline="")
    console = make_console()
    rest = len(files) - told
    left = f"; {rest:,} images of the run have no task" if rest > 0 else ""
    console.print(f"Wrote the labels of {counted(told, 'image')} to {file}{left}", soft_wrap=True)
    console.print(f"Next: {_NEXT[tool]}")


def _tasks(
    folder: RunFolder, known: Mapping[str, Prediction | None], tasks: Path | None, prefix: str | None
) -> tuple[str, int]:
    """Return the content of the file for Label Studio, and the number of its tasks."""
    sets = folder.read_run_config().candidates
    export = tasks or _own_export(sets)
    if export is None:
        written = list(new_tasks(known, prefix or ""))
    elif prefix is not None:
        raise UserError(
            f"--image-prefix cannot be used with the tasks of {export}, which have their own image addresses."
        )
    else:
        written = list(with_predictions(*read_tasks(export, sets.column), known))
        if not written:
            raise UserError(
                f"no task in {export} belongs to an image of {folder.path}: specify the export that it was trained on."
            )
    return json.dumps(written, ensure_ascii=False, indent=1), len(written)


def _own_export(sets: CandidatesConfig) -> Path | None:
    """Return the export that the run was trained on, if it was a Label Studio export."""
    named = sets.format == "label-studio" or (sets.format is None and sets.file and sets.file.suffix.lower() == ".json")
    if sets.file is None or not named:
        return None
    if not sets.file.is_file():
        raise UserError(
            f"the export {sets.file} that the run was trained on no longer exists: specify it with --tasks."
        )
    return sets.file


def _predictions(
    record: Record, sets: Sets, arrays: Arrays, files: tuple[str, ...], answers: Mapping[int, Answer]
) -> dict[str, Prediction | None]:
    """Return the prediction for each file; None if a person marked the image as bad or all candidates as wrong."""
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
