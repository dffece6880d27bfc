"""A reader types every command of every page, in order, and runs its programs.

Pages are collected from the repository and blocks from pages, so no block is left out. A command that cannot run here
has a row in tests/typed_instead.py, and tests/page_stories.py says what the reader of a page starts with.
"""

import re
from pathlib import Path

import pytest

from page_stories import SHORT, STORIES, Story
from pages import PAGES, ROOT, Block, code_blocks, commands
from terminal_lines import Terminal
from typed_instead import TABLE, instead_of, require_understood

NO_COMMANDS = ("text", "toml", "json", "yaml")
CELL = "{code-cell}"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def with_something_to_run(page: Path) -> bool:
    return any(commands(block) or block.language == "python" for block in code_blocks(page.read_text()))


def file_name(block: Block) -> str | None:
    """The file that a Python block is to be saved as: one that it begins with, or the last that the text names."""
    if begins := re.match(r"# (\w+\.py)", block.text):
        return begins[1]
    return re.findall(r"`(\w+\.py)`", block.above)[-1] if block.text.startswith('"""') else None


def filled_in(line: str, story: Story) -> str:
    """A command with the reader's own words in place of those in capital letters."""
    return re.sub(r"(?<![\w/])[A-Z]{3,}(?![\w=])", lambda found: story.words.get(found[0], found[0]), line)


def follow(block: Block, terminal: Terminal, story: Story, names: dict[str, object]) -> None:
    """Do with a block what a reader does."""
    if block.language == "python":
        if name := file_name(block):
            (terminal.folder / name).write_text(block.text)
        else:
            with terminal.session({"PYTHONPATH": "examples"}):
                exec(compile(block.text, "the page", "exec"), names)
    for printed in commands(block):
        line = filled_in(printed, story)
        require_understood(line)
        row = instead_of(line)
        if row is None:
            terminal.type(line)
            continue
        if row.check:
            with terminal.session({}):
                row.check(line)
        if row.type:
            terminal.type(re.sub(row.commands, row.type, line, count=1))


@pytest.mark.parametrize("page", [page for page in PAGES if with_something_to_run(page)], ids=name_of)
def test_a_reader_can_follow_the_page(
    page: Path, tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "papi.toml").write_text(SHORT)
    terminal = Terminal(folder, capsys)
    story = STORIES.get(name_of(page), Story())
    with terminal.session({}):
        for make in story.has:
            make()
    with terminal.session({"PYTHONPATH": "examples"}):
        names = story.names()
    for block in code_blocks(page.read_text()):
        follow(block, terminal, story, names)
    with terminal.session({}):
        story.ends(names)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_what_it_is(page: Path) -> None:
    """A block in another language could hold commands that nobody runs."""
    text = page.read_text()
    for block in code_blocks(text):
        language = block.language
        assert language in ("", "console", "bash", "sh", "python", *NO_COMMANDS) or language.startswith("{"), (
            f"```{language}: mark commands with ```console and a prompt, and what is no code with ```text."
        )
        if language == "console":
            assert commands(block), f"no line of this block has the prompt `$ `:\n{block.text}"
        if language in NO_COMMANDS:
            assert not re.search(r"^(\$|papi|python|make) ", block.text, re.MULTILINE), (
                f"{block.text} is for ```console."
            )
        if language.startswith(CELL):
            assert text.startswith("---\nfile_format: mystnb\n"), "only such a page is run when the site is built"


def test_every_row_and_every_story_is_needed() -> None:
    typed = [
        filled_in(line, STORIES.get(name_of(page), Story()))
        for page in PAGES
        for block in code_blocks(page.read_text())
        for line in commands(block)
    ]
    for row in TABLE:
        assert any(re.fullmatch(row.commands, line) for line in typed), f"no page has {row.commands}: remove the row"
        assert row.why
        assert row.type or row.check, f"{row.commands}: say what is typed or checked instead"
    assert set(STORIES) <= {name_of(page) for page in PAGES if with_something_to_run(page)}


def test_what_counts_as_a_command() -> None:
    (block,) = code_blocks("text\n```\npapi train --seed 1   # why\n\nls \\\n  runs/*\n```\n")
    assert commands(block) == ["papi train --seed 1", "ls   runs/*"]
    (block,) = code_blocks("```console\n$ PYTHONPATH=x papi check a#b\nepoch 1\n```\n")
    assert commands(block) == ["PYTHONPATH=x papi check a#b"]
    for other in ("```python\nx = 1\n```\n", "```text\npapi\n```\n"):
        assert [commands(block) for block in code_blocks(other)] == [[]]


def test_a_command_that_fails_or_is_unknown_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "home").mkdir()
    terminal = Terminal(tmp_path / "home", capsys)
    terminal.type("papi methods")
    with pytest.raises(AssertionError, match="exit code 2"):
        terminal.type("papi check missing")
    with pytest.raises(AssertionError, match="no test can run rm"):
        terminal.type("rm -r runs")
