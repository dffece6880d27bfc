"""Checks a run folder: which files are intact, which are damaged, and how to repair them. Nothing is changed."""

import json
import math
import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import TypeVar

import torch

from papi.config import Values
from papi.errors import UserError
from papi.files import lock
from papi.runs import checkpoint
from papi.runs.checkpoint import State
from papi.runs.folder import RunFolder
from papi.runs.identity import identity_hash
from papi.runs.model import check_model
from papi.runs.schema import Record, Summary

T = TypeVar("T")


@dataclass(frozen=True)
class Finding:
    """The state of one part of a run. Leftovers of a kill that the next start repairs are not errors."""

    part: str
    says: str
    wrong: bool = False


@dataclass(frozen=True)
class Checkup:
    """All findings, and the advice."""

    findings: tuple[Finding, ...]
    advice: str

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        return not any(finding.wrong for finding in self.findings)


def check_up(path: Path) -> Checkup:
    """Read everything in a run folder."""
    folder = RunFolder(path)
    files = [file for file in vars(folder).values() if isinstance(file, Path) and file != folder.path]
    if not any(file.exists() for file in files):
        raise UserError(f"{path} does not contain a run: specify a folder that `papi train` has written.")
    record, config = _attempt("config", folder.read_record)
    summary, ending = _attempt("summary", folder.read_summary)
    if record is None:
        findings = [config or _missing_config(folder), *_whole_files(folder, finished=summary is not None)]
        return Checkup((*findings, *_lock(folder)), _without_config(folder, findings))
    state, saved = _checkpoints(folder, record)
    findings = [
        *_config(folder, record),
        *saved,
        *_rows(folder, record, state, summary),
        *([ending] if ending else []),
        *_whole_files(folder, finished=summary is not None or ending is not None),
    ]
    findings += [*_together(folder, findings), *_leftovers(folder), *_lock(folder)]
    return Checkup(tuple(findings), _advice(folder, record, state, findings))


def _attempt(part: str, read: Callable[[], T]) -> tuple[T | None, Finding | None]:
    try:
        return read(), None
    except UserError as error:
        return None, Finding(part, str(error), wrong=True)


def _missing_config(folder: RunFolder) -> Finding:
    begun = folder.metrics_file.exists() or folder.checkpoint_file.exists() or folder.model_file.exists()
    return Finding("config", "config.json is missing" if begun else "the run has not begun", wrong=begun)


def _config(folder: RunFolder, record: Record) -> Iterator[Finding]:
    yield Finding("config", shorten(f"{record.identity.get('method')} on {record.identity.get('data')}", 300))
    if record.config:  # the first versions wrote their identity alone
        _, damage = _attempt("config", folder.read_run_config)
        yield from [damage] if damage else []


def _checkpoints(folder: RunFolder, record: Record) -> tuple[State | None, list[Finding]]:
    """Return the state from which training would resume, and a finding for each of the two files."""
    newest: State | None = None
    findings = []
    for file in (folder.checkpoint_file, checkpoint.previous(folder.checkpoint_file)):
        if not file.exists():
            continue
        try:
            state = checkpoint.load(file, identity_hash(record.identity), torch.device("cpu"))
            findings.append(Finding("checkpoint", f"{file.name} is intact: {_place(state)}"))
            newest = newest or state
        except checkpoint.DamagedCheckpointError as damage:
            findings.append(Finding("checkpoint", str(damage), wrong=True))
    return newest, findings or [Finding("checkpoint", "none")]


def _place(state: State) -> str:
    if state["step"]:
        return f"epoch {state['epoch'] + 1}, after step {state['step']}"
    return f"after epoch {state['epoch']}" if state["epoch"] else "before the first step"


def _rows(folder: RunFolder, record: Record, state: State | None, summary: Summary | None) -> Iterator[Finding]:
    """Check that there is one row per epoch, in order, as in the checkpoint."""
    found = folder.look_at_rows()
    if found.problem is not None:
        yield Finding("rows", f"metrics.jsonl cannot be read ({found.problem})", wrong=True)
        return
    rows = [row.to_json() for row in found.rows]
    epochs = [row.epoch for row in found.rows]
    wanted = record.identity.get("epochs")
    if summary is not None and summary.trained_epochs is not None:  # it may have ended before
        wanted = math.ceil(summary.trained_epochs)
    if found.half:
        # The next start repairs a line that a kill has cut off; a finished run has none.
        yield Finding("rows", "metrics.jsonl ends with an incomplete line", wrong=summary is not None)
    if epochs != list(range(len(rows))):
        yield Finding("rows", f"metrics.jsonl has the epochs {epochs}: some are missing or repeated", wrong=True)
    elif summary is not None and len(rows) != wanted:
        yield Finding("rows", f"metrics.jsonl has {len(rows)} rows instead of {wanted}", wrong=True)
    elif state is not None and not _agree(rows[: len(state["rows"])], state["rows"]):
        yield Finding("rows", "metrics.jsonl does not agree with the checkpoint", wrong=True)
    else:
        yield Finding("rows", f"metrics.jsonl has {len(rows)} of {record.identity.get('epochs')} epochs")


