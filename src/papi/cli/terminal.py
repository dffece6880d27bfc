"""The terminal as all commands use it. Names of files and classes are shown as text and never obeyed."""

import os
import unicodedata

from rich.console import Console, HighlighterType, JustifyMethod, OverflowMethod
from rich.style import Style
from rich.text import Text

_JOINERS = "\u200c\u200d"


class _PlainConsole(Console):
    """Removes control characters from every string that is printed, also in the cells of tables."""

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
        """Return the text as rich shows it, without control characters."""
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
    """Return a console that prints square brackets as they are and colours nothing by itself.

    Of many processes that `torchrun` has started, only the first prints.
    """
    return _PlainConsole(markup=False, highlight=False, emoji=False, stderr=stderr, quiet=process() > 0)


def process() -> int:
    """Return the number of this process among those that `torchrun` has started; 0 without it."""
    return int(os.environ.get("RANK", "0"))


def counted(count: int, what: str) -> str:
    """Return a number of things: `1 epoch`, `20 epochs`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def printable(text: str) -> str:
    """Return the text with every character replaced by `?` that could steer a terminal.

    Names of files or classes could contain them: control characters, escape sequences, line ends, and marks that turn
    the direction of writing. Spaces of all widths stay, and so do the joiners of Indic scripts and emoji.
    """
    return text if text.isprintable() else "".join(each if _is_harmless(each) else "?" for each in text)


def _is_harmless(character: str) -> bool:
    return character.isprintable() or character in _JOINERS or unicodedata.category(character) == "Zs"
