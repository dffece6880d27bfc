"""Typed records for the files of a run: metrics.jsonl, summary.json, config.json and the arrays.

Only this module defines the names on disk. Records also read files of earlier versions: values that these did not
measure are `None`. Invalid values raise `ValueError` with the reason; `papi.runs.folder` adds the file name.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from papi.config import MAX_THREADS, RunConfig, Select, Values, from_dict, renamed
from papi.data.packed_rows import Matrix, PackedRows, checked_rows, pack_sets, unpack_sets, worth_packing
from papi.files.reading import is_unicode, parse_json, reason
from papi.networks.preparation import Preparation
from papi.runs.fields import (
    all_parts,
    is_number,
    is_whole,
    json_object,
    known_arrays,
    record_of_arrays,
    record_of_json,
    require_numbers,
    require_places,
    require_settings,
    tuple_of_texts,
    unfit,
)

_PACKED = ("values", "columns", "starts", "classes")  # arrays of packed rows
_PACKED_SETS = _PACKED[1:]
MAX_EPOCHS = 10**7  # largest epoch of a row, because curves allocate one value per epoch


@dataclass(frozen=True, kw_only=True)
class EpochRow:
    """One line of metrics.jsonl: the metrics of an epoch, counted from zero. `None` means not measured."""

    epoch: int
    loss: float
    seconds: float  # of training since the run began, summed over resumes
    learning_rate: float | None = None
    images_per_second: float | None = None
    cpu_seconds: float | None = None  # CPU time of the steps of this epoch
    train_accuracy: float | None = None  # of the linear classifier on the training batches, among the candidates
    mean_confidence: float | None = None
    disambiguation_accuracy: float | None = None  # fraction of training labels resolved to the true one
    test_accuracy: float | None = None
    prototype_accuracy: float | None = None  # of the prototypical classifier on the test samples
    calibration_error: float | None = None
    covering_rate: float | None = None  # this and the next two: on held-out samples, from their candidates alone
    approximated_accuracy: float | None = None
    candidate_likelihood: float | None = None
    intra_similarity: float | None = None  # mean cosine within classes, on the test samples
    inter_similarity: float | None = None
    linear_only_right: float | None = None  # samples in a batch that only one of the two classifiers gets right
    linear_only_right_std: float | None = None
    prototype_only_right: float | None = None
    prototype_only_right_std: float | None = None
    linear_only_right_in_candidates: float | None = None
    linear_only_right_in_candidates_std: float | None = None
    prototype_only_right_in_candidates: float | None = None
    prototype_only_right_in_candidates_std: float | None = None
    logs: Mapping[str, float] = field(default_factory=dict)  # terms of the loss and other values that a method logs

    def to_json(self) -> Values:
        """Flat, without values that were not measured."""
        own = {each.name: getattr(self, each.name) for each in dataclasses.fields(self) if each.name != "logs"}
        return {name: value for name, value in own.items() if value is not None} | dict(self.logs)

    @classmethod
    def from_json(cls, values: object) -> "EpochRow":
        """The inverse of `to_json`. A number whose name is not a field is a log value."""
        read = json_object(values, "a row")
        fields = {each.name for each in dataclasses.fields(cls)} - {"logs"}
        logs = {name: value for name, value in read.items() if name not in fields and is_number(value)}
        own = {name: value for name, value in read.items() if name in fields}
        row = record_of_json(cls, own | {"logs": logs}, "a row")
        if not 0 <= row.epoch < MAX_EPOCHS:
            raise ValueError(f"epoch is {row.epoch}, which does not fit")
        return row


@dataclass(frozen=True, kw_only=True)
class Summary:
    """summary.json: the results of a finished run. Its accuracy is that of the epoch selected without true labels."""

    method: str
    dataset: str
    seconds: float
    epochs: int
    network: str | None = None
    seed: int | None = None
    flip_rate: float | None = None
    mean_candidates: float | None = None
    singletons: float | None = None  # fraction of sets with one candidate, and with all
    full_sets: float | None = None
    true_label_present: float | None = None
    select: Select = "last"
    picked_epoch: int | None = None
    test_accuracy: float | None = None
    prototype_accuracy: float | None = None
    covering_rate: float | None = None
    approximated_accuracy: float | None = None
    candidate_likelihood: float | None = None
    calibration_error: float | None = None
    uncalibrated_error: float | None = None
    test_accuracy_last: float | None = None
    test_accuracy_best: float | None = None  # selected on the test images, only for comparison
    test_accuracy_last10: float | None = None
    training_images: int | None = None
    held_out_images: int | None = None
    cpu_seconds: float | None = None
    images_per_second: float | None = None
    temperature: float = 1.0
    ambiguous_images: int | None = None
    ambiguous_resolved: int | None = None  # to the true label
    disambiguation_accuracy: float | None = None
    peak_memory: int | None = None  # bytes
    trained_epochs: float | None = None  # fewer than `epochs` if the run ended early
    kind: Literal["images", "features"] | None = None  # what the samples are
    resolved_by_class: Mapping[str, int] | None = None  # images resolved to each class that is a candidate
    collapsed_prototypes: tuple[str, ...] = ()  # classes whose prototype is zero or equal to another

    def to_json(self) -> Values:
        """Every field by name."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: object) -> "Summary":
        """The inverse of `to_json`."""
        read = json_object(values, "a summary")
        read["collapsed_prototypes"] = tuple_of_texts(read, "collapsed_prototypes")
        summary = record_of_json(cls, read, "a summary")
        if summary.trained_epochs is not None and not 0 <= summary.trained_epochs <= MAX_EPOCHS:  # also rejects NaN
            raise ValueError(f"trained_epochs is {summary.trained_epochs}, which does not fit")
        return summary


