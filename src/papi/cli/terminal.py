"""The terminal as all commands use it: names of files and classes are shown as text, never obeyed."""

from rich.console import Console


def make_console() -> Console:
    """A console that takes square brackets for what they are, and colours nothing by itself."""
    return Console(markup=False, highlight=False)


def printable(text: str) -> str:
    """The text without control characters, which names of files or classes could bring to the terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)
