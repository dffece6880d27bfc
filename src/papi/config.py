"""What a run is: frozen dataclasses that the command line is made from, checked when they are built.

A field that is `None` is left to the preset (`papi.setup.settings.complete` fills it in). `Parameter` only names and groups
options on the command line.
"""

import dataclasses
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter, Token

from papi.errors import UserError

_DATA = Parameter(group=Group("Data and candidate labels", sort_key=1))
_METHOD = Parameter(group=Group("Method and network", sort_key=2))
_TRAINING = Parameter(group=Group("Training", sort_key=3))
_RUN = Parameter(group=Group("This run", sort_key=4))


def _whole(_: Any, tokens: Sequence[Token]) -> int:
    """The number of an option, as it is written; by itself cyclopts takes 2.5 for 2."""
    try:
        return int(tokens[0].value)
    except ValueError as error:
        raise ValueError(f"give a whole number instead of {tokens[0].value}.") from error


WHOLE = Parameter(converter=_whole)

MAX_SEED = 2**32 - 1  # the released code's candidate draw takes no larger seed

Select = Literal["last", "covering-rate", "approximated-accuracy"]
WITHOUT_RATE = ("uniform-sets", "instance-dependent")  # kinds of sets that are made without a flip rate
CandidateKind = Literal["uniform", "hierarchical", "class-dependent", "uniform-sets", "instance-dependent", "noisy"]


@dataclass(frozen=True)
class CandidatesConfig:
    """How candidate sets come about: from a file, with the data, or made from true labels."""

    flip_rate: Annotated[float, _DATA] = 0.5
    """Chance of each wrong label to be among the candidates, in [0, 1)."""
    seed: Annotated[int | None, _DATA, WHOLE] = None
    """Seed of the candidate sets. [default: the run's seed]"""
    file: Annotated[Path | None, _DATA] = None
    """Your candidate sets: csv, jsonl, parquet or npz. [default: those of the data, else they are made]"""
    kind: Annotated[CandidateKind | None, _DATA] = None
    """How sets are made from true labels. [default: uniform; hierarchical for cifar100-h]"""
    groups: Annotated[Path | None, _DATA] = None
    """hierarchical: a csv with the columns class and group. [default: the superclasses of the dataset]"""
    matrix: Annotated[str | None, _DATA] = None
    """class-dependent: 01, 02, 03, 04, pair, or a csv or npy file with K rows of K probabilities."""
    noise_rate: Annotated[float, _DATA] = 0.2
    """noisy: chance of the true label to be missing, in [0, 1]."""
    annotator: Annotated[str, _DATA] = "small"
    """instance-dependent: the network that is trained on the true labels and then asked what it would confuse."""
    annotator_epochs: Annotated[int, _DATA, WHOLE] = 12
    """instance-dependent: how long the annotator is trained."""
    rule: Annotated[Literal["released", "paper"], _DATA] = "released"
    """instance-dependent: rate x K x s up to 1, as in the released code, or s / max s, as in the paper."""
    instance_rate: Annotated[float, _DATA] = 0.4
    """instance-dependent, released rule: the expected number of wrong labels as a share of the classes."""
    votes: Annotated[str, _DATA] = "union"
    """How votes become candidate sets: union, at-least-N, or vaguest (the annotator who names most)."""
    weigh_votes: Annotated[bool, _DATA, Parameter(negative="")] = False
    """Let votes decide how likely each candidate is at the start."""
    allow_missing_truth: Annotated[bool, _DATA, Parameter(negative="")] = False
    """Accept rows of your file whose true label is not among their candidates."""

    def __post_init__(self) -> None:
        _require(0 <= self.flip_rate < 1, "--candidates.flip-rate", self.flip_rate, "a number in [0, 1)")
        _require(0 <= self.noise_rate <= 1, "--candidates.noise-rate", self.noise_rate, "a number in [0, 1]")
        fits = 0 < self.instance_rate < math.inf
        _require(fits, "--candidates.instance-rate", self.instance_rate, "a number above 0")
        _require(self.annotator_epochs > 0, "--candidates.annotator-epochs", self.annotator_epochs, "1 or more")
        fits = re.fullmatch(r"union|vaguest|at-least-[1-9]\d*", self.votes) is not None
        _require(fits, "--candidates.votes", self.votes, "union, vaguest or like at-least-2")
        if self.seed is not None:
            _require(0 <= self.seed <= MAX_SEED, "--candidates.seed", self.seed, f"between 0 and {MAX_SEED}")
        if self.file is not None and self.kind is not None:
            raise UserError("--candidates.file and --candidates.kind exclude each other: sets are read or made.")
        for name, kind in (("matrix", "class-dependent"), ("groups", "hierarchical")):
            if getattr(self, name) is not None and self.kind != kind:
                raise UserError(f"--candidates.{name} is for --candidates.kind {kind}: give both, or neither.")

    @property
    def rate(self) -> float | None:
        """The flip rate, where the kind of sets has one."""
        return None if self.kind in WITHOUT_RATE else self.flip_rate


