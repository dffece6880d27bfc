"""The picture of the architecture shows the imports as they are."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes import architecture
from test_architecture import FILES, ORDER, imports


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Two rooms and two modules; `top` is below `room`, and the package hands out `thing` of `low`."""
    root = tmp_path / "toy"
    (root / "room" / "inner").mkdir(parents=True)
    sources = {
        "__init__.py": "from toy.low import thing",
        "__main__.py": "from toy.top import main",
        "low.py": "import os\nthing = 1",
        "room/__init__.py": "",
        "room/inner/__init__.py": "",
        "room/inner/deep.py": "def use() -> None:\n    from toy import low",
        "room/own.py": "from toy.room.inner import deep\nimport toystore.top",
        "top.py": "from typing import TYPE_CHECKING\nimport toy.room.own\nif TYPE_CHECKING:\n    import toy.low",
        "user.py": "import toy\nprint(toy.thing)",
    }
    for name, text in sources.items():
        (root / name).write_text(text)
    return root


def test_the_picture_is_up_to_date() -> None:
    fresh = architecture.picture()
    assert architecture.PICTURE.read_text(encoding="utf-8") == fresh, "write it again: python -m recipes.architecture"


def test_the_command_writes_the_same_bytes_again(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        architecture.main(out=tmp_path / "pictures" / name)
    one, two = ((tmp_path / "pictures" / name).read_bytes() for name in ("one.svg", "two.svg"))
    assert one == two
    assert b"\r" not in one


def test_every_room_has_its_place() -> None:
    order = architecture.rooms_in_order()
    assert order == ORDER
    assert set(order) == {name.split(".")[0] for name in FILES} == architecture.room_imports().keys()


def test_it_knows_every_import_that_the_order_is_checked_with() -> None:
    found = architecture.room_imports()
    for module in FILES:
        room = module.split(".")[0]
        others = {name.split(".")[0] for name in imports(module)} - {room}
        assert others <= found[room], module


def test_no_dot_lies_above_the_diagonal() -> None:
    order = architecture.rooms_in_order()
    for room, others in architecture.room_imports().items():
        assert all(order.index(other) < order.index(room) for other in others), room


def test_what_counts_as_an_import(package: Path) -> None:
    """Inside functions and through the package's own names, too; not for type checkers, and not other packages."""
    assert architecture.room_imports(package) == {
        "low": set(),
        "room": {"low"},
        "top": {"room"},
        "user": {"low"},
    }


def test_a_file_without_an_order(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text("OTHER = []")
    with pytest.raises(ValueError, match="ORDER"):
        architecture.rooms_in_order(tmp_path / "test_nothing.py")


@given(st.integers(1, 12), st.data())
def test_a_drawing_has_a_box_for_each_room_and_a_dot_for_each_import(rooms: int, data: st.DataObject) -> None:
    order = [f"room{number}" for number in range(rooms)]
    imported = {
        room: data.draw(st.sets(st.sampled_from(order[:place]))) if place else set() for place, room in enumerate(order)
    }
    tree = ElementTree.fromstring(architecture.draw(order, imported, {"room0"}))
    named = [element.text for element in tree.iter() if element.tag.endswith("}text")]
    assert named.count("room0/") == 2  # a package, as a row and as a column
    assert all(named.count(room) == 2 for room in order[1:])
    told = [element.text for element in tree.iter() if element.tag.endswith("}title")][1:]
    assert sorted(map(str, told)) == sorted(f"{room} imports {other}" for room in order for other in imported[room])


def test_it_needs_no_font_or_file() -> None:
    """Only generic fonts, no links and no scripts: the picture looks alike everywhere."""
    text = architecture.PICTURE.read_text(encoding="utf-8")
    assert set(re.findall(r'font-family="([^"]*)"', text)) == {"sans-serif"}
    assert not re.search(r"href|<script|<style|<image", text)
