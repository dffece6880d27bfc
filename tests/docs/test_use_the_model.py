"""The example with one's own images, and then every command of the page "Use the model" on its run."""

import re
import shlex
from pathlib import Path

import pytest

from command import papi_exit_code
from pages import ROOT, block_with, commands

PAGE = (ROOT / "docs" / "use-the-model.md").read_text()


def test_the_example_and_then_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    import own_images

    own_images.main(tmp_path, images=48, epochs=2)
    said = capsys.readouterr().out
    assert said.count("epoch ") == 2
    listed = re.findall(r"^  (\d+\.png): (\w+)", said, re.MULTILINE)
    assert len(listed) == 6
    assert {name for _, name in listed} <= {"rose", "tulip", "violet"}

    Path("runs").mkdir()
    Path("run").rename("runs/flowers")
    Path("decisions.csv").write_text(block_with(PAGE, "index,file,label"))
    for command in commands(PAGE):
        name, *words = shlex.split(command)
        assert name == "papi"
        assert papi_exit_code(*words) == 0, command
    made = [
        "runs/flowers-fixed/labels.csv", "predictions.csv", "flowers.safetensors",
        "runs/flowers/exported/model.torchscript.pt", "hub/README.md", "hub/model.safetensors",
    ]  # fmt: skip
    assert [name for name in made if not Path(name).exists()] == []
    assert len(Path("predictions.csv").read_text().splitlines()) == 49


def test_what_the_page_says_of_formats() -> None:
    from papi.export.formats import FORMATS

    listed = dict(re.findall(r"^\| `(\w+)` \|.*\| `(model\.[\w.]+)` \|$", PAGE, re.MULTILINE))
    assert listed == {kind: f"model{form.suffix}" for kind, form in FORMATS.items()}
