"""The console that all commands share. Names of files and classes cannot inject control sequences."""

import os
import unicodedata

from rich.console import Console, HighlighterType, JustifyMethod, OverflowMethod
from rich.style import Style
from rich.text import Text

_JOINERS = "\u200c\u200d"


class _PlainConsole(Console):
    """Removes control characters from all printed text, including table cells."""

    def render_str(
        self,
        text: str,
        *,
        style: str | Style = "",
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        emoji: bool | None = None,
        markup: bool | None = None,
        highlight: bool | None = None,
        highlighter: HighlighterType | None = None,
    ) -> Text:
        """Render the text without control characters."""
        return super().render_str(
            "\n".join(printable(line) for line in text.split("\n")),
            style=style,
            justify=justify,
            overflow=overflow,
            emoji=emoji,
            markup=markup,
            highlight=highlight,
            highlighter=highlighter,
        )


def make_console(stderr: bool = False) -> Console:
    """Return a console without rich markup and automatic highlighting.

    Under `torchrun`, only the first process prints.
    """
    return _PlainConsole(markup=False, highlight=False, emoji=False, stderr=stderr, quiet=process() > 0)


def process() -> int:
    """Return the rank of this process under `torchrun`; 0 without it."""
    return int(os.environ.get("RANK", "0"))


def counted(count: int, what: str) -> str:
    """Return a count with its noun: `1 epoch`, `20 epochs`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def printable(text: str) -> str:
    """Replace every character that could control the terminal by `?`.

    Names of files or classes may contain control characters, escape sequences, line breaks and marks that change the
    writing direction. All kinds of spaces are kept, as are the joiners of Indic scripts and emoji.
    """
    return text if text.isprintable() else "".join(each if _is_harmless(each) else "?" for each in text)


def _is_harmless(character: str) -> bool:
    return character.isprintable() or character in _JOINERS or unicodedata.category(character) == "Zs"