@dataclass(frozen=True)
class OptimConfig:
    """The optimizer and the course of the learning rate."""

    optimizer: Annotated[Literal["sgd", "adam"] | None, _TRAINING] = None
    """Which optimizer. [default: from the preset]"""
    lr: Annotated[float | None, _TRAINING] = None
    """Learning rate at its highest. [default: from the preset]"""
    momentum: Annotated[float | None, _TRAINING] = None
    """Momentum of SGD. [default: from the preset]"""
    nesterov: Annotated[bool | None, _TRAINING] = None
    """Nesterov's form of momentum. [default: from the preset]"""
    weight_decay: Annotated[float | None, _TRAINING] = None
    """Weight decay. [default: from the preset]"""
    decay: Annotated[Literal["all", "matrices"] | None, _TRAINING] = None
    """What decays: all parameters, or only weight matrices (not biases and batch-norm). [default: from the preset]"""
    schedule: Annotated[
        Literal["cosine", "warmup-cosine", "constant", "multistep", "exponential"] | None, _TRAINING
    ] = None
    """Course of the learning rate over the run. [default: from the preset]"""

    def __post_init__(self) -> None:
        for name in ("lr", "weight_decay"):
            value = getattr(self, name)
            if value is not None:
                _require(0 <= value < math.inf, f"--optim.{name.replace('_', '-')}", value, "zero or more, and finite")
        if self.momentum is not None:
            _require(0 <= self.momentum < 1, "--optim.momentum", self.momentum, "a number in [0, 1)")


@dataclass(frozen=True)
class CheckpointConfig:
    """When to save. Epoch ends always do."""

    every: Annotated[str, _RUN] = "60s"
    """Save at least this often within an epoch: a number of steps (200), or of seconds (60s)."""

    def __post_init__(self) -> None:
        count = self.every.removesuffix("s")
        fits = count.isdigit() and int(count) > 0
        _require(fits, "--checkpoint.every", self.every, "like 200 (steps) or 60s (seconds)")

    @property
    def seconds(self) -> float:
        return float(self.every[:-1]) if self.every.endswith("s") else float("inf")

    @property
    def steps(self) -> float:
        return float("inf") if self.every.endswith("s") else float(self.every)


