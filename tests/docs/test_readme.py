"""What the README tells a reader to type works."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_python_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The arrays of the first example are trained on, and the second predicts with the result."""
    monkeypatch.chdir(tmp_path)
    save, use = blocks("python")
    names: dict[str, object] = {}
    exec(save, names)
    train = ["train", "--data", "mine.npz", "--epochs", "1", "--threads", "1", "--out", "runs/demo"]
    done = subprocess.run([sys.executable, "-m", "papi", *train], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    exec(use, names)


def test_every_command_exists_with_its_options() -> None:
    """Commands are parsed as typed, without running them."""
    from papi.cli import app

    lines = [line.partition(" #")[0].strip() for block in blocks("") for line in block.splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("papi ")]
    assert len(commands) > 5
    for command in commands:
        app.parse_args(command, exit_on_error=False, print_error=False)


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make ([\w-]+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