@dataclass(frozen=True, kw_only=True)
class ParentRecord:
    """The finished run from which another one started."""

    folder: str
    model: str  # SHA-256 of its model.safetensors


@dataclass(frozen=True, kw_only=True)
class Record:
    """config.json: the settings of a run, and the environment in which it began."""

    config: Values  # the settings, as `papi.config.to_dict` gives them
    identity: Values  # everything that determines the result
    classes: tuple[str, ...] = ()
    parent: ParentRecord | None = None
    candidates: Mapping[str, float] = field(default_factory=dict)  # statistics of the sets
    annotators: Mapping[str, float] = field(default_factory=dict)  # estimated accuracy of each, lowest first
    threads: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None
    command: tuple[str, ...] = ()

    @property
    def run_config(self) -> RunConfig:
        """The settings of the run, which still have to be completed."""
        if not self.config:
            raise ValueError("it does not have all settings")
        settings = renamed(self.config)
        require_settings(settings, RunConfig, self.versions.get("papi-pll", "of another version"))
        return from_dict(settings)

    @property
    def epochs(self) -> int | None:
        """The planned number of epochs, if the settings contain it."""
        found = self.config.get("epochs")
        return found if isinstance(found, int) and is_whole(found) and found > 0 else None

    @property
    def preparation(self) -> Preparation | None:
        """How photos are prepared for its pretrained encoder; None if it has none."""
        encoder = self.identity.get("encoder")
        return Preparation.from_json(encoder.get("preparation")) if isinstance(encoder, dict) else None

    @property
    def data_hash(self) -> str | None:
        """The hash of its data; None for a run with a parent, whose hash includes the parent's confidence."""
        return None if self.parent is not None else self.identity.get("data_hash")

    def to_json(self) -> Values:
        """Every field by name; parent and annotators only if there are any."""
        values = dataclasses.asdict(self)
        absent = {name for name in ("parent", "annotators") if not values[name]}
        return {name: each for name, each in values.items() if name not in absent}

    @classmethod
    def from_json(cls, values: object) -> "Record":
        """The inverse of `to_json`."""
        read = json_object(values, "the record of a run")
        for name in ("config", "identity", "candidates", "annotators", "versions"):
            if not isinstance(read.get(name, {}), dict):
                raise ValueError(f"{name} is not a JSON object")
        if not read.get("identity"):
            raise ValueError("no settings in it")
        for name in ("classes", "command"):
            read[name] = tuple_of_texts(read, name)
        if not all(map(is_unicode, read["classes"])):
            raise ValueError("a class has a name that is not Unicode")
        if read.get("parent") is not None:
            read["parent"] = record_of_json(ParentRecord, read["parent"], "a parent")
        record = record_of_json(cls, {"config": {}} | read, "the record of a run")
        if record.threads is not None and not 1 <= record.threads <= MAX_THREADS:
            raise ValueError(f"threads is {record.threads}, which does not fit")
        _ = record.preparation  # raises if it is invalid
        return record


