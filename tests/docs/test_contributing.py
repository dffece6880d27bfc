"""CONTRIBUTING.md: its code is in the style of the package and trains from within it, and what it says is so."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pages import ROOT, block_with, code_blocks, commands, section
from papi.methods.config import MethodConfig
from test_architecture import ORDER

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
SHORT = "--limit 60 --epochs 1 --batch-size 30 --threads 1 --out run"
SECTIONS = ("Add a method", "Add a network")


def code_of(text: str) -> str:
    return block_with(text, "class Yours", "python")


@pytest.mark.parametrize("title", SECTIONS)
def test_inside_the_package(title: str, tmp_path: Path) -> None:
    """In a copy of the sources: the file where the text says, and the line in the table that it names."""
    text = section(PAGE, title)
    sources = tmp_path / "src"
    shutil.copytree(ROOT / "src", sources, ignore=shutil.ignore_patterns("__pycache__"))
    (place,) = re.findall(r"Move the file to `(src/papi/\S+\.py)`", text)
    (tmp_path / place).write_text(code_of(text))
    ((table, file),) = re.findall(r"Add a line to `(\w+)` in `(src/papi/\S+\.py)`", text)
    (line,) = re.findall(r'`("yours": [^`]+,)`', text)
    before = (tmp_path / file).read_text()
    after = re.sub(rf"^({table}\b.*\{{)$", rf"\1\n    {line}", before, count=1, flags=re.MULTILINE)
    assert after != before, f"{file} has no table {table}"
    (tmp_path / file).write_text(after)
    typed = [line for block in code_blocks(text) for line in commands(block)]
    (command,) = [line for line in typed if line.startswith("papi train")]
    words = [sys.executable, "-m", *command.split(), *SHORT.split()]
    environment = os.environ | {"PYTHONPATH": str(sources), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "model.safetensors").exists()


def test_the_code_is_in_the_style_of_the_package(tmp_path: Path) -> None:
    """Ruff, with the settings of the package."""
    files = []
    for title in SECTIONS:
        files.append(tmp_path / f"{title.rpartition(' ')[2]}.py")
        files[-1].write_text(code_of(section(PAGE, title)))
    settings = ["--config", str(ROOT / "pyproject.toml")]
    for check in (["ruff", "check", *settings], ["ruff", "format", "--check", *settings]):
        done = subprocess.run([sys.executable, "-m", *check, *files], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_member_of_a_config_is_explained() -> None:
    text = section(PAGE, "Add a method")
    told = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    members = {name for name in vars(MethodConfig) if not name.startswith("_")}
    assert told == members


def test_the_defaults_of_a_config_are_those_in_the_table() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|[^|]+\| ([^|]+) \|$", section(PAGE, "Add a method"), re.MULTILINE))
    config = MethodConfig()
    assert rows["view_names"].strip("`") == str(config.view_names).replace("'", '"')
    assert rows["encoder_passes"].strip("`") == f"Passes{config.encoder_passes[:2]}"
    assert int(rows["quick_epochs"]) == config.quick_epochs({})
    assert rows["quick"] == "none"
    assert config.quick(12, {}) == {}
    assert config.released("cifar10", 0.5, "uniform", {}) is None
    for name, default in rows.items():
        if default == "no":
            assert getattr(config, name) is False, name


def test_the_order_of_the_rooms() -> None:
    rule = re.search(r"have an order: (.*?)\. None", section(PAGE, "Style"), re.DOTALL)
    assert rule is not None
    assert re.findall(r"`(\w+)`", rule[1]) == ORDER
