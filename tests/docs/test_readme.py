"""The README shows every command and every method."""

from pages import ROOT, section

README = (ROOT / "README.md").read_text()


def test_every_method_has_a_link_to_its_page() -> None:
    from papi.methods import METHODS

    assert {name for name in METHODS if f"(docs/methods/{name}.md)" not in README} == set()


def test_every_command_is_shown() -> None:
    from papi.cli import app

    listed = {line.split()[1] for line in section(README, "All commands").splitlines() if line.startswith("papi ")}
    assert listed == {name for name in app if not name.startswith("-")}
