"""The command as a whole: its help, what it loads, and how it ends."""

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from cyclopts import App

import papi
import papi.cli
from command import papi_exit_code
from papi.errors import UserError

Out = pytest.CaptureFixture[str]
COMMANDS = (
    "train", "evaluate", "compare", "labels", "predict", "export", "report", "watch", "bench", "methods", "datasets",
    "check", "doctor", "init",
)  # fmt: skip
HEAVY = ("torch", "numpy", "matplotlib", "scipy")


def run(code: str, *arguments: str) -> str:
    """What a program says, run in a process of its own."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(*command: str) -> set[str]:
    """The heavy packages that a command has loaded when it ends."""
    code = (
        "import sys, papi.cli\n"
        "try: papi.cli.main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        f"print('loaded', *(name for name in {HEAVY} if name in sys.modules))"
    )
    return set(run(code, *command).splitlines()[-1].split()[1:])


def test_the_front_page_names_every_command(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert papi_exit_code("--help") == 0
    lines = [line.strip("│ ").split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line[:1] == "│"]
    texts = {words[0]: words[1] for words in lines if len(words) == 2}
    assert set(COMMANDS) <= set(texts)
    assert all(text.endswith((".", "run.")) for name, text in texts.items() if name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_page_of_help(command: str, capsys: Out) -> None:
    assert papi_exit_code(command, "--help") == 0
    assert f"papi {command}" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_a_function_with_a_docstring(command: str) -> None:
    module = inspect.getmodule(papi.cli.app[command].default_command)
    assert module is not None
    assert module.__name__ == f"papi.cli.{command}"
    assert module.__doc__
    assert papi.cli.app[command].default_command.__doc__


def test_version(capsys: Out) -> None:
    assert papi_exit_code("--version") == 0
    assert capsys.readouterr().out.strip() == papi.__version__


@pytest.mark.parametrize("command", [["--help"], ["--version"], ["train", "--help"], ["train", "--help-all"]])
def test_help_loads_nothing_heavy(command: list[str]) -> None:
    assert loaded_by(*command) == set()


@pytest.mark.parametrize(
    "command", [["train", "--epohs", "3"], ["train", "--epochs", "2.5"], ["train", "--seed", "-1"]]
)
def test_a_wrong_option_of_train_loads_nothing_heavy(command: list[str]) -> None:
    assert loaded_by(*command) == set()


def test_no_help_loads_torch() -> None:
    code = (
        "import sys, papi.cli\n"
        "for command in sys.argv[1:]:\n"
        "    try: papi.cli.main([command, '--help'])\n"
        "    except SystemExit: pass\n"
        "    assert 'torch' not in sys.modules, command\n"
    )
    run(code, *COMMANDS)


@pytest.mark.parametrize("command", [["trian"], ["train", "--epoch", "3"], ["labels", "run", "--fixx", "a.csv"]])
def test_a_slip_is_a_suggestion(command: list[str], capsys: Out) -> None:
    assert papi_exit_code(*command) != 0
    said = capsys.readouterr().err
    assert "Did you mean" in said
    assert "Traceback" not in said


def test_few_imports_inside_functions() -> None:
    """A command is loaded when it is called, so its imports can stand at the top. What is left has a reason."""
    found = []
    for file in sorted(Path(papi.cli.__file__).parent.glob("*.py")):
        lines = file.read_text().splitlines()
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef):
                inner = [node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)]
                found += [(file.name, node.lineno, lines[node.lineno - 1]) for node in inner]
    assert len(set(found)) <= 12
    assert not [each for each in found if "#" not in each[2]]


def fails_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of a command that raises this."""

    def command() -> NoReturn:
        raise error

    app = App(name="papi")
    app.default(command)
    monkeypatch.setattr(papi.cli, "app", app)
    return papi_exit_code()


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (UserError("--epochs must be 1 or more; got 0."), "papi: --epochs must be 1 or more; got 0.\n"),
        (UserError("bad\x1b[31m name"), "papi: bad?[31m name\n"),
        (
            OSError(28, "No space left on device", "there"),
            "papi: there cannot be read or written (No space left on device).\n",
        ),
        (OSError("no details"), "papi: a file cannot be read or written (no details).\n"),
    ],
)
def test_mistakes_end_in_a_sentence(error: Exception, says: str, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    assert fails_with(error, monkeypatch) == 2
    assert capsys.readouterr().err == says


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("CUDA out of memory. Tried to allocate"), RuntimeError("can't allocate memory: 8 PB")],
)
def test_too_little_memory(error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    assert fails_with(error, monkeypatch) == 2
    said = capsys.readouterr().err
    assert "not enough memory" in said
    assert said.count("\n") == 1


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="shapes"):
        fails_with(RuntimeError("shapes do not match"), monkeypatch)


def test_an_interrupt_has_the_exit_code_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fails_with(KeyboardInterrupt(), monkeypatch) == 130


def test_which_process_it_was(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    monkeypatch.setenv("RANK", "3")
    assert fails_with(UserError("no."), monkeypatch) == 2
    assert capsys.readouterr().err == "papi, process 3: no.\n"


def test_python_dash_m() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "papi", "--version"], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == papi.__version__
