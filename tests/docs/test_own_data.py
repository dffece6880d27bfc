"""The page "Your own data", followed to the letter in an empty folder."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "own-data.md"


def test_from_an_empty_folder_to_resolved_labels(tmp_path: Path, cache: Path) -> None:
    blocks = re.findall(r"```(python|console)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    # `papi` and `python` are those the tests run with, wherever they are installed.
    shims = tmp_path / "bin"
    shims.mkdir()
    for name, words in (("python", ""), ("papi", "-m papi ")):
        (shims / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
        (shims / name).chmod(0o755)
    work = tmp_path / "empty"
    work.mkdir()
    environment = os.environ | {"PATH": f"{shims}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
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
    with (work / "runs" / "flowers" / "labels.csv").open(newline="", encoding="utf-8") as file:
        resolved = list(csv.DictReader(file))
    given = dict(line.split(",") for line in (work / "labels.csv").read_text().splitlines()[1:])
    assert {row["file"] for row in resolved} == given.keys()
    for row in resolved:
        assert row["label"] in given[row["file"]].split("|")
        assert 0.33 < float(row["confidence"]) <= 1
    assert (work / "runs" / "flowers" / "report.html").exists()
