"""The state of a run folder: what is whole, what is damaged, and what can be done. Nothing is changed."""

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
    """One part of a run. What a kill leaves behind and the next start puts right is not wrong."""

    part: str
    says: str
    wrong: bool = False


@dataclass(frozen=True)
class Checkup:
    """All findings, and what to do."""

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
        raise UserError(f"{path} holds no run: give a folder that `papi train` has written.")
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
    """The state that a start would go on from, and what each of the two files is."""
    newest: State | None = None
    findings = []
    for file in (folder.checkpoint_file, checkpoint.previous(folder.checkpoint_file)):
        if not file.exists():
            continue
        try:
            state = checkpoint.load(file, identity_hash(record.identity), torch.device("cpu"))
            findings.append(Finding("checkpoint", f"{file.name} is whole: {_place(state)}"))
            newest = newest or state
        except checkpoint.DamagedCheckpointError as damage:
            findings.append(Finding("checkpoint", str(damage), wrong=True))
    return newest, findings or [Finding("checkpoint", "there is none")]


def _place(state: State) -> str:
    return f"epoch {state['epoch'] + 1}, {'after step ' + str(state['step']) if state['step'] else 'at its start'}"


def _rows(folder: RunFolder, record: Record, state: State | None, summary: Summary | None) -> Iterator[Finding]:
    """One row for each epoch, in order, and the same as in the checkpoint."""
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
        # A kill in the middle of a line is put right by the next start; a finished run has none.
        yield Finding("rows", "metrics.jsonl ends in half a line", wrong=summary is not None)
    if epochs != list(range(len(rows))):
        yield Finding("rows", f"metrics.jsonl has the epochs {epochs}: some are lost or doubled", wrong=True)
    elif summary is not None and len(rows) != wanted:
        yield Finding("rows", f"metrics.jsonl has {len(rows)} rows, and the run has finished", wrong=True)
    elif state is not None and not _agree(rows[: len(state["rows"])], state["rows"]):
        yield Finding("rows", "metrics.jsonl does not agree with the checkpoint", wrong=True)
    else:
        yield Finding("rows", f"{len(rows)} of {record.identity.get('epochs')} epochs")


def _agree(mine: list[Values], theirs: list[Values]) -> bool:
    """As text, because nan does not equal itself."""
    return json.dumps(mine, sort_keys=True) == json.dumps(theirs, sort_keys=True)


def _whole_files(folder: RunFolder, finished: bool) -> Iterator[Finding]:
    """The files that are written once: the sets at the beginning, the rest at the end."""
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
        yield damage or Finding(file.stem, f"{file.name} is whole")


def _together(folder: RunFolder, findings: list[Finding]) -> Iterator[Finding]:
    """Files that are whole, each by itself, may still come from different runs."""
    whole = {finding.part for finding in findings if not finding.wrong}
    if folder.arrays_file.exists() and {"candidates", "arrays"} <= whole:
        _, damage = _attempt("arrays", folder.read_kept)
        yield from [damage] if damage else []


def _leftovers(folder: RunFolder) -> Iterator[Finding]:
    for file in sorted(folder.path.glob(".*.writing*")):
        yield Finding("leftover", f"{file.name} is half a file that a process began to write; once it ended, delete it")
    for file in sorted(folder.path.glob("*.damaged.pt")):
        yield Finding("leftover", f"{file.name} was damaged and passed over; it can be deleted")


def _lock(folder: RunFolder) -> Iterator[Finding]:
    owner, held = lock.holder(folder.path)
    file = folder.path / lock.NAME
    if held:
        yield Finding("lock", f"in use by {lock.describe(owner)}")
    elif not os.path.lexists(file):
        yield Finding("lock", "free")
    elif file.is_symlink() or not file.is_file():
        yield Finding("lock", f"{file.name} is no regular file: remove it", wrong=True)
    else:
        yield Finding("lock", f"left by {lock.describe(owner)}, which has ended: it locks nobody out")


def _without_config(folder: RunFolder, findings: list[Finding]) -> str:
    if not any(finding.wrong and finding.part == "config" for finding in findings):
        return "`papi train` in this folder begins the run."
    usable = any(finding.part == "model" and not finding.wrong for finding in findings)
    model = f" The model itself can be used: papi.load({str(folder.model_file)!r})." if usable else ""
    return f"Without its settings the run cannot be continued: train again in a new folder with --out.{model}"


def _advice(folder: RunFolder, record: Record, state: State | None, findings: list[Finding]) -> str:
    again = continuing(record, folder.path)
    wrong = {finding.part for finding in findings if finding.wrong}
    if lock.holder(folder.path)[1]:
        return "It is being trained now: look again when that has ended."
    if "config" in wrong:
        return "Its settings cannot be used: open it with the PaPi that wrote it, or train again in a new folder."
    if folder.summary_file.exists():
        if not wrong - {"checkpoint"}:
            report = f"papi report {shlex.quote(str(folder.path))} --open"
            return f"The run is complete; its checkpoints are needed no longer.\nNext: {report}"
        files = "candidates.npz and summary.json" if "candidates" in wrong else "summary.json"
        start = "the first step" if state is None else f"the checkpoint ({_place(state)})"
        return f"Delete {files}; then {again} makes what is damaged or missing anew, from {start}."
    if "candidates" in wrong:
        return f"Delete candidates.npz; then {again} makes it anew and continues."
    if state is None:
        return f"{capitalised(again)} begins from the first step."
    return f"{capitalised(again)} continues it ({_place(state)})."


def continuing(record: Record | None, folder: Path) -> str:
    """What was typed to begin the run, if that was the command, for the folder in which the run lies now."""
    words = [] if record is None else list(record.command[1:])
    if words[:1] not in (["train"], ["labels"]):
        return "the program that began the run"
    while "--out" in words:
        place = words.index("--out")
        del words[place : place + 2]
    words = [word for word in words if not word.startswith("--out=")]
    return f"`papi {shlex.join([*words, '--out', str(folder)])}`"


def capitalised(text: str) -> str:
    """The text as the beginning of a sentence."""
    return text[:1].upper() + text[1:]
