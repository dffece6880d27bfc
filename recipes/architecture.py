"""Draw which module of the package imports which: the figure in docs/architecture.md.

    python -m recipes.architecture               # writes docs/pictures/architecture.svg

Modules are in the order that tests/test_architecture.py checks. A "room" is a top-level module or subpackage. A dot
marks an import. The figure depends only on the sources, so it is the same byte for byte on every machine.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import cyclopts
from cyclopts import Parameter

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "papi"
PICTURE = ROOT / "docs" / "pictures" / "architecture.svg"

Imports = dict[str, set[str]]  # room → rooms it imports

_CELL, _LEFT, _TOP, _MARGIN = 26, 120, 104, 12
_INK, _FAINT, _BOX, _DOT = "#1f2933", "#d9e0e7", "#e8eef4", "#1f6fb2"


def rooms_in_order(test: Path = ROOT / "tests" / "test_architecture.py") -> list[str]:
    """The rooms from top to bottom, as listed in the architecture test."""
    for node in ast.parse(test.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ORDER":
            return list(ast.literal_eval(node.value))
    raise ValueError(f"{test} has no list ORDER")


def room_imports(package: Path = PACKAGE) -> Imports:
    """Every room of a package and the rooms it imports, including imports inside functions."""
    rooms = {path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    found: Imports = {room: set() for room in sorted(rooms - {"__init__", "__main__"})}
    exports = _exports(package)
    for room, imported in found.items():
        module = package / f"{room}.py"
        for file in [module] if module.exists() else sorted((package / room).rglob("*.py")):
            names = set(_names(ast.parse(file.read_text()), package.name))
            imported |= {exports.get(name, name) for name in names} & found.keys()
        imported.discard(room)
    return found


def _exports(package: Path) -> dict[str, str]:
    """Names exported by the package itself, and the rooms they come from: `load` comes from `inference`."""
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse((package / "__init__.py").read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith(f"{package.name}."):
            found |= {alias.name: node.module.split(".")[1] for alias in node.names}
    return found


def _names(tree: ast.AST, package: str) -> Iterator[str]:
    """Names that a module imports from the package or uses as `package.name`, without imports for type checkers."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names = [ast.unparse(node)]
        yield from (name.split(".")[1] for name in names if name.startswith(f"{package}."))
        waiting += ast.iter_child_nodes(node)


def draw(order: list[str], imports: Imports, packages: set[str]) -> str:
    """A matrix of rooms as SVG, with a dot where the room in the row imports the room in the column."""
    side = len(order) * _CELL
    width, height = _LEFT + side + 2 * _MARGIN + 16, _TOP + side + 2 * _MARGIN + 24
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="13" fill="{_INK}">',
        "<title>Which module of the package imports which</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for place, room in enumerate(order):
        lines += _room(place, f"{room}/" if room in packages else room)
    for row, room in enumerate(order):
        for column, other in enumerate(order):
            if other in imports[room]:
                x, y = _centre(column), _TOP + row * _CELL + _CELL // 2
                lines.append(
                    f'<circle cx="{x}" cy="{y}" r="6" fill="{_DOT}"><title>{room} imports {other}</title></circle>'
                )
    lines.append(f'<text x="{_MARGIN}" y="{height - _MARGIN}">A dot: the row imports the column.</text>')
    return "\n".join([*lines, "</svg>", ""])


def _room(place: int, name: str) -> list[str]:
    """The box of a room on the left, its name above its column, and its grid lines."""
    x, y = _centre(place), _TOP + place * _CELL
    return [
        f'<rect x="{_MARGIN}" y="{y + 2}" width="{_LEFT - _MARGIN}" height="{_CELL - 4}" rx="4" fill="{_BOX}"/>',
        f'<text x="{_MARGIN + 8}" y="{y + 17}">{name}</text>',
        f'<text transform="translate({x + 4} {_TOP - 8}) rotate(-60)">{name}</text>',
        f'<path d="M{_LEFT} {y + _CELL // 2}H{x}M{x} {_TOP}V{y + _CELL // 2}" stroke="{_FAINT}" fill="none"/>',
        f'<rect x="{x - 6}" y="{y + _CELL // 2 - 6}" width="12" height="12" fill="{_FAINT}"/>',
    ]


def _centre(column: int) -> int:
    return _LEFT + _MARGIN + column * _CELL + _CELL // 2


def picture() -> str:
    """The figure for the current sources."""
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return draw(rooms_in_order(), room_imports(), packages)


def main(*, out: Annotated[Path, Parameter(name="--out")] = PICTURE) -> None:
    """Draw which module imports which.

    Parameters
    ----------
    out
        The file to write.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(picture(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    cyclopts.run(main)
