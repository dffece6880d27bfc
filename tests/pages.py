"""Pages of the documentation as tests read them: by heading and by content, never by position."""

import ast
import re
import shlex
from pathlib import Path

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


def blocks(text: str, *languages: str) -> list[str]:
    """Code blocks in these languages, or in any."""
    found = re.findall(r"^ *```(\w*)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    return [code for language, code in found if not languages or language in languages]


def block_with(text: str, content: str, *languages: str) -> str:
    """The one code block that contains a text."""
    found = [code for code in blocks(text, *languages) if content in code]
    assert len(found) == 1, f"{len(found)} blocks contain {content!r}"
    return found[0]


def commands(text: str) -> list[str]:
    """The lines of code blocks that a reader types into a shell, without prompts and comments."""
    lines = [line.strip().removeprefix("$ ") for code in blocks(text, "", "console") for line in code.splitlines()]
    typed = [shlex.join(shlex.split(line, comments=True)) for line in lines if _STARTS.match(line)]
    return [line for line in typed if line]


_STARTS = re.compile(r"(\w+=\S+ )?(papi|python|make|torchrun|pip|git) ")
