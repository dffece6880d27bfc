"""`papi init`: inspect a folder, describe what was found, and write the options of `papi train` for it."""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from papi.cli.options import SWITCH
from papi.cli.options_file import NAME, as_word, read_options
from papi.cli.terminal import make_console, printable
from papi.errors import UserError
from papi.files.durable import output_file
from papi.setup.looking import Question, Understood, Value, look


def init(
    folder: Path = Path(),
    /,
    *,
    data: Path | None = None,
    table: Annotated[Path | None, Parameter("--candidates.file")] = None,
    force: Annotated[bool, SWITCH] = False,
) -> None:
    """Inspect a folder, describe what was found, and write papi.toml with the options of `papi train`.

    Parameters
    ----------
    folder
        Folder with your images and tables. [default: the current folder]
    data
        Folder of the images, or file with the samples, if it cannot be detected.
    table
        File with the candidate labels, if it cannot be detected.
    force
        Replace an existing papi.toml.
    """
    file = folder / NAME
    if file.exists() and not force:
        raise UserError(f"{file} already exists: edit it, or replace it with --force.")
    console = make_console()
    found = look(folder, data, table)
    while isinstance(found, Question):
        answer = _ask(console, found)
        data, table = (answer, table) if found.option == "--data" else (data, answer)
        found = look(folder, data, table)
    for line in found.told:
        console.print(printable(line), soft_wrap=True)
    _write(file, found)
    listed = ", ".join(f"{name}={as_word(value)}" for name, value in found.options.items())
    console.print(f"Wrote {file} with the options: {printable(listed)}", soft_wrap=True)
    there = "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))} && "
    console.print(f"Next: {there}papi check && papi train", soft_wrap=True)


def _ask(console: Console, question: Question) -> Path:
    """Ask the user to choose. Raise `UserError` if there is no terminal."""
    listed = ", ".join(str(choice) for choice in question.choices)
    if not (sys.stdin is not None and sys.stdin.isatty() and console.is_terminal):
        raise UserError(f"{question.text} Set {question.option} to one of: {listed}.")
    console.print(question.text)
    for number, choice in enumerate(question.choices, 1):
        console.print(f"  {number}  {printable(str(choice))}", soft_wrap=True)
    while True:
        answer = input("Number: ").strip()
        if answer.isdecimal() and 1 <= int(answer) <= len(question.choices):
            return question.choices[int(answer) - 1]


def _write(file: Path, found: Understood) -> None:
    """Write the options, with the reasons for them as comments."""
    comment = "".join(f"# {printable(line)}\n" for line in found.told)
    lines = "".join(f"{_key(name)} = {_value(value)}\n" for name, value in found.options.items())
    head = "# Options of `papi train` in this folder; `papi train --help-all` lists all options.\n"
    with output_file(file) as half:
        half.write_text(f"{head}{comment}{lines}", encoding="utf-8")
        read_options(half)  # check that the file can be read


def _key(name: str) -> str:
    """Return a TOML key. Keys that begin with `data.` are quoted, because `data` itself is a key."""
    return f'"{name}"' if name.startswith("data.") else name


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return as_word(value)
    return json.dumps(value, ensure_ascii=False).replace(
        "\x7f", "\\u007f"
    )  # the only character where JSON and TOML differ
