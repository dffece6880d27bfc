"""The terminal as all commands use it: names of files and classes are shown as text, never obeyed."""

import os
from typing import Any

from rich.console import Console
from rich.text import Text


class _PlainConsole(Console):
    """Whatever is printed as a string, also in the cell of a table, is cleaned of control characters."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str("\n".join(printable(line) for line in text.split("\n")), **options)


def make_console(stderr: bool = False) -> Console:
    """A console that takes square brackets for what they are, and colours nothing by itself.

    Of many processes that `torchrun` has started, the first alone talks.
    """
    return _PlainConsole(markup=False, highlight=False, emoji=False, stderr=stderr, quiet=process() > 0)


def process() -> int:
    """The number of this process among those that `torchrun` has started; 0 without it."""
    return int(os.environ.get("RANK", "0"))


def printable(text: str) -> str:
    """The text without control characters, which names of files or classes could bring to the terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)
