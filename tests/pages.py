"""Pages of the documentation as tests read them: by heading and by content, never by position."""

import ast
import re
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]


def section(text: str, title: str) -> str:
    """The text below a heading, up to the next one of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}$", text, re.MULTILINE)
    assert found is not None, f"there is no heading {title!r}"
    rest = text[found.end() :]
    end = re.search(rf"^#{{1,{len(found[1])}}} ", without_blocks(rest), re.MULTILINE)
    return rest if end is None else rest[: end.start()]


def without_blocks(text: str) -> str:
    """The same text, as long as before, with the inside of code blocks blanked."""
    return re.sub(r"```.*?```", lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.DOTALL)


def promises(text: str) -> list[tuple[str, str]]:
    """The rows of tables of promises: what is promised, and the tests behind it."""
    return re.findall(r"^\| (?!promise|-)(.+?) \| (.+) \|$", text, re.MULTILINE)


def require_tests(promise: str, tests: str) -> None:
    """Fail unless the tests behind a promise exist; one in a class is named with its class."""
    named = re.findall(r"`(tests/[\w/]+\.py)::(?:\w+::)?(\w+)`", tests)
    assert named, f"no test stands behind: {promise}"
    for file, test in named:
        defined = {node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if hasattr(node, "name")}
        assert test in defined, f"{file} has no {test}"


class Block(NamedTuple):
    """A fenced block: what is written behind the fence, what is in it, and the page above it."""

    language: str
    text: str
    above: str


def code_blocks(text: str) -> list[Block]:
    """All fenced blocks of a page, in order."""
    found = re.finditer(r"^ *(`{3,}|~{3,})([^\n]*)\n(.*?)^ *\1", text, re.DOTALL | re.MULTILINE)
    return [Block(each[2].strip(), dedent(each[3]), text[: each.start()]) for each in found]


def blocks(text: str, *languages: str) -> list[str]:
    """The code in these languages, or in any."""
    return [block.text for block in code_blocks(text) if not languages or block.language in languages]


def block_with(text: str, content: str, *languages: str) -> str:
    """The one code block that contains a text."""
    found = [code for code in blocks(text, *languages) if content in code]
    assert len(found) == 1, f"{len(found)} blocks contain {content!r}"
    return found[0]


def commands(block: Block) -> list[str]:
    """The lines of a block that a reader types into a terminal, without prompts and comments.

    In a console these are the lines with a prompt. In a block without a language, all are.
    """
    lines = block.text.replace("\\\n", "").splitlines()
    if block.language == "console":
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    elif block.language not in ("", "bash", "sh"):
        return []
    return [line for line in (re.sub(r"(^|\s+)#\s.*", "", line).strip() for line in lines) if line]
