"""The page "Your own data", followed to the letter in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "own-data.md"


def test_from_an_empty_folder_to_resolved_labels(tmp_path: Path, cache: Path) -> None:
    blocks = re.findall(r"```(python|console)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    commands = 0
    # `papi` and `python` are those the tests run with, wherever they are installed.
    shims = tmp_path / "bin"
    shims.mkdir()
    for name, words in (("python", ""), ("papi", "-m papi ")):
        (shims / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
        (shims / name).chmod(0o755)
    work = tmp_path / "empty"
    work.mkdir()
    environment = os.environ | {"PATH": f"{shims}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    said = ""
    for kind, text in blocks:
        if kind == "python":
            name = re.match(r"# (\w+\.py)", text)
            assert name is not None, "every program on the page begins with its name"
            (work / name[1]).write_text(text)
            continue
        for line in text.splitlines():
            command = line.removeprefix("$ ")
            done = subprocess.run(
                command, shell=True, cwd=work, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{command}: {done.stderr}"
            said = done.stdout
            commands += 1
    assert commands == 4
    resolved = [line.split() for line in said.splitlines()]
    assert len(resolved) == 5
    for file, label, belief in resolved:
        row = next(row for row in (work / "labels.csv").read_text().splitlines() if row.startswith(file))
        assert label in row.split(",")[1].split("|")
        assert 0.33 < float(belief) <= 1
