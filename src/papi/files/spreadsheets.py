"""Texts in tables that people open with a spreadsheet, which would compute what looks like a formula."""

_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def cell(text: str) -> str:
    """The text with a leading `'` if a spreadsheet would compute it. Numbers stay as they are."""
    return f"'{text}" if text.startswith(_FORMULAS) and not _is_number(text) else text


def text_of(content: str) -> str:
    """The text that `cell` has made a cell of."""
    return content[1:] if content[1:].startswith(_FORMULAS) and content.startswith("'") else content


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
