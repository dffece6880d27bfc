"""`papi methods`: list the methods, or describe one method and its settings."""

import dataclasses
import inspect
import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from papi.cli.options import field_help
from papi.cli.terminal import make_console
from papi.config import RunConfig, as_typed
from papi.methods import METHODS, find_method
from papi.methods.config import MethodConfig
from papi.setup.settings import complete


def methods(name: str | None = None, /) -> None:
    """List the methods, or describe one method and its settings.

    Parameters
    ----------
    name
        Name of a method, for instance papi. [default: list all]
    """
    console = make_console()
    if name is None:
        _list(console)
    else:
        _describe(console, name)


def _list(console: Console) -> None:
    table = Table("method", "paper", "year", "views", "passes", "state")
    for name in METHODS:
        kind = find_method(name)
        config = kind.Config()
        views, passes = ", ".join(config.view_names), str(config.encoder_passes)
        table.add_row(name, kind.paper or "–", str(kind.year or "–"), views, passes, Text(kind.memory))
    console.print(table)
    console.print("passes: encoder passes per step (f forward, b backward) with the default settings.")
    console.print("state: what the method stores between steps, for N images, K classes and projections of width d.")
    console.print("`papi methods NAME` describes a method and its settings; `papi train --method NAME` trains it.")


def _describe(console: Console, name: str) -> None:
    kind = find_method(name)
    config = kind.Config()
    console.print(_flowing(_page(kind)))
    facts = {
        "views": ", ".join(config.view_names),
        "encoder passes per step (f forward, b backward)": str(config.encoder_passes),
        "state": kind.memory,
    }
    console.print("\n" + "; ".join(f"{fact}: {value}" for fact, value in facts.items() if value) + ".")
    console.print(f"\n{_flowing(inspect.getdoc(kind.Config) or '')}\n")
    used, epochs = _used_by_train(name, config)
    console.print(_options(name, config, used))
    own = f"the values in its column (for images and {epochs} epochs) and the defaults for all others"
    console.print(
        f"`papi train` uses the preset quick: {own if used else 'these defaults'}. "
        "`--preset paper` uses the released settings."
    )


def _options(name: str, config: MethodConfig, used: dict[str, str]) -> Table:
    """Return the settings of a method, with the values that `papi train` uses instead of the defaults."""
    table = Table("setting", "default", title=f"papi train --method {name} --option NAME=VALUE")
    if used:
        table.add_column("papi train")
    table.add_column("description")
    texts = field_help(type(config))
    for field in dataclasses.fields(config):
        own = [used.get(field.name, "")] if used else []
        default = as_typed(getattr(config, field.name))
        table.add_row(field.name, default, *own, Text(texts.get(field.name, "")))
    return table


def _used_by_train(name: str, default: MethodConfig) -> tuple[dict[str, str], int]:
    """Return the settings that `papi train` uses instead of the defaults, as text, and its number of epochs."""
    settings = complete(RunConfig(method=name), features=False, sets_given=False)
    used = {key: as_typed(value) for key, value in settings.options.items() if value != getattr(default, key)}
    return used, settings.epochs


def _page(kind: type) -> str:
    """Return the docstring of the module that defines a method."""
    return inspect.getdoc(sys.modules[kind.__module__]) or inspect.getdoc(kind) or kind.__name__


def _flowing(text: str) -> str:
    """Join the lines of each paragraph so that the terminal wraps them; keep paragraphs with indented lines."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(each if "\n " in f"\n{each}" else each.replace("\n", " ") for each in paragraphs)