@dataclass(frozen=True)
class RunConfig:
    """All that decides a run."""

    data: Annotated[str, _DATA] = "fashion-mini"
    """A dataset by name (see `papi datasets`), or your own: a folder of images, or a file .npz, .csv, .mat …"""
    data_dir: Annotated[Path, _DATA] = Path("data")
    """Folder in which datasets lie."""
    data_size: Annotated[int | None, _DATA, WHOLE, Parameter(name="--data.size")] = None
    """Side in pixels to which your images are brought. [default: theirs if they share a small one, else 64]"""
    data_split: Annotated[Literal["train", "test"], _DATA, Parameter(name="--data.split")] = "train"
    """The published split of a known dataset to train on."""
    data_test_share: Annotated[float, _DATA, Parameter(name="--data.test-share")] = 0.2
    """Share to hold out for testing where there are true labels but no test images, in [0, 1)."""
    data_holdout: Annotated[float | None, _DATA, Parameter(name="--data.holdout")] = None
    """Share not to train on, to judge every epoch by its candidate sets alone. [default: 0; 0.1 with --select]"""
    limit: Annotated[int | None, _DATA, WHOLE] = None
    """Train on so many images only, the same number of each class. [default: all]"""
    candidates: CandidatesConfig = field(default_factory=CandidatesConfig)
    method: Annotated[str, _METHOD] = "papi"
    """A method by name (see `papi methods`), or `package.module:Class` for one of your own."""
    option: Annotated[tuple[str, ...], _METHOD, Parameter(negative="", show_default=False)] = ()
    """A setting of the method as KEY=VALUE, repeatable; `papi methods NAME` lists them."""
    network: Annotated[str | None, _METHOD] = None
    """Network: small, resnet18, wide-resnet, or mlp for feature tables. [default: from the preset]"""
    preset: Annotated[str, _METHOD] = "quick"
    """Where unset values come from: quick (minutes on a CPU) or paper (the released settings)."""
    epochs: Annotated[int | None, _TRAINING, WHOLE] = None
    """Passes over the training images. [default: from the preset]"""
    batch_size: Annotated[int | None, _TRAINING, WHOLE] = None
    """Images in a step. [default: from the preset]"""
    drop_last: Annotated[bool | None, _TRAINING] = None
    """Leave out the smaller batch at the end of an epoch. [default: from the preset]"""
    optim: OptimConfig = field(default_factory=OptimConfig)
    select: Annotated[Select, _TRAINING] = "last"
    """Which epoch's model to keep: the last, or the best by candidate sets held out. No true label is looked at."""
    calibrate: Annotated[bool, _TRAINING, Parameter(negative="")] = False
    """Fit a temperature on candidate sets, held out if any are, so that probabilities are neither too high nor low."""
    precision: Annotated[Literal["fp32", "bf16", "fp16"], _TRAINING] = "fp32"
    """In what the network computes; bf16 and fp16 are faster on GPUs. What a method remembers is in float32 always."""
    compile: Annotated[bool, _TRAINING, Parameter(negative="")] = False
    """Compile the encoder before the first step (torch.compile): minutes at the start, for long runs on GPUs."""
    seed: Annotated[int, _TRAINING, WHOLE] = 0
    """Seed of everything random: the same seed gives the same model, bit for bit."""
    threads: Annotated[int | None, _RUN, WHOLE] = None
    """CPU threads. [default: all cores]"""
    device: Annotated[str, _RUN] = "auto"
    """cpu, cuda, cuda:1 …; auto takes a GPU if there is one."""
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)

    def __post_init__(self) -> None:
        _require(0 <= self.seed <= MAX_SEED, "--seed", self.seed, f"between 0 and {MAX_SEED}")
        _require(0 <= self.data_test_share < 1, "--data.test-share", self.data_test_share, "a number in [0, 1)")
        if self.data_holdout is not None:
            _require(0 <= self.data_holdout < 1, "--data.holdout", self.data_holdout, "a number in [0, 1)")
        if self.select != "last" and self.data_holdout == 0:
            raise UserError(f"--select {self.select} needs samples held out: give --data.holdout a share above 0.")
        if self.data_size is not None:
            _require(4 <= self.data_size <= 1024, "--data.size", self.data_size, "between 4 and 1024 pixels")
        for name, least in (("limit", 2), ("epochs", 1), ("batch_size", 2), ("threads", 1)):
            value = getattr(self, name)
            if value is not None:
                _require(value >= least, f"--{name.replace('_', '-')}", value, f"{least} or more")
        for text in self.option:
            _require("=" in text, "--option", text, "of the form KEY=VALUE, for instance temperature=0.5")

    @property
    def options(self) -> dict[str, str]:
        """The method's settings by name; the last word on a name counts."""
        return dict(text.split("=", 1) for text in self.option)


# What changes neither the weights nor the metrics of a run. `preset` only filled in the other fields.
NO_EFFECT = {"data_dir", "threads", "device", "checkpoint", "preset"}

# Settings at which a run does what it did before they existed. Its identity leaves them out, so that it can go on.
NEUTRAL = {"data_holdout": 0.0, "select": "last", "calibrate": False}


def to_dict(config: Any) -> dict[str, Any]:
    """A config as JSON values."""
    values = dataclasses.asdict(config)
    plain: dict[str, Any] = json.loads(json.dumps(values, default=str))  # tuples as lists, paths as texts
    return plain


def from_dict(values: dict[str, Any]) -> RunConfig:
    """The inverse of `to_dict`."""
    sets = values.get("candidates", {})
    paths = {name: Path(sets[name]) for name in ("file", "groups") if sets.get(name) is not None}
    values = values | {"candidates": sets | paths}
    sections = {"candidates": CandidatesConfig, "optim": OptimConfig, "checkpoint": CheckpointConfig}
    convert = {"data_dir": Path, "option": tuple} | {name: lambda v, s=s: s(**v) for name, s in sections.items()}
    return RunConfig(**{key: convert.get(key, lambda v: v)(value) for key, value in values.items()})


def differences(mine: dict[str, Any], theirs: dict[str, Any], prefix: str = "") -> dict[str, tuple[Any, Any]]:
    """Settings that make two runs different, as `{"optim.lr": (mine, theirs)}`."""
    found: dict[str, tuple[Any, Any]] = {}
    for key in sorted(mine.keys() | theirs.keys()):
        a, b = mine.get(key), theirs.get(key)
        if not prefix and key in NO_EFFECT:
            continue
        if isinstance(a, dict) and isinstance(b, dict):
            found |= differences(a, b, f"{prefix}{key}.")
        elif a != b:
            found[f"{prefix}{key}"] = (a, b)
    return found


def _require(fits: bool, option: str, got: Any, wanted: str) -> None:
    if not fits:
        raise UserError(f"{option} must be {wanted}; got {got}.")