@dataclass(frozen=True, kw_only=True)
class Arrays:
    """arrays.npz: the results of a finished run for N training and M test samples."""

    confidence: Matrix  # (N, K) float; packed if N x K is large
    second_opinion: np.ndarray | None = None  # (N,) the trained network's probability of the resolved label
    linear_label: np.ndarray | None = None  # (N,) int64: the candidate that each classifier prefers
    prototype_label: np.ndarray | None = None
    held_out: np.ndarray | None = None  # (H,) int64: held-out training samples
    test_probabilities: np.ndarray | None = None  # (M, K)
    embedding: np.ndarray | None = None  # (E, d) unit vectors of some test samples
    embedding_index: np.ndarray | None = None  # (E,) int64: which those are
    training_embedding: np.ndarray | None = None  # (T, d) unit vectors of some training samples, if there are no tests
    training_index: np.ndarray | None = None  # (T,) int64: which those are
    prototypes: np.ndarray | None = None  # (K, d)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The existing arrays by name. Packed confidence is several arrays."""
        known = known_arrays(self)
        if not isinstance(self.confidence, PackedRows):
            return known
        del known["confidence"]
        parts = {name: np.asarray(getattr(self.confidence, name)) for name in _PACKED}
        return {f"confidence_{name}": array for name, array in parts.items()} | known

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Arrays":
        """The inverse of `to_arrays`."""
        known: dict[str, Any] = dict(arrays)
        parts = [arrays.get(f"confidence_{name}") for name in _PACKED]
        if "confidence" not in arrays and any(part is not None for part in parts):
            known["confidence"] = checked_rows(*all_parts(parts))
        return record_of_arrays(cls, known, table="confidence", kinds="f")

    def require_fitting(self, candidates: np.ndarray) -> None:
        """Raise ValueError if an array does not match the candidate sets `(N, K)` of the run."""
        samples, classes = candidates.shape
        if not isinstance(self.confidence, PackedRows):
            require_numbers("confidence", self.confidence, (samples, classes))
        elif not self.confidence.fits(candidates):
            raise ValueError("its confidence is about other sets")
        require_numbers("second_opinion", self.second_opinion, (samples,))
        require_places("linear_label", self.linear_label, samples, classes)
        require_places("prototype_label", self.prototype_label, samples, classes)
        require_places("held_out", self.held_out, None, samples)
        require_numbers("test_probabilities", self.test_probabilities, (None, classes))
        require_numbers("embedding", self.embedding, (None, None))
        tests = None if self.test_probabilities is None else len(self.test_probabilities)
        points = None if self.embedding is None else len(self.embedding)
        require_places("embedding_index", self.embedding_index, points, tests)
        require_numbers("training_embedding", self.training_embedding, (None, None))
        shown = None if self.training_embedding is None else len(self.training_embedding)
        require_places("training_index", self.training_index, shown, samples)
        require_numbers("prototypes", self.prototypes, (classes, None))


@dataclass(frozen=True, kw_only=True)
class Sets:
    """candidates.npz: the candidate sets of N training samples, with their file names or rows."""

    candidates: np.ndarray  # (N, K) bool
    file_names: np.ndarray | None = None  # (N,) text
    rows: np.ndarray | None = None  # (N,) int64, in the source data

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The existing arrays by name. A large and sparse mask is packed."""
        known = known_arrays(self)
        if worth_packing(self.candidates):
            del known["candidates"]
            known |= pack_sets(self.candidates)
        return known

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Sets":
        """The inverse of `to_arrays`."""
        known = dict(arrays)
        parts = [arrays.get(name) for name in _PACKED_SETS]
        if "candidates" not in arrays and any(part is not None for part in parts):
            known["candidates"] = unpack_sets(*all_parts(parts))
        sets = record_of_arrays(cls, known, table="candidates", kinds="b")
        samples = len(sets.candidates)
        if sets.file_names is not None and (sets.file_names.shape != (samples,) or sets.file_names.dtype.kind != "U"):
            raise ValueError(unfit("file_names", sets.file_names))
        require_places("rows", sets.rows, samples, None)
        if not sets.candidates.any(1).all():
            raise ValueError("it has samples without a candidate")
        return sets


@dataclass(frozen=True)
class Rows:
    """The contents of metrics.jsonl: the readable rows, and a description of any damage."""

    rows: tuple[EpochRow, ...]
    half: bool  # it ends in an incomplete line, as after a kill during a write
    problem: str | None = None  # of the first unreadable line; the rows before it are included

    @classmethod
    def from_text(cls, text: str) -> "Rows":
        """Read up to the first unreadable line."""
        *lines, last = text.split("\n")
        rows: list[EpochRow] = []
        for number, line in enumerate(lines, 1):
            try:
                rows.append(EpochRow.from_json(parse_json(line)))
            except ValueError as error:
                return cls(tuple(rows), bool(last), f"line {number}: {reason(error)}")
        return cls(tuple(rows), bool(last))
