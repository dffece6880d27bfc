"""What annotation files say, before it becomes arrays: statements, entries, and the rules for reading them.

Every reader produces entries, one per image. Tables contain entries directly; annotation tools and tables of votes
contain statements, one per annotator and image, which `gathered` combines.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from papi.data.dataset import Report, refuse
from papi.data.own.trees import Tree
from papi.data.own.votes import agreed


@dataclass(frozen=True)
class Statement:
    """The answer of one annotator about one image. It has no labels if the image is only listed."""

    where: str  # position in the file, for messages
    file_name: str
    annotator: str = ""
    labels: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()  # labels that are certainly wrong
    weights: Mapping[str, float] = field(default_factory=dict)  # how likely each label is, if given
    sureness: float = 1.0  # weight of the statement among others
    label: str | None = None  # the true label, if known
    split: str = "train"


@dataclass
class Entry:
    """The labels of one image."""

    where: str
    file_name: str | None
    candidates: list[str] = field(default_factory=list)
    label: str | None = None
    split: str = "train"
    votes: Mapping[str, int] = field(default_factory=dict)  # number of votes for each label
    excluded: Sequence[str] = ()  # labels that are certainly wrong
    weights: Mapping[str, float] = field(default_factory=dict)  # how likely each candidate is, if given
    said: Mapping[str, Sequence[str]] = field(default_factory=dict)  # annotator → labels

    @property
    def says_nothing(self) -> bool:
        """Whether the image is listed without any labels."""
        return not self.candidates and not self.excluded and not any(self.votes.values())


@dataclass(frozen=True)
class Rules:
    """Options for reading candidate sets."""

    votes: str = "union"  # how votes become candidate sets: union, at-least-N or vaguest
    allow_missing_truth: bool = False
    report: Report = refuse
    format: str | None = None  # of the file; None: detected from its content
    column: str | None = None  # the question to read, if an export has several
    threshold: float = 0.0  # minimum share of the weight of a candidate
    unlabelled: bool = False  # in empty rows, every class is a candidate; else they are rejected
    tree: Tree | None = None  # a label in it stands for the classes below it
    separator: str | None = None  # between labels in a cell, if not `|`
    by_label: bool = False  # a row without candidates has only its true label as a candidate

    def for_classes(self, classes: tuple[str, ...] | None) -> "Rules":
        """The same rules for known classes, to which the tree is limited."""
        if classes is None or self.tree is None:
            return self
        return replace(self, tree=self.tree.limited_to(classes))


def gathered(statements: Iterable[Statement], rules: Rules) -> list[Entry]:
    """Combine the statements about each image into one entry, in the order of first occurrence."""
    entries: dict[str, Entry] = {}
    by_file: dict[str, list[Statement]] = {}
    for each in statements if rules.tree is None else (_said_of_classes(each, rules.tree) for each in statements):
        by_file.setdefault(each.file_name, []).append(each)
        entry = entries.setdefault(each.file_name, Entry(each.where, each.file_name, split=each.split))
        entry.label = each.label or entry.label
    for name, entry in entries.items():
        said: dict[str, list[str]] = {}
        for each in by_file[name]:
            if each.labels:
                said.setdefault(each.annotator, []).extend(each.labels)
        sets = list(said.values())
        entry.said = said
        entry.candidates = agreed(sets, rules.votes)
        entry.votes = Counter(label for labels in sets for label in labels)
        entry.excluded = _excluded(by_file[name], entry.votes)
        entry.weights = _mean_weights(by_file[name], entry.candidates)
    return list(entries.values())


def in_classes(entry: Entry, tree: Tree) -> Entry:
    """An entry with classes instead of labels anywhere in the tree."""
    labels, excluded, weights = _classes(entry.candidates, entry.excluded, entry.weights, tree)
    return replace(entry, candidates=labels, excluded=excluded, weights=weights)


def _said_of_classes(said: Statement, tree: Tree) -> Statement:
    labels, excluded, weights = _classes(said.labels, said.excluded, said.weights, tree)
    return replace(said, labels=tuple(labels), excluded=tuple(excluded), weights=weights)


def _classes(
    labels: Sequence[str], excluded: Sequence[str], weights: Mapping[str, float], tree: Tree
) -> tuple[list[str], list[str], dict[str, float]]:
    """The classes that labels stand for, without excluded ones: some rose, but not the dog rose."""
    out = tree.classes_for(excluded)
    kept = [name for name in tree.classes_for(labels) if name not in out]
    return kept, out, {name: weight for name, weight in tree.weights_for(weights).items() if name in kept}


def _excluded(statements: Sequence[Statement], named: Mapping[str, int]) -> list[str]:
    """Labels that all annotators exclude, if none of them names a label."""
    if named:  # a label that one excludes and another names stays, and labels without a vote are no candidates anyway
        return []
    sets = [each.excluded for each in statements if each.excluded]
    return [label for label in sets[0] if all(label in labels for labels in sets)] if sets else []


def _mean_weights(statements: Sequence[Statement], candidates: Sequence[str]) -> dict[str, float]:
    """The mean of the annotators' weights, each weighted by its sureness; empty if none are given."""
    if all(not each.weights and each.sureness == 1 for each in statements):
        return {}
    total: dict[str, float] = dict.fromkeys(candidates, 0.0)
    for each in statements:
        own = each.weights or dict.fromkeys(each.labels, 1.0)
        whole = sum(own.values())
        for label, weight in own.items():
            if label in total and whole > 0:
                total[label] += each.sureness * weight / whole
    return total
