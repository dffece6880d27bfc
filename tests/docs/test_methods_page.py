"""The table of methods in the reference lists every method, with the encoder passes that its settings state."""

import re

from pages import DOCS
from papi.methods import METHODS, find_method

PAGE = (DOCS / "reference" / "methods.md").read_text()


def test_every_method_has_a_row_with_its_passes() -> None:
    rows = re.findall(r"^\| \[`(\w+)`\]\(\.\./methods/(\w+)\.md\) \| [^|]+ \| ([^|]+) \|$", PAGE, re.MULTILINE)
    assert {name: passes for name, _, passes in rows} == {
        name: str(find_method(name).Config().encoder_passes) for name in METHODS
    }
    assert all(name == page for name, page, _ in rows)
