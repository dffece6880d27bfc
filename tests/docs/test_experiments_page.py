"""What docs/experiments.md says of the suites is what they are, and its commands are understood."""

import re
import shlex
from pathlib import Path

import cyclopts
import pytest

import papi.cli
from papi.experiments import SUITES, cells, find_suites
from papi.experiments.estimate import gpu_hours
from recipes import results

PAGE = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text()
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [line.split("#")[0].strip() for language, text in BLOCKS if not language for line in text.splitlines()]
RECIPE = "python -m recipes.results"


def test_runs_and_gpu_hours() -> None:
    told = dict(re.findall(r"^\| (?:`([\w-]+)`|all, each run once) \| (\d+ \| [\d,]+) \|$", PAGE, re.MULTILINE))
    everything = {}
    for suite in SUITES["paper"].values():
        runs = {cells.key(config): config for config in suite.cells()}
        assert told[suite.name] == f"{len(runs)} | {gpu_hours(runs.values()):,.0f}"
        everything |= runs
    assert told[""] == f"{len(everything)} | {gpu_hours(everything.values()):,.0f}"
    assert len(told) == len(SUITES["paper"]) + 1


def test_every_suite_is_described() -> None:
    for suites in SUITES.values():
        assert all(f"`{name}`" in PAGE for name in suites)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_understood(command: str) -> None:
    words = shlex.split(command)
    if command.startswith(RECIPE):
        app = cyclopts.App()
        app.default(results.main)
        app.parse_args(words[3:], exit_on_error=False, print_error=False)
        suites = [word for word in words[3:4] if not word.startswith("-")]
    else:
        assert words[0] == "papi"
        _, bound, _ = papi.cli.app.parse_args(words[1:], exit_on_error=False, print_error=False)
        suites = [bound.arguments["suite"]] if bound.arguments.get("suite") else []
    scale = "paper" if "--scale paper" in command else "cpu"
    assert all(find_suites(name, scale) for name in suites)


def test_a_grid_of_your_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = [text for language, text in BLOCKS if language == "python"]
    name = re.search(r"# (\w+)\.py", code)
    assert name is not None
    (tmp_path / f"{name[1]}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    (command,) = re.findall(rf"papi bench ({name[1]}:\w+)", PAGE)
    (suite,) = find_suites(command, "cpu")
    assert {config.method for config in suite.cells()} == {"papi", "my_package.method:Mine"}
