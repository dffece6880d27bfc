"""docs/architecture.md describes every module, in order, and a run as the code goes through it."""

import re
from pathlib import Path

from test_architecture import FILES, ORDER

PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()


def section(title: str) -> str:
    """The text below a heading, up to the next one."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_every_room_is_described_in_order() -> None:
    described = re.findall(r"^\*\*`(\w+)`\*\* (.+)", section("The modules"), re.MULTILINE)
    assert [room for room, _ in described] == ORDER == sorted({name.split(".")[0] for name in FILES}, key=ORDER.index)


def test_every_package_inside_the_data_is_described() -> None:
    for name in FILES:
        if FILES[name].name == "__init__.py" and name.startswith("data."):
            assert f"`src/papi/{name.replace('.', '/')}`" in section("The modules"), name


def test_a_run_goes_through_the_rooms_that_train_imports() -> None:
    """Each step of the table names a part that exists, and together they lie in the rooms of a run."""
    places = re.findall(r"^\| \d+\. [^|]+ \| `papi\.(\w+)[\w.]*` \|", section("One run"), re.MULTILINE)
    assert set(places) == {"cli", "setup", "data", "training", "runs", "report"}


def test_the_picture_is_shown() -> None:
    assert "](pictures/architecture.svg)" in PAGE
