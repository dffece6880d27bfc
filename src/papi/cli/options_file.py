"""papi.toml: options of `papi train` in a file, so that the command needs no arguments in that folder.

A key is an option without its dashes: `epochs = 5`, `candidates.file = "labels.csv"`. Options on the command line take
precedence. `papi check` also reads the options that it knows. The file may come with somebody else's data, so it cannot
decide which code is run.
"""

import dataclasses
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_type_hints

from cyclopts import App, ArgumentCollection, Token
from rich.console import Console

from papi.cli.options import option_name
from papi.cli.terminal import printable
from papi.config import RunConfig, as_typed
from papi.errors import UserError, unknown
from papi.files.outside import needs_import
from papi.files.reading import read_bytes, reason

NAME = "papi.toml"
NONE = "none"
_MOST_BYTES = 2**20
_DEEPEST = 3  # limit on the dots in a key; no option has more than one
_COMMANDS = (("train",), ("check",))
_OF_TRAIN_ALONE = ("out", "tensorboard")  # options of `papi train` that are not settings of a run
_CODE = ("method", "network", "candidates.annotator")
Value = str | int | float | bool


def add_file_options(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Add the options of the file to `papi train` and `papi check`, unless they are on the command line.

    cyclopts calls this after it has parsed the command line and before it converts the values.
    """
    if commands not in _COMMANDS:
        return
    places = {"data" if each.name == "DATA" else each.name.removeprefix("--"): each for each in arguments}
    named = places.get("options-file")
    given = named.tokens[0].value if named is not None and named.tokens else None
    if given == NONE or (given is None and not Path(NAME).exists()):
        return
    file = Path(given or NAME)
    for key, values in read_options(file).items():
        argument = places.get(key)
        if argument is None or argument.tokens:
            continue
        for index, value in enumerate(values):
            argument.append(Token(keyword=f"{key} in {file}", value=as_word(value), source=str(file), index=index))


def tell_options(console: Console, named: Path | None = None) -> None:
    """Print which options a command reads from which file."""
    file = named or Path(NAME)
    if str(file) == NONE or not file.exists():
        return
    listed = (f"{key}={as_word(value)}" for key, values in read_options(file).items() for value in values)
    console.print(f"Options from {file}: {printable(', '.join(listed))}", soft_wrap=True)


def read_options(file: Path) -> dict[str, list[Value]]:
    """Return the options in a file by name, without dashes. Raise `UserError` for an unknown option."""
    try:
        text = read_bytes(file, _MOST_BYTES).decode()
        found = tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        hint = '; put keys that begin with data. in quotes: "data.size" = 64' if "overwrite" in str(error) else ""
        raise UserError(f"{file} cannot be read as TOML ({reason(error)}){hint}.") from error
    known = option_names()
    options: dict[str, list[Value]] = {}
    for key, value in _flat(found):
        if key not in known:
            raise UserError(f"{file}: {unknown('option', key, known)}")
        options[key] = _values(file, key, value)
        code = next((each for each in options[key] if key in _CODE and needs_import(str(each))), None)
        if code is not None:
            raise UserError(
                f"{file} asks to run the code {code}, which is only allowed on the command line: if you trust it, add "
                f"--{key} {code} there."
            )
    return options


def option_names() -> list[str]:
    """Return all valid keys of the file."""
    return [*_names(RunConfig, ""), *_OF_TRAIN_ALONE]


def as_word(value: Value) -> str:
    """Format a value as on the command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _names(config: type, prefix: str) -> Iterator[str]:
    hints = get_type_hints(config)
    for field in dataclasses.fields(config):
        hint, name = hints[field.name], prefix + field.name
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            yield from _names(hint, f"{name}.")
        else:
            yield option_name(name).removeprefix("--")


def _flat(found: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Flatten tables to keys with dots, except the settings of the method, which stay together."""
    for key, value in found.items():
        name = f"{prefix}{key.replace('_', '-')}"
        if isinstance(value, dict) and name != "option" and name.count(".") < _DEEPEST:
            yield from _flat(value, f"{name}.")
        else:
            yield name, value


def _values(file: Path, key: str, value: object) -> list[Value]:
    """Return the values of an option: several for the settings of the method, one for all others."""
    if key == "option":
        listed = [f"{name}={as_typed(each)}" for name, each in value.items()] if isinstance(value, dict) else value
        if isinstance(listed, list) and all(isinstance(each, str) and "=" in each for each in listed):
            return listed
        raise UserError(f'{file}: option must be a table or a list like ["temperature=0.5"]; got {value!r}.')
    if isinstance(value, str | int | float) and value != "":
        return [value]
    raise UserError(f"{file}: {key} must be a string, a number, true or false; got {value!r}.")
