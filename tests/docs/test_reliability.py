"""Every promise on the page "Reliability" names a test that exists."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text()


def test_every_promise_names_tests_that_exist() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "promise" not in line]
    assert len(rows) > 25
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert named, f"no test stands behind: {row}"
        for file, test in named:
            defined = {node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if hasattr(node, "name")}
            assert test in defined, f"{file} has no {test}"


def test_commands_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make ([\w-]+)", PAGE, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for script in re.findall(r"`python (\S+\.py)`", PAGE):
        assert (ROOT / script).exists()


def test_links_lead_somewhere() -> None:
    for page, folder in ((PAGE, ROOT / "docs"), ((ROOT / "SECURITY.md").read_text(), ROOT)):
        for target in [*re.findall(r"\]\(([^)#]+)\)", page), *re.findall(r"`(docs/\S+\.md)`", page)]:
            assert (folder / target).exists(), target
