"""The options for reading your own data."""

from dataclasses import dataclass
from pathlib import Path

from papi.data.dataset import Report
from papi.data.own.entries import Rules
from papi.data.own.image_folder import Size
from papi.data.own.trees import Tree
from papi.networks.preparation import Preparation


@dataclass(frozen=True)
class Reading:
    """Options for reading data."""

    annotations: Path | None = None  # the file with the candidate sets
    votes: str = "union"  # how votes become candidate sets
    weigh: str | None = None  # how strongly votes or weights act as a prior over the candidates; None: only weights do
    allow_missing_truth: bool = False
    format: str | None = None  # of that file; None: detected from its content
    column: str | None = None  # where to find the labels in it, if there is more than one place
    threshold: float = 0.0  # minimum share of the weight for a label to become a candidate
    unlabelled: bool = False  # an empty cell makes every class a candidate; otherwise it is rejected
    tree: Tree | None = None  # class hierarchy: a label of an inner node stands for the classes below it
    separator: str | None = None  # between the labels in a cell, if it is not `|`
    by_label: bool = False  # a row without candidates gets its true label as the only one
    size: int | None = None  # side of the images, for folders
    preparation: Preparation | None = None  # how an encoder needs the photos of folders; each is decoded when needed
    image_column: str | None = None  # of parquet files and Hugging Face datasets; None: detected by its type
    split: str = "train"  # the published split to train on
    test_share: float = 0.2  # held out as a test set if there are true labels and no test samples
    seed: int = 0  # of the test split

    @property
    def images(self) -> Size:
        """How the images of a folder are decoded."""
        return self.preparation or self.size

    def rules(self, report: Report) -> Rules:
        """Return the options about candidate sets."""
        return Rules(
            self.votes,
            self.allow_missing_truth,
            report,
            self.format,
            self.column,
            self.threshold,
            self.unlabelled,
            self.tree,
            self.separator,
            self.by_label,
        )
