"""The terminal as all commands use it: names of files and classes are shown as text, never obeyed."""

from typing import Any

from rich.console import Console
from rich.text import Text


class _PlainConsole(Console):
    """Whatever is printed as a string, also in the cell of a table, is cleaned of control characters."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str("\n".join(printable(line) for line in text.split("\n")), **options)


def make_console() -> Console:
    """A console that takes square brackets for what they are, and colours nothing by itself."""
    return _PlainConsole(markup=False, highlight=False, emoji=False)


def printable(text: str) -> str:
    """The text without control characters, which names of files or classes could bring to the terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)
