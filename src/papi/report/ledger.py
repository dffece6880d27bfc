"""Writes decisions.csv for the server: the file is complete after every change, even with several writers."""

import os
import threading
from pathlib import Path

from papi.errors import UserError
from papi.files.durable import replacing
from papi.report.run import Run
from papi.runs.decisions import KINDS, NOTE_LENGTH, Answer, read_answers, table_of

Signature = tuple[int, int, int] | None


class Ledger:
    """The decisions of a run, in memory and in a file that is replaced atomically.

    `version` counts the changes, so that a browser tab can detect decisions of other tabs.
    """

    def __init__(self, file: Path, run: Run) -> None:
        assert run.candidates is not None
        self.file, self.count, self.classes = file, len(run.candidates), tuple(run.class_names)
        self.files = None if run.dataset is None else run.dataset.file_names
        self.version = 0
        self.answers: dict[int, Answer] = {}
        self._lock = threading.Lock()
        self._seen: Signature = None
        self._read_again()

    def exchange(self, message: object) -> dict[str, object]:
        """Apply and write changes. Return the version, and all decisions if the sender has missed any.

        A change is `[index, kind, labels, note]`, or `[index, null]` to undo a decision. An invalid message raises
        `ValueError`. If the file cannot be written, `UserError` is raised and nothing has changed.
        """
        if not isinstance(message, dict) or not isinstance(message.get("changes"), list):
            raise ValueError("a message must have `version` and `changes`")
        changes = [self._change(each) for each in message["changes"]]
        with self._lock:
            self._read_again()
            known = message.get("version") == self.version
            changed = {**self.answers}
            for index, answer in changes:
                if answer is None or changed.get(index) != answer:
                    changed.pop(index, None)  # a changed decision moves to the end
                if answer is not None:
                    changed[index] = answer
            if list(changed.items()) != list(self.answers.items()) or _notes(changed) != _notes(self.answers):
                self._write(changed)
                self.answers = changed
                self.version += 1
            return {"version": self.version} if known else {"version": self.version, "decisions": self._entries()}

    def _change(self, entry: object) -> tuple[int, Answer | None]:
        if not isinstance(entry, list) or not 2 <= len(entry) <= 4:
            raise ValueError("a change must be [index, kind, labels, note]")
        index, kind = entry[:2]
        labels, note = entry[2] if len(entry) > 2 else [], entry[3] if len(entry) > 3 else ""
        if type(index) is not int or not 0 <= index < self.count:
            raise ValueError("unknown image")
        if kind is None:
            return index, None
        fits = isinstance(labels, list) and all(type(k) is int and 0 <= k < len(self.classes) for k in labels)
        if kind not in KINDS or not fits or not isinstance(note, str):
            raise ValueError("unknown answer")
        return index, Answer(kind, tuple(sorted(labels)), note[:NOTE_LENGTH])

    def _entries(self) -> list[list[object]]:
        return [[index, each.kind, list(each.labels), each.note] for index, each in self.answers.items()]

    def _read_again(self) -> None:
        """Read changes of another program, such as a second server or an editor."""
        now = self._signature()
        if now == self._seen:
            return
        self.answers = {} if now is None else read_answers(self.file, self.count, self.classes, self.files)
        self._seen = now
        self.version += 1

    def _write(self, answers: dict[int, Answer]) -> None:
        try:
            with replacing(self.file) as stream:
                stream.write(table_of(answers, self.classes, self.files))
        except OSError as error:
            raise UserError(f"{self.file} cannot be written ({error.strerror})") from error
        self._seen = self._signature()

    def _signature(self) -> Signature:
        try:
            found = os.stat(self.file, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def _notes(answers: dict[int, Answer]) -> list[str]:
    return [each.note for each in answers.values()]
