"""A person's decisions about doubtful images, and training on with them from where a run ended."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from papi import train as run
from papi.config import RunConfig, from_dict
from papi.data.dataset import Dataset, Progress, refuse, silent
from papi.data.digest import same_data
from papi.data.own.tables import Row, read_table
from papi.errors import UserError, unknown
from papi.methods import find_method
from papi.runs.folder import RunFolder
from papi.runs.labels import candidate_shares
from papi.runs.parent import read_parent
from papi.setup import data as preparation

EPOCHS_SHARE = 0.25  # of the parent's epochs: its weights are a good start
RATE_SHARE = 0.1  # of the parent's learning rate: a full one would first undo what was learned


@dataclass(frozen=True)
class Decisions:
    """Which label a person gave to which training images."""

    rows: np.ndarray  # (D,) int64, rising
    labels: np.ndarray  # (D,) int64

    def fixed_sets(self, candidates: np.ndarray) -> np.ndarray:
        """The sets `(N, K) bool` with a single candidate where there is a decision."""
        fixed: np.ndarray = candidates.copy()
        fixed[self.rows] = False
        fixed[self.rows, self.labels] = True
        return fixed

    def fixed_confidence(self, candidates: np.ndarray, confidence: np.ndarray) -> np.ndarray:
        """The confidence `(N, K) float32` in the fixed sets: all of it on the label that was decided on."""
        fixed = np.where(candidates, confidence, 0).astype(np.float32)
        doubted = np.where(candidates, 0, confidence).any(1)  # some belief went to labels outside the set
        fixed[doubted] = candidate_shares(candidates[doubted], confidence[doubted])
        fixed[self.rows] = 0
        fixed[self.rows, self.labels] = 1
        return fixed


def read_decisions(path: Path, count: int, classes: tuple[str, ...], files: tuple[str, ...] | None) -> Decisions:
    """A table with the columns `label` and `index`, `file` or both, as the page of `papi report` writes it."""
    table = read_table(path, refuse)
    table.require("label")
    if not {"index", "file"} & set(table.columns):
        raise UserError(f"{path} names no images: it needs a column index or file beside the labels.")
    place = {name: row for row, name in enumerate(files or ())}
    number = {name: k for k, name in enumerate(classes)}
    found: dict[int, tuple[int, str]] = {}  # row of the image → label, and where that is said
    for row in table.rows:
        label = str(row.values.get("label") or "")
        if label not in number:
            raise UserError(f"{row.where}: {unknown('label', label, classes)}")
        image = _image(row, count, place, files)
        before = found.setdefault(image, (number[label], row.where))
        if before[0] != number[label]:
            raise UserError(
                f"{row.where} calls image {image} {label!r}, and {before[1]} calls it {classes[before[0]]!r}: keep one."
            )
    if not found:
        raise UserError(f"{path} holds no decisions: there is nothing to train on.")
    rows = np.array(sorted(found), np.int64)
    return Decisions(rows, np.array([found[image][0] for image in rows.tolist()], np.int64))


def _image(row: Row, count: int, place: dict[str, int], files: tuple[str, ...] | None) -> int:
    """The training image a row is about; index and file must agree where both are given."""
    index, file = (str("" if row.values.get(name) is None else row.values[name]).strip() for name in ("index", "file"))
    if file and files is None:
        raise UserError(
            f"{row.where} names the file {file!r}, and the images of this run have no files: give an index."
        )
    if file and file not in place:
        raise UserError(f"{row.where} names {file!r}, which is no training image of this run: check its spelling.")
    if not index and not file:
        raise UserError(f"{row.where} has neither index nor file: which image is it about?")
    if not index:
        return place[file]
    if not index.isdecimal() or int(index) >= count:
        raise UserError(f"{row.where} has the index {index!r}: training images are counted from 0 to {count - 1}.")
    if file and place[file] != int(index):
        raise UserError(f"{row.where} has the index {index}, but {file!r} is image {place[file]}: correct one of them.")
    return int(index)


def fixed_folder(parent: Path) -> Path:
    """Where a run with decisions goes unless a person says otherwise: `x-fixed` beside `x`, then `x-fixed2` …"""
    parent = parent.resolve()
    stem, number = re.fullmatch(r"(.*?)(?:-fixed(\d*))?", parent.name, re.DOTALL).groups()  # type: ignore[union-attr]
    return parent.with_name(f"{stem}-fixed" if number is None else f"{stem}-fixed{int(number or 1) + 1}")


def train_with(
    path: Path,
    decisions_file: Path,
    folder: Path,
    *,
    epochs: int | None = None,
    data_dir: Path | None = None,
    stop_requested: Callable[[], bool] = lambda: False,
    progress: Progress = silent,
) -> Iterator[run.Event]:
    """Train the run in `path` on in a new folder, with the decisions as the only candidates of their images.

    Settings are the parent's, but for fewer epochs and a smaller learning rate. It starts from the parent's weights,
    its prototypes if it has them, and its confidence.
    """
    finished = RunFolder(path)
    record = finished.read_config()
    if record is None or not finished.arrays_file.exists():
        raise UserError(f"{path} holds no finished run: give a folder in which `papi train` has ended.")
    config = from_dict(record["config"])
    if data_dir is not None:
        config = replace(config, data_dir=data_dir)
    candidates = finished.read_arrays(finished.candidates_file)["candidates"]
    dataset = preparation.load_dataset(config, progress=progress).limited(config.limit)
    _require_same_data(path, record, dataset, candidates)
    decisions = read_decisions(decisions_file, len(candidates), dataset.class_names, dataset.file_names)
    confidence = finished.read_arrays(finished.arrays_file)["confidence"]
    outside = int((~candidates[decisions.rows, decisions.labels]).sum())
    notes = (f"{outside} of {len(decisions.rows)} decisions are for a label that was not among the candidates.",)
    dataset = replace(
        dataset,
        initial_confidence=decisions.fixed_confidence(candidates, confidence),
        notes=notes if outside else (),
    )
    fixed = decisions.fixed_sets(candidates)
    yield from run.fit(dataset, fixed, _shortened(config, epochs), RunFolder(folder), stop_requested, read_parent(path))


def _shortened(config: RunConfig, epochs: int | None) -> RunConfig:
    """Fewer epochs, a smaller learning rate and no warm-up: what it is for has been learned."""
    warms_up = "warmup_epochs" in {field.name for field in fields(find_method(config.method).Config)}
    assert config.epochs is not None, "a run's record has every value filled in"
    assert config.optim.lr is not None
    return replace(
        config,
        epochs=epochs or max(1, round(EPOCHS_SHARE * config.epochs)),
        optim=replace(config.optim, lr=RATE_SHARE * config.optim.lr),
        option=(*config.option, "warmup_epochs=0") if warms_up else config.option,
    )


def _require_same_data(path: Path, record: dict[str, Any], dataset: Dataset, candidates: np.ndarray) -> None:
    """Stop if the data are not those of the run: a decision would hit another image."""
    if not same_data(record, dataset, candidates):
        raise UserError(
            f"the data of {path} have changed since it was trained: bring back those it was trained on, "
            "or train a new run on what there is now."
        )
