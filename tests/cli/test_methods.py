"""`papi methods`: the table of all methods, and the page of each."""

import dataclasses
from pathlib import Path

import pytest

from command import papi_exit_code
from papi.cli.options import field_help
from papi.config import RunConfig, as_typed
from papi.methods import METHODS, find_method
from papi.setup.settings import complete

Out = pytest.CaptureFixture[str]
OUTSIDE = '''"""A method of one's own: nothing is learned."""

from dataclasses import dataclass

from papi.methods.base import Method
from papi.methods.config import MethodConfig, Passes


@dataclass(frozen=True)
class Settings(MethodConfig):
    """What one can set."""

    patience: int = 3
    """How long
    to wait."""

    @property
    def encoder_passes(self) -> Passes:
        return Passes(7, 5)


class Idle(Method):
    Config = Settings
    memory = "nothing at all"
'''


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")


def cells(said: str) -> dict[str, list[str]]:
    """The rows of a table by their first cell."""
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]
    return {row[0]: row[1:] for row in rows}


def test_the_list(capsys: Out) -> None:
    assert papi_exit_code("methods") == 0
    rows = cells(capsys.readouterr().out)
    assert list(rows) == list(METHODS)
    for name, (paper, year, views, passes, memory) in rows.items():
        kind = find_method(name)
        config = kind.Config()
        assert (paper, year) == (kind.paper or "–", str(kind.year or "–"))
        assert views.split(", ") == list(config.view_names)
        assert passes == str(config.encoder_passes)
        assert memory == kind.memory


@pytest.mark.parametrize("name", METHODS)
def test_every_option_of_a_method(name: str, capsys: Out) -> None:
    assert papi_exit_code("methods", name) == 0
    said = capsys.readouterr().out
    rows, config = cells(said), find_method(name).Config()
    used = complete(RunConfig(method=name), features=False, sets_given=False).options
    texts = field_help(type(config))
    assert list(rows) == [field.name for field in dataclasses.fields(config)]
    for field, (default, *own, text) in rows.items():
        assert default == as_typed(getattr(config, field))
        assert text == texts[field] != ""
        if own:
            assert own[0] == ("" if used[field] == getattr(config, field) else as_typed(used[field]))
        else:
            assert used[field] == getattr(config, field)
    assert f"encoder passes per step (f forward, b backward): {config.encoder_passes}" in said


def test_a_method_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    (tmp_path / "idle_method.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(tmp_path)
    assert papi_exit_code("methods", "idle_method:Idle") == 0
    said = capsys.readouterr().out
    assert said.startswith("A method of one's own: nothing is learned.")
    assert "7f + 5b" in said
    assert "nothing at all" in said
    assert cells(said) == {"patience": ["3", "How long to wait."]}


def test_an_unknown_method(capsys: Out) -> None:
    assert papi_exit_code("methods", "pappi") == 2
    assert "did you mean 'papi'" in capsys.readouterr().err
