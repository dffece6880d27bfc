"""The pages on the estimator and on choosing: what they show runs."""

import re
import shlex
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_programs_of_the_estimator_page_run(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "estimator.md").read_text(), re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(block, names)
    assert "partiallabelclassifier__method" in capsys.readouterr().out


def test_the_commands_of_the_page_on_choosing_exist() -> None:
    from papi.cli import app

    lines = [line.partition(" #")[0].strip() for line in (DOCS / "choosing.md").read_text().splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("papi ")]
    assert len(commands) == 7
    for command in commands:
        app.parse_args(command, exit_on_error=False, print_error=False)


@pytest.mark.parametrize("page", ["estimator.md", "choosing.md"])
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (DOCS / page).read_text()):
        assert target.startswith("http") or (DOCS / target).exists(), target
