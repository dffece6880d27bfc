"""Class hierarchies, such as species in genera: a coarse label stands for all classes below it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from reprlib import repr as shortened

from papi.data.dataset import refuse
from papi.data.own.tables import cell_text, read_table
from papi.errors import UserError, missing
from papi.files.reading import read_json, reason

DEPTH = 32  # maximum depth; biological taxonomy has fewer ranks


@dataclass(frozen=True)
class Tree:
    """Labels and their parents. The classes are the leaves, in the order of the file."""

    path: Path
    parents: Mapping[str, str | None]  # of every label; None at the top

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """The labels without children."""
        above = set(self.parents.values())
        return tuple(label for label in self.parents if label not in above)

    @cached_property
    def _below(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {label: [] for label in self.parents}
        for leaf in self.leaves:
            for label in self.line(leaf):
                found[label].append(leaf)
        return found

    def line(self, label: str) -> list[str]:
        """Return the path from the root to a label."""
        found, at = [], self.parents.get(label)
        while at is not None:
            found.append(at)
            at = self.parents[at]
        return [*reversed(found), label]

    def classes_for(self, labels: Sequence[str]) -> list[str]:
        """Return the classes that labels stand for, each once. Unknown labels are kept and rejected later."""
        return list(dict.fromkeys(leaf for label in labels for leaf in self._below.get(label, [label])))

    def weights_for(self, weights: Mapping[str, float]) -> dict[str, float]:
        """Return the weights of the classes: a coarse label divides its weight equally among its classes."""
        found: dict[str, float] = {}
        for label, weight in weights.items():
            below = self._below.get(label, [label])
            for leaf in below:
                found[leaf] = found.get(leaf, 0.0) + weight / len(below)
        return found

    def limited_to(self, classes: Sequence[str]) -> "Tree":
        """Return the part of the tree above these classes of the data."""
        kept = {label for name in classes for label in self.line(name)}
        return Tree(self.path, {label: parent for label, parent in self.parents.items() if label in kept})

    def levels(self, classes: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return the group of each class at each level above the classes, from the top down.

        A class that is less deep than others is its own group at deeper levels.
        """
        stranger = next((name for name in classes if name not in self.leaves), None)
        if stranger is not None:
            raise missing(self.path, "class", stranger, self.leaves)
        lines = [self.line(name) for name in classes]
        deepest = max((len(line) for line in lines), default=1)
        return tuple(tuple(line[min(level, len(line) - 1)] for line in lines) for level in range(deepest - 1))


def read_tree(path: Path) -> Tree:
    """Read a tree from a table with the columns `label` and `parent`, or from nested objects in a .json file."""
    pairs = _from_json(path) if path.suffix.lower() == ".json" else _from_table(path)
    parents: dict[str, str | None] = {}
    places: dict[str, str] = {}
    for where, label, parent in pairs:
        if not label or "\0" in label:
            raise UserError(f"{where} has a label that is empty or contains a NUL: rename it.")
        if parents.get(label) is not None and parents[label] != parent:
            raise UserError(
                f"{where} puts {label!r} below {parent!r}, but {places[label]} puts it below {parents[label]!r}: keep "
                "one."
            )
        parents[label], places[label] = parent, where
    for label, parent in list(parents.items()):
        if parent is not None and parent not in parents:
            parents[parent], places[parent] = None, places[label]
    _require_ends(parents, places)
    tree = Tree(path, parents)
    if len(tree.leaves) < 2:
        raise UserError(f"{path} has {len(tree.leaves)} labels without children: a classifier needs two or more.")
    return tree


def _require_ends(parents: Mapping[str, str | None], places: Mapping[str, str]) -> None:
    """Raise `UserError` unless every label leads to the root within the maximum depth."""
    for label in parents:
        at, steps = parents[label], 0
        while at is not None:
            at, steps = parents[at], steps + 1
            if steps > DEPTH:
                raise UserError(f"{places[label]}: {label!r} is its own ancestor, or more than {DEPTH} levels deep.")


def _from_table(path: Path) -> Iterator[tuple[str, str, str | None]]:
    table = read_table(path, refuse)
    for column in ("label", "parent"):
        table.require(column)
    for row in table.rows:
        yield row.where, cell_text(row, "label") or "", cell_text(row, "parent")


def _from_json(path: Path) -> Iterator[tuple[str, str, str | None]]:
    """`{"Roses": {"rose": {}, "apple": {}}, "Lilies": ["tulip", "lily"]}`."""
    try:
        content = read_json(path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read as JSON ({reason(error)}): correct it.") from error
    yield from _inside(content, None, str(path))


def _inside(content: object, above: str | None, where: str) -> Iterator[tuple[str, str, str | None]]:
    if isinstance(content, list) and all(isinstance(name, str) for name in content):
        content = dict.fromkeys(content)
    if content is None or content == "":
        return
    if not isinstance(content, dict):
        raise UserError(f"{where} contains {shortened(content)}: use nested objects, or lists of strings.")
    for name, inner in content.items():
        label = name.strip()
        yield f"{where}, in {above!r}" if above else where, label, above
        yield from _inside(inner, label, f"{where}")