def _agree(mine: list[Values], theirs: list[Values]) -> bool:
    """Compare as text, because nan does not equal itself."""
    return json.dumps(mine, sort_keys=True) == json.dumps(theirs, sort_keys=True)


def _whole_files(folder: RunFolder, finished: bool) -> Iterator[Finding]:
    """Check the files that are written once: the candidate sets at the start, the others at the end."""
    readers: dict[Path, tuple[bool, Callable[[], object]]] = {
        folder.candidates_file: (True, folder.read_sets),
        folder.arrays_file: (finished, folder.read_arrays),
        folder.model_file: (finished, lambda: check_model(folder.path)),
    }
    for file, (expected, read) in readers.items():
        if not file.exists():
            if expected:
                yield Finding(file.stem, f"{file.name} is missing", wrong=True)
            continue
        _, damage = _attempt(file.stem, read)
        yield damage or Finding(file.stem, f"{file.name} is intact")


def _together(folder: RunFolder, findings: list[Finding]) -> Iterator[Finding]:
    """Check that intact files do not come from different runs."""
    whole = {finding.part for finding in findings if not finding.wrong}
    if folder.arrays_file.exists() and {"candidates", "arrays"} <= whole:
        _, damage = _attempt("arrays", folder.read_kept)
        yield from [damage] if damage else []


def _leftovers(folder: RunFolder) -> Iterator[Finding]:
    for file in sorted(folder.path.glob(".*.writing*")):
        yield Finding("leftover", f"{file.name} is an incomplete file; delete it after its process has ended")
    for file in sorted(folder.path.glob("*.damaged.pt")):
        yield Finding("leftover", f"{file.name} is a damaged checkpoint that is not used; it can be deleted")


def _lock(folder: RunFolder) -> Iterator[Finding]:
    owner, held = lock.holder(folder.path)
    file = folder.path / lock.NAME
    if held:
        yield Finding("lock", f"in use by {lock.describe(owner)}")
    elif not os.path.lexists(file):
        yield Finding("lock", "no process is training in this folder")
    elif file.is_symlink() or not file.is_file():
        yield Finding("lock", f"{file.name} is not a regular file: remove it", wrong=True)
    else:
        yield Finding("lock", f"left by {lock.describe(owner)}, which has ended; it does no harm")


def _without_config(folder: RunFolder, findings: list[Finding]) -> str:
    if not any(finding.wrong and finding.part == "config" for finding in findings):
        return "`papi train` in this folder starts the run."
    usable = any(finding.part == "model" and not finding.wrong for finding in findings)
    model = f" The model itself is usable: papi.load({str(folder.model_file)!r})." if usable else ""
    return f"Without its settings, the run cannot be continued: train again in a new folder with --out.{model}"


def _advice(folder: RunFolder, record: Record, state: State | None, findings: list[Finding]) -> str:
    again = continuing(record, folder.path)
    wrong = {finding.part for finding in findings if finding.wrong}
    if lock.holder(folder.path)[1]:
        return "The run is training now: check again when it has ended."
    if "config" in wrong:
        return "The settings are not valid: use the version of PaPi that wrote them, or train again in a new folder."
    if folder.summary_file.exists():
        if not wrong - {"checkpoint"}:
            report = f"papi report {shlex.quote(str(folder.path))} --open"
            return f"The run is complete; its checkpoints are no longer needed.\nNext: {report}"
        files = "candidates.npz and summary.json" if "candidates" in wrong else "summary.json"
        start = "the first step" if state is None else f"the checkpoint ({_place(state)})"
        return f"Delete {files}; then {again} restores the damaged or missing files, starting from {start}."
    if "candidates" in wrong:
        return f"Delete candidates.npz; then {again} restores it and continues."
    if state is None:
        return f"{capitalised(again)} starts from the first step."
    return f"{capitalised(again)} continues it ({_place(state)})."


def continuing(record: Record | None, folder: Path) -> str:
    """Return the command that continues the run in its current folder, if it was started by the command."""
    words = [] if record is None else list(record.command[1:])
    if words[:1] not in (["train"], ["labels"]):
        return "the program that began the run"
    while "--out" in words:
        place = words.index("--out")
        del words[place : place + 2]
    words = [word for word in words if not word.startswith("--out=")]
    return f"`papi {shlex.join([*words, '--out', str(folder)])}`"


def capitalised(text: str) -> str:
    """Capitalise the first letter of a text."""
    return text[:1].upper() + text[1:]
