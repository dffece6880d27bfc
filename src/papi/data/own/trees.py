"""A tree of classes, such as species in genera: a coarse label stands for all classes below it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from reprlib import repr as shortened

from papi.data.dataset import refuse
from papi.data.own.tables import cell_text, read_table
from papi.errors import UserError, unknown
from papi.files.reading import read_json, reason

DEPTH = 32  # of a tree; the taxonomy of all living things has fewer ranks in use


@dataclass(frozen=True)
class Tree:
    """Labels with what stands above them. Classes are the leaves, in the order of the file."""

    path: Path
    parents: Mapping[str, str | None]  # of every label; None at the top

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """The labels with nothing below them."""
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
        """From the top down to a label."""
        found, at = [], self.parents.get(label)
        while at is not None:
            found.append(at)
            at = self.parents[at]
        return [*reversed(found), label]

    def classes_for(self, labels: Sequence[str]) -> list[str]:
        """The classes that labels stand for, each once. A label that is not in the tree stays, for others to refuse."""
        return list(dict.fromkeys(leaf for label in labels for leaf in self._below.get(label, [label])))

    def weights_for(self, weights: Mapping[str, float]) -> dict[str, float]:
        """The weights of the classes: a coarse label shares its own out equally."""
        found: dict[str, float] = {}
        for label, weight in weights.items():
            below = self._below.get(label, [label])
            for leaf in below:
                found[leaf] = found.get(leaf, 0.0) + weight / len(below)
        return found

    def limited_to(self, classes: Sequence[str]) -> "Tree":
        """The part of the tree above these classes, which the data have already."""
        kept = {label for name in classes for label in self.line(name)}
        return Tree(self.path, {label: parent for label, parent in self.parents.items() if label in kept})

    def levels(self, classes: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The group of each class at each level above the classes, from the top down.

        A class that is less deep than others counts as its own group further down.
        """
        stranger = next((name for name in classes if name not in self.leaves), None)
        if stranger is not None:
            raise UserError(f"{self.path} has no place for a class: {unknown('label', stranger, self.leaves)}")
        lines = [self.line(name) for name in classes]
        deepest = max((len(line) for line in lines), default=1)
        return tuple(tuple(line[min(level, len(line) - 1)] for line in lines) for level in range(deepest - 1))


def read_tree(path: Path) -> Tree:
    """A tree from a table with the columns `label` and `parent`, or from nested objects in a .json file."""
    pairs = _from_json(path) if path.suffix.lower() == ".json" else _from_table(path)
    parents: dict[str, str | None] = {}
    places: dict[str, str] = {}
    for where, label, parent in pairs:
        if not label or "\0" in label:
            raise UserError(f"{where} has a label without a name, or with a NUL in it: name it.")
        if parents.get(label) is not None and parents[label] != parent:
            raise UserError(f"{where} puts {label!r} below {parent!r}, and {places[label]} below {parents[label]!r}.")
        parents[label], places[label] = parent, where
    for label, parent in list(parents.items()):
        if parent is not None and parent not in parents:
            parents[parent], places[parent] = None, places[label]
    _require_ends(parents, places)
    tree = Tree(path, parents)
    if len(tree.leaves) < 2:
        raise UserError(
            f"{path} has {len(tree.leaves)} labels with nothing below them: two classes or more are needed."
        )
    return tree


def _require_ends(parents: Mapping[str, str | None], places: Mapping[str, str]) -> None:
    """Every label must lead to the top, in few steps."""
    for label in parents:
        at, steps = parents[label], 0
        while at is not None:
            at, steps = parents[at], steps + 1
            if steps > DEPTH:
                raise UserError(f"{places[label]}: {label!r} is below itself, or more than {DEPTH} levels deep.")


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
        raise UserError(f"{path} cannot be read as JSON: {reason(error)}.") from error
    yield from _inside(content, None, str(path))


def _inside(content: object, above: str | None, where: str) -> Iterator[tuple[str, str, str | None]]:
    if isinstance(content, list) and all(isinstance(name, str) for name in content):
        content = dict.fromkeys(content)
    if content is None or content == "":
        return
    if not isinstance(content, dict):
        raise UserError(f"{where} holds {shortened(content)}: nest objects, or list labels as texts.")
    for name, inner in content.items():
        label = name.strip()
        yield f"{where}, in {above!r}" if above else where, label, above
        yield from _inside(inner, label, f"{where}")
