"""Protects text in tables from being evaluated as a formula by a spreadsheet."""

_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def cell(text: str) -> str:
    """Add a leading `'` to text that a spreadsheet would evaluate. Numbers do not change."""
    return f"'{text}" if text.startswith(_FORMULAS) and not _is_number(text) else text


def text_of(content: str) -> str:
    """Return the original text of a cell written by `cell`."""
    return content[1:] if content[1:].startswith(_FORMULAS) and content.startswith("'") else content


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
