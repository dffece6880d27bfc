"""The page "Annotation tools", followed to the letter in an empty folder, within this process."""

import json
import re
import runpy
import shlex
from pathlib import Path

import pytest

from command import papi_exit_code
from papi.data.own.annotations import read_annotations
from papi.data.own.entries import Rules

PAGE = Path(__file__).parents[2] / "docs" / "annotation-tools.md"


def test_from_every_export_to_labels_and_back(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for kind, text in re.findall(r"```(python|console)\n(.*?)```", PAGE.read_text(), re.DOTALL):
        if kind == "python":
            name = re.match(r"# (\w+\.py)", text)
            assert name is not None, "every program on the page begins with its name"
            Path(name[1]).write_text(text)
            continue
        for line in text.splitlines():
            program, *words = shlex.split(line.removeprefix("$ "))
            if program == "python":
                runpy.run_path(words[0])
            else:
                assert papi_exit_code(*words) == 0, f"{line}: {capsys.readouterr()}"
    for task in json.loads(Path("runs/label-studio/label-studio.json").read_text()):
        assert task["predictions"][0]["result"][0]["value"]["choices"][0] in ("rose", "tulip", "violet")
    for file in ("cvat/cvat.xml", "coco/coco.json", "via/via.csv"):
        found = read_annotations(Path("runs") / file, Rules())
        assert found.candidates.sum(1).tolist() == [1] * 60
    assert len(Path("runs/crowd/crowd.csv").read_text().splitlines()) == 61
