"""What was measured on held-out images: the table of the kept rows, and what the page says about it."""

import copy

import pytest

from papi.config import from_dict
from recipes import held_out


def test_the_page_has_the_table_of_the_rows() -> None:
    page = (held_out.DOCS / "results" / "settings.md").read_text()
    assert held_out.table(list(held_out.read_rows().values())).strip() in page


def test_one_pass_leads_only_while_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = held_out.read_rows()
    assert held_out.one_pass_leads()
    worse = copy.deepcopy(rows)
    for row in worse.values():
        config = from_dict(row["settings"])
        if config.given_options["passes"] == "one" and config.candidates.flip_rate == 0.1:
            row["values"]["accuracy"] = 0.1
    monkeypatch.setattr(held_out, "read_rows", lambda: worse)
    assert not held_out.one_pass_leads()
