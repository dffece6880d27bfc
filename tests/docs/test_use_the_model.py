"""The page "Use the model" lists the formats that can be exported."""

import re

from pages import ROOT

PAGE = (ROOT / "docs" / "use-the-model.md").read_text()


def test_what_the_page_says_of_formats() -> None:
    from papi.export.formats import FORMATS

    listed = dict(re.findall(r"^\| `(\w+)` \|.*\| `(model\.[\w.]+)` \|$", PAGE, re.MULTILINE))
    assert listed == {kind: f"model{form.suffix}" for kind, form in FORMATS.items()}
