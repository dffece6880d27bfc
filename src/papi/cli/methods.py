"""`papi methods`: what there is to choose from, and the settings of each."""

import ast
import dataclasses
import inspect
import sys
import textwrap
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from papi.cli.terminal import make_console
from papi.methods.options import as_typed

if TYPE_CHECKING:
    from papi.methods import Method


def methods(name: str | None = None, /) -> None:
    """List the methods, or describe one with all its options.

    Parameters
    ----------
    name
        A method, for instance papi. [default: list all]
    """
    from papi.methods import METHODS, find_method

    console = make_console()
    if name is None:
        table = Table("method", "paper", "year", "views", "passes", "what it keeps")
        for each, kind in METHODS.items():
            views = ", ".join(_views(kind))
            table.add_row(each, kind.paper or "–", str(kind.year or "–"), views, kind.passes, Text(kind.memory))
        console.print(table)
        console.print("Passes through the encoder in a step: f forward, b backward.")
        console.print("N images, K classes, projections of width d.")
        console.print("`papi methods NAME` describes one with its options; `papi train --method NAME` trains it.")
        return
    kind = find_method(name)
    console.print(_flowing(_page(kind)))
    facts = {"views": ", ".join(_views(kind)), "encoder passes a step": kind.passes, "what it keeps": kind.memory}
    console.print("\n" + "; ".join(f"{fact}: {value}" for fact, value in facts.items() if value) + ".")
    console.print(f"\n{_flowing(inspect.getdoc(kind.Config) or '')}\n")
    used, epochs = _used_by_train(name, kind)
    table = Table("option", "default", title=f"papi train --method {name} --option NAME=VALUE")
    if used:
        table.add_column("papi train")
    table.add_column("what it does")
    texts = _field_docs(kind.Config)
    for field in dataclasses.fields(kind.Config):
        own = [used.get(field.name, "")] if used else []
        table.add_row(field.name, as_typed(field.default), *own, Text(texts.get(field.name, "")))
    console.print(table)
    short = f"what stands in its column (there for images and {epochs} epochs), and the defaults for the rest"
    console.print(
        f"`papi train` uses the preset quick: {short if used else 'these defaults'}. "
        "--preset paper uses the released settings."
    )


def _used_by_train(name: str, kind: "type[Method]") -> tuple[dict[str, str], int]:
    """The settings that `papi train` alone uses instead of the defaults, as one would type them, and its epochs."""
    from papi.config import RunConfig
    from papi.methods.options import parse_options
    from papi.setup.settings import complete

    config = complete(RunConfig(method=name))
    chosen, plain = parse_options(kind.Config, config.options), kind.Config()
    values = {field.name: getattr(chosen, field.name) for field in dataclasses.fields(kind.Config)}
    used = {key: as_typed(value) for key, value in values.items() if value != getattr(plain, key)}
    return used, config.epochs or 0


def _views(kind: "type[Method]") -> tuple[str, ...]:
    """Names of the views it wants by default. They depend on the settings alone, so no network has to be built."""
    method = kind.__new__(kind)
    method.config = kind.Config()
    return method.views


def _page(kind: type) -> str:
    """The docstring of the file a method lives in."""
    return inspect.getdoc(sys.modules[kind.__module__]) or inspect.getdoc(kind) or kind.__name__


def _flowing(text: str) -> str:
    """Paragraphs as single lines, for the terminal to wrap; those with indented lines stay as they are."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(each if "\n " in f"\n{each}" else each.replace("\n", " ") for each in paragraphs)


def _field_docs(kind: type) -> dict[str, str]:
    """The string below each field of a dataclass and of those it builds on."""
    texts: dict[str, str] = {}
    for part in reversed(kind.__mro__[:-1]):
        body = ast.parse(textwrap.dedent(inspect.getsource(part))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, text in zip(body.body, body.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                texts[ast.unparse(field.target)] = " ".join(str(text.value.value).split())
    return texts
