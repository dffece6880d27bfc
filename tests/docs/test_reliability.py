"""Every promise on the page "Reliability" names a test that exists."""

import re

import pytest

from pages import DOCS, promises, require_tests

PAGE = (DOCS / "reliability.md").read_text()
PROMISES = promises(PAGE)


@pytest.mark.parametrize(("promise", "tests"), PROMISES, ids=[promise[:40] for promise, _ in PROMISES])
def test_a_promise_names_tests_that_exist(promise: str, tests: str) -> None:
    require_tests(promise, tests)


def test_every_table_is_one_of_promises() -> None:
    """A table with other columns would not be checked."""
    headers = re.findall(r"^(\|.+)\n\|[-|]+\|$", PAGE, re.MULTILINE)
    assert headers
    assert set(headers) == {"| promise | test |"}
