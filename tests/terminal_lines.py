"""Lines that a reader types into a terminal, run within this process: importing torch for each would take minutes."""

import glob
import os
import re
import runpy
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from command import papi_exit_code

HELP = (
    "Correct the page, or say in tests/page_stories.py what its reader has; if the command cannot run in a test, say "
    "in tests/typed_instead.py why, and what is done in its place."
)
_ASSIGNED = re.compile(r"([A-Z_]+)=(.*)")


class Terminal:
    """Runs commands in a folder. They succeed, or the test fails with what they printed."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        # For commands that start others: the `papi` and the `python` of the tests, wherever they are installed.
        self.tools = folder.parent / f"{folder.name}-tools"
        self.tools.mkdir()
        for name, words in (("python", ""), ("papi", "-m papi "), ("torchrun", "-m torch.distributed.run ")):
            (self.tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
            (self.tools / name).chmod(0o755)

    def type(self, line: str) -> None:
        """Run a command with the variables set before it; `*` stands for files as in a shell."""
        words = shlex.split(line)
        count = next(place for place, word in enumerate(words) if not _ASSIGNED.fullmatch(word))
        variables = dict(word.split("=", 1) for word in words[:count])
        program, *rest = [each for word in words[count:] for each in self._files(word)]
        self.capsys.readouterr()
        with self.session(variables) as patch:
            if program == "papi":
                code = papi_exit_code(*rest)
            elif program == "python":
                code = self._python(rest, patch)
            elif program == "torchrun":
                code = self._process(program, *rest)
            else:
                raise AssertionError(f"{line}: no test can run {program}. {HELP}")
        printed = self.capsys.readouterr()
        assert code == 0, f"{line}: exit code {code}. {HELP}\n{printed.out}{printed.err}"

    @contextmanager
    def session(self, variables: dict[str, str]) -> Iterator[pytest.MonkeyPatch]:
        """The folder and the variables of a command. Modules that it imports from the folder are forgotten."""
        before = set(sys.modules)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            patch.setenv("PATH", f"{self.tools}{os.pathsep}{os.environ['PATH']}")
            patch.setenv("OMP_NUM_THREADS", "1")
            for name, value in variables.items():
                patch.setenv(name, value)
            for place in variables.get("PYTHONPATH", "").split(os.pathsep):
                if place:
                    patch.syspath_prepend(str(self.folder / place))
            yield patch
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(self.folder)):
                del sys.modules[name]

    def _files(self, word: str) -> list[str]:
        return sorted(glob.glob(word, root_dir=self.folder)) if "*" in word else [word]

    def _python(self, words: list[str], patch: pytest.MonkeyPatch) -> int:
        """Run a program by its file, or by its module after -m."""
        module = words[0] == "-m"
        words = words[1:] if module else words
        patch.setattr("sys.argv", words)
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Cyclopts application invoked without tokens")  # they are in sys.argv
                if module:
                    patch.delitem(sys.modules, words[0], raising=False)  # runpy would warn that it is imported already
                    runpy.run_module(words[0], run_name="__main__", alter_sys=True)
                else:
                    runpy.run_path(words[0], run_name="__main__")
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        return 0

    def _process(self, *words: str) -> int:
        """Run a program in a process of its own."""
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        print(done.stdout, done.stderr)
        return done.returncode
