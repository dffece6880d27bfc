"""Every promise of SECURITY.md names a test that exists."""

import re

import pytest

from pages import ROOT, promises, require_tests

PAGE = (ROOT / "SECURITY.md").read_text()
PROMISES = promises(PAGE)


@pytest.mark.parametrize(("promise", "tests"), PROMISES, ids=[promise[:40] for promise, _ in PROMISES])
def test_a_promise_names_tests_that_exist(promise: str, tests: str) -> None:
    require_tests(promise, tests)


def test_every_group_of_promises_has_tests() -> None:
    promised = PAGE.partition("## What is promised")[2].partition("## What is not promised")[0]
    groups = re.split(r"^\*\*", promised, flags=re.MULTILINE)[1:]
    assert groups
    assert all("| promise | test |" in group for group in groups)
