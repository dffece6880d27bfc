"""`papi methods`: what there is to choose from, and the settings of each."""

import ast
import dataclasses
import inspect
import sys
import textwrap
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text


def methods(name: str | None = None, /) -> None:
    """List the methods, or describe one with all its options.

    Parameters
    ----------
    name
        A method, for instance papi. [default: list all]
    """
    from papi.methods import METHODS, find_method

    console = Console(markup=False, highlight=False)
    if name is None:
        table = Table("method", "what it is")
        for each, kind in METHODS.items():
            table.add_row(each, Text(_page(kind).splitlines()[0]))
        console.print(table)
        console.print("`papi methods NAME` describes one with its options; `papi train --method NAME` trains it.")
        return
    kind = find_method(name)
    console.print(_page(kind))
    table = Table("option", "default", "what it does", title=f"papi train --method {name} --option NAME=VALUE")
    texts = _field_docs(kind.Config)
    for field in dataclasses.fields(kind.Config):
        table.add_row(field.name, _as_typed(field.default), Text(texts.get(field.name, "")))
    console.print(table)


def _page(kind: type) -> str:
    """The docstring of the file a method lives in."""
    return inspect.getdoc(sys.modules[kind.__module__]) or inspect.getdoc(kind) or kind.__name__


def _as_typed(value: Any) -> str:
    """A default as one would type it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _field_docs(kind: type) -> dict[str, str]:
    """The string below each field of a dataclass."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    texts = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            texts[ast.unparse(field.target)] = " ".join(str(text.value.value).split())
    return texts
