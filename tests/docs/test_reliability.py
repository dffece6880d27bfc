"""Every promise on the page "Reliability" names a test that exists."""

import ast
import re

import pytest

from pages import DOCS, ROOT

PAGE = (DOCS / "reliability.md").read_text()
PROMISES = re.findall(r"^\| (?!promise|-)(.+?) \| (.+) \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("promise", "tests"), PROMISES, ids=[promise[:40] for promise, _ in PROMISES])
def test_a_promise_names_tests_that_exist(promise: str, tests: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", tests)
    assert named, f"no test stands behind: {promise}"
    for file, test in named:
        defined = {node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if hasattr(node, "name")}
        assert test in defined, f"{file} has no {test}"


def test_every_table_is_one_of_promises() -> None:
    """A table with other columns would not be checked."""
    headers = re.findall(r"^(\|.+)\n\|[-|]+\|$", PAGE, re.MULTILINE)
    assert headers
    assert set(headers) == {"| promise | test |"}
