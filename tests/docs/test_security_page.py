"""Every promise of SECURITY.md names a test that exists."""

import ast
import re

import pytest

from pages import ROOT

PAGE = (ROOT / "SECURITY.md").read_text()
PROMISES = re.findall(r"^\| (?!promise|-)(.+?) \| (.+) \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("promise", "tests"), PROMISES, ids=[promise[:40] for promise, _ in PROMISES])
def test_a_promise_names_tests_that_exist(promise: str, tests: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", tests)
    assert named, f"no test stands behind: {promise}"
    for file, test in named:
        defined = {node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if hasattr(node, "name")}
        assert test in defined, f"{file} has no {test}"


def test_every_group_of_promises_has_tests() -> None:
    promised = PAGE.partition("## What is promised")[2].partition("## What is not promised")[0]
    groups = re.split(r"^\*\*", promised, flags=re.MULTILINE)[1:]
    assert groups
    assert all("| promise | test |" in group for group in groups)
