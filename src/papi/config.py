"""What a person asks for (`RunConfig`) and what is run (`Settings`): plain frozen dataclasses, checked when built.

A field of a `RunConfig` may be open (`None`): the preset decides. `papi.setup.settings.complete` turns it into
`Settings`, once, and from there on nothing is open. The command line gets its options from these fields; their names
and groups there are the business of `papi.cli`.
"""

import dataclasses
import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from papi.errors import UserError

MAX_SEED = 2**32 - 1  # the released code's candidate draw takes no larger seed
MAX_VIEWS = 64  # of each kind and photo: what is embedded takes time and room for every one
MAX_THREADS = 1024  # more than any machine has cores; tens of thousands end the process

Select = Literal["last", "covering-rate", "approximated-accuracy"]
StopWhen = Literal["never", "covering-rate", "approximated-accuracy"]
Precision = Literal["fp32", "bf16", "fp16"]
Tune = Literal["head", "all"]
Optimizer = Literal["sgd", "adam"]
Decay = Literal["all", "matrices"]
Schedule = Literal["cosine", "warmup-cosine", "constant", "multistep", "exponential"]
Values = dict[str, Any]
"""Settings by name, as JSON or a method's `Config` has them."""

_VOTES = "union, vaguest, dawid-skene, or like at-least-2 or at-least-2-else-union"
STRENGTHS = "off, auto or a number from 0 on"
WITHOUT_RATE = ("uniform-sets", "instance-dependent")  # kinds of sets that are made without a flip rate
FileFormat = Literal["table", "label-studio", "cvat", "coco", "via", "crowd"]
CandidateKind = Literal["uniform", "hierarchical", "class-dependent", "uniform-sets", "instance-dependent", "noisy"]


@dataclass(frozen=True)
class CandidatesConfig:
    """How candidate sets come about: from a file, with the data, or made from true labels."""

    flip_rate: float = 0.5
    """Probability that a wrong label is a candidate, in [0, 1)."""
    seed: int | None = None
    """Seed of the candidate sets. [default: the run's seed]"""
    file: Path | None = None
    """Your candidate sets: csv, jsonl, parquet or npz, or the export of an annotation tool: Label Studio's JSON, CVAT's
    XML, COCO, VIA's csv. [default: those of the data, else they are made]"""
    kind: CandidateKind | None = None
    """How sets are made from true labels. [default: uniform; hierarchical for cifar100-h]"""
    groups: Path | None = None
    """hierarchical: a csv with the columns class and group. [default: the superclasses of the dataset]"""
    matrix: str | None = None
    """class-dependent: 01, 02, 03, 04, pair, or a csv or npy file with K rows of K probabilities."""
    noise_rate: float = 0.2
    """noisy: probability that the true label is missing, in [0, 1]."""
    annotator: str = "small"
    """instance-dependent: network trained on the true labels; its confusions become candidates."""
    annotator_epochs: int = 12
    """instance-dependent: epochs for which the annotator is trained."""
    rule: Literal["released", "paper"] = "released"
    """instance-dependent: rate x K x s up to 1, as in the released code, or s / max s, as in the paper."""
    instance_rate: float = 0.4
    """instance-dependent, released rule: the expected number of wrong labels as a share of the classes."""
    votes: str = "union"
    """How votes become candidate sets: union, at-least-N, at-least-N-else-union (all labels of an image where none has
    N votes), vaguest (the annotator who names most), or dawid-skene (all, as likely as annotators say who are trusted
    as far as they agree with others)."""
    weigh: str | None = None
    """How far votes or weights are trusted to tell which candidate is likelier: off, auto (found from the data), or a
    number, the power to which their shares are raised. [default: auto for weights, off for votes]"""
    allow_missing_truth: bool = False
    """Accept rows of your file whose true label is not among their candidates."""
    format: FileFormat | None = None
    """The format of your file. [default: found by its content]"""
    column: str | None = None
    """Where the labels are, if there are several places: a column of a table, the control in Label Studio, the
    attribute of tags in CVAT or of files in VIA. [default: candidates; in an export, the only one there is]"""
    separator: str | None = None
    """What stands between the labels in a cell of your table. [default: |]"""
    threshold: float = 0.0
    """Where labels have weights: the least share of an image's weight that makes a label a candidate. The likeliest
    label always is one."""
    empty: Literal["refuse", "unlabelled", "label"] = "refuse"
    """What an empty cell, `?` or `*` means: an error, an image that may be of any class, or one whose only candidate is
    its `label`."""

    def __post_init__(self) -> None:
        _require(0 <= self.flip_rate < 1, "--candidates.flip-rate", self.flip_rate, "a number in [0, 1)")
        _require(0 <= self.noise_rate <= 1, "--candidates.noise-rate", self.noise_rate, "a number in [0, 1]")
        fits = 0 < self.instance_rate < math.inf
        _require(fits, "--candidates.instance-rate", self.instance_rate, "a number above 0")
        _require(self.annotator_epochs > 0, "--candidates.annotator-epochs", self.annotator_epochs, "1 or more")
        fits = re.fullmatch("union|vaguest|dawid-skene|at-least-[1-9][0-9]{0,8}(-else-union)?", self.votes) is not None
        _require(fits, "--candidates.votes", self.votes, _VOTES)
        if self.separator is not None:
            fits = bool(self.separator) and not self.separator.isalnum()
            _require(fits, "--candidates.separator", repr(self.separator), "what stands between two labels, such as ;")
        _require(0 <= self.threshold <= 1, "--candidates.threshold", self.threshold, "a number in [0, 1]")
        _require(self.weigh is None or is_strength(self.weigh), "--candidates.weigh", self.weigh, STRENGTHS)
        if self.seed is not None:
            _require(0 <= self.seed <= MAX_SEED, "--candidates.seed", self.seed, f"between 0 and {MAX_SEED}")
        if self.file is not None and self.kind is not None:
            raise UserError("--candidates.file and --candidates.kind exclude each other: sets are read or made.")
        for name, kind in (("matrix", "class-dependent"), ("groups", "hierarchical")):
            if getattr(self, name) is not None and self.kind != kind:
                raise UserError(f"--candidates.{name} is for --candidates.kind {kind}: give both, or neither.")

    @property
    def weighs(self) -> bool:
        """Whether what people say is asked for as a prior over the candidates."""
        return self.weigh not in (None, "off")

    @property
    def rate(self) -> float | None:
        """The flip rate, where the kind of sets has one."""
        return None if self.kind in WITHOUT_RATE else self.flip_rate


@dataclass(frozen=True)
class OptimConfig:
    """The optimizer and the course of the learning rate."""

    optimizer: Optimizer | None = None
    """The optimizer. [default: from the preset]"""
    lr: float | None = None
    """Peak learning rate. [default: from the preset]"""
    momentum: float | None = None
    """Momentum of SGD. [default: from the preset]"""
    nesterov: bool | None = None
    """Use Nesterov momentum. [default: from the preset]"""
    weight_decay: float | None = None
    """Weight decay. [default: from the preset]"""
    decay: Decay | None = None
    """What decays: all parameters, or only weight matrices (not biases and batch-norm). [default: from the preset]"""
    schedule: Schedule | None = None
    """Learning-rate schedule. [default: from the preset]"""
    clip_norm: float | None = None
    """Scale a step's gradient down to this norm if it is larger; 0 leaves it alone. [default: from the preset]"""
    average: float | None = None
    """Measure and keep an average of the weights over about this share of all steps, instead of the last weights; 0 for
    the last. [default: 0]"""
    encoder_lr: float | None = None
    """Peak learning rate of the encoder, if it is to learn more slowly than the rest; 0 for that of the rest.
    [default: 0; with --tune all, from the preset]"""

    def __post_init__(self) -> None:
        for name in ("lr", "weight_decay", "clip_norm", "encoder_lr"):
            value = getattr(self, name)
            if value is not None:
                _require(0 <= value < math.inf, f"--optim.{name.replace('_', '-')}", value, "zero or more, and finite")
        if self.momentum is not None:
            _require(0 <= self.momentum < 1, "--optim.momentum", self.momentum, "a number in [0, 1)")
        if self.average is not None:
            _require(0 <= self.average <= 1, "--optim.average", self.average, "a number in [0, 1]")


@dataclass(frozen=True)
class CheckpointConfig:
    """When to save. Epoch ends always do."""

    every: str = "60s"
    """Save at least this often within an epoch: a number of steps (200), or of seconds (60s)."""

    def __post_init__(self) -> None:
        fits = re.fullmatch("0*[1-9][0-9]{0,8}s?", self.every) is not None
        _require(fits, "--checkpoint.every", self.every, "like 200 (steps) or 60s (seconds)")

    @property
    def seconds(self) -> float:
        """Seconds between two saves; infinite where steps are counted."""
        return float(self.every[:-1]) if self.every.endswith("s") else float("inf")

    @property
    def steps(self) -> float:
        """Steps between two saves; infinite where seconds are counted."""
        return float("inf") if self.every.endswith("s") else float(self.every)


@dataclass(frozen=True)
class RunConfig:
    """What a person asks for. `None` leaves a value to the preset, or to the data."""

    data: str = "fashion-mini"
    """A dataset by name (see `papi datasets`), or your own: a folder of images, or a file .npz, .csv, .mat …;
    hf:NAME:split for one of Hugging Face's."""
    data_dir: Path = Path("data")
    """Folder of the datasets."""
    data_size: int | None = None
    """Height and width in pixels to which your images are resized.
    [default: that of the pretrained encoder; without one, their own if all share a small one, else 64]"""
    data_image_column: str | None = None
    """The column of images in parquet files and Hugging Face's datasets. [default: image, or the first with images]"""
    data_views: int = 0
    """With a frozen encoder: how many weak and how many strong views of each photo to embed. The plain one is enough
    for a linear head; methods that compare views make theirs of its features, then."""
    data_split: Literal["train", "test"] = "train"
    """The published split of a known dataset to train on."""
    data_test_share: float = 0.2
    """Share held out for testing if there are true labels but no test images, in [0, 1)."""
    data_holdout: float | None = None
    """Share of the training samples to hold out, to judge every epoch by candidate sets alone.
    [default: 0; 0.1 with --select or --stop-when]"""
    limit: int | None = None
    """Train on this many images only, equally many of each class. [default: all]"""
    classes_tree: Path | None = None
    """A tree of classes: a csv with the columns label and parent, or nested json. A label in it stands for the classes
    below."""
    skip_bad: bool = False
    """Leave out rows and images that have a problem, and say which, instead of stopping at the first."""
    candidates: CandidatesConfig = field(default_factory=CandidatesConfig)
    method: str = "papi"
    """A method by name (see `papi methods`), or `package.module:Class` for one of your own."""
    option: tuple[str, ...] = ()
    """A setting of the method as KEY=VALUE, repeatable; `papi methods NAME` lists them."""
    network: str | None = None
    """Network: small, resnet18, wide-resnet, mlp for feature tables, or `package.module:factory` for one of your own.
    A pretrained encoder: timm:NAME, hf:NAME, torchvision:NAME. [default: from the preset]"""
    weights: str = "default"
    """Weights of a pretrained encoder: default, a file (safetensors or .pth), or none for random ones."""
    tune: Tune | None = None
    """What is trained with a pretrained encoder: head (photos pass the encoder once, in seconds a head learns from
    that) or all of it. [default: head]"""
    head: str | None = None
    """The network between a frozen encoder's features and the classifier. [default: from the preset]"""
    embed_weights: bool = False
    """Write the weights of the encoder into model.safetensors even if a library provides them."""
    preset: str = "quick"
    """Where unset values come from: quick (minutes on a CPU) or paper (the released settings)."""
    epochs: int | None = None
    """Passes over the training images. [default: from the preset]"""
    batch_size: int | None = None
    """Images per step. [default: from the preset]"""
    drop_last: bool | None = None
    """Drop the last, smaller batch of an epoch. [default: from the preset]"""
    optim: OptimConfig = field(default_factory=OptimConfig)
    select: Select = "last"
    """Which epoch's model to keep: the last, or the best on held-out candidate sets. True labels are not used."""
    stop_when: StopWhen = "never"
    """End the run when this criterion on held-out candidate sets has stopped rising. True labels are not used."""
    patience: int = 5
    """Epochs without a new best value after which --stop-when ends the run."""
    calibrate: bool = False
    """Fit a temperature on candidate sets (held-out ones if there are any), so that probabilities match accuracy."""
    precision: Precision = "fp32"
    """Number format of the network; bf16 and fp16 are faster on GPUs. A method's own state is always float32."""
    compile: bool = False
    """Compile the encoder before the first step (torch.compile): minutes at the start, for long runs on GPUs."""
    seed: int = 0
    """Seed of everything random: the same seed gives the same model, bit for bit."""
    threads: int | None = None
    """CPU threads. [default: all cores]"""
    device: str = "auto"
    """cpu, cuda, cuda:1 …; auto uses a GPU if there is one."""
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)

    def __post_init__(self) -> None:
        _require(0 <= self.seed <= MAX_SEED, "--seed", self.seed, f"between 0 and {MAX_SEED}")
        _require(0 <= self.data_test_share < 1, "--data.test-share", self.data_test_share, "a number in [0, 1)")
        if self.data_holdout is not None:
            _require(0 <= self.data_holdout < 1, "--data.holdout", self.data_holdout, "a number in [0, 1)")
        for option, rule, off in (("--select", self.select, "last"), ("--stop-when", self.stop_when, "never")):
            if rule != off and self.data_holdout == 0:
                raise UserError(f"{option} {rule} needs samples held out: give --data.holdout a share above 0.")
        if self.data_size is not None:
            _require(4 <= self.data_size <= 1024, "--data.size", self.data_size, "between 4 and 1024 pixels")
        _require(0 <= self.data_views <= MAX_VIEWS, "--data.views", self.data_views, f"between 0 and {MAX_VIEWS}")
        for name, least in (("limit", 2), ("epochs", 1), ("batch_size", 2), ("threads", 1), ("patience", 1)):
            value = getattr(self, name)
            if value is not None:
                _require(value >= least, f"--{name.replace('_', '-')}", value, f"{least} or more")
        if self.threads is not None:
            _require(self.threads <= MAX_THREADS, "--threads", self.threads, f"at most {MAX_THREADS}")
        for text in self.option:
            _require("=" in text, "--option", text, "of the form KEY=VALUE, for instance temperature=0.5")

    @property
    def given_options(self) -> dict[str, str]:
        """The method's settings as they were typed, by name; the last word on a name counts."""
        return dict(text.split("=", 1) for text in self.option)


@dataclass(frozen=True, kw_only=True)
class CandidateSettings(CandidatesConfig):
    """How the candidate sets of a run come about. A kind of `None` means that they come with the data."""

    seed: int = field()


@dataclass(frozen=True, kw_only=True)
class OptimSettings(OptimConfig):
    """The optimizer and the learning rate of a run."""

    optimizer: Optimizer = field()
    lr: float = field()
    momentum: float = field()
    nesterov: bool = field()
    weight_decay: float = field()
    decay: Decay = field()
    schedule: Schedule = field()
    clip_norm: float = 0.0
    encoder_lr: float = 0.0
    average: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Settings(RunConfig):
    """What is run: nothing is open any more.

    The settings of the method are in `options`, complete and of their own types; `option` holds the same as text.
    """

    data_holdout: float = field()
    candidates: CandidateSettings = field()
    options: Values = field()
    network: str = field()
    epochs: int = field()
    batch_size: int = field()
    drop_last: bool = field()
    optim: OptimSettings = field()


def to_dict(config: RunConfig) -> Values:
    """A config, or settings, as JSON values."""
    values = {name: value for name, value in dataclasses.asdict(config).items() if name != "options"}
    plain: Values = json.loads(json.dumps(values, default=str))  # tuples as lists, paths as texts
    return plain


def renamed(values: Values) -> Values:
    """Settings as JSON values, with the names of today for what earlier versions called otherwise."""
    sets = values.get("candidates")
    if not isinstance(sets, dict) or "weigh_votes" not in sets:
        return values
    weighed = sets["weigh_votes"] is True  # by their shares as they were
    kept = {name: value for name, value in sets.items() if name != "weigh_votes"}
    return values | {"candidates": kept | ({"weigh": "1"} if weighed else {})}


def from_dict(values: Values) -> RunConfig:
    """What `to_dict` gave, as a config; of settings, the same with nothing open."""
    values = renamed(values)
    sets = values.get("candidates", {})
    paths = {name: Path(sets[name]) for name in ("file", "groups") if sets.get(name) is not None}
    read = values | {
        "candidates": CandidatesConfig(**sets | paths),
        "optim": OptimConfig(**values.get("optim", {})),
        "checkpoint": CheckpointConfig(**values.get("checkpoint", {})),
        "option": tuple(values.get("option", ())),
    }
    named = {name: Path(values[name]) for name in ("data_dir", "classes_tree") if values.get(name) is not None}
    return RunConfig(**read | named)


def as_typed(value: object) -> str:
    """A value of a method's setting as one would type it: `--option NAME=VALUE`."""
    if isinstance(value, tuple | list):
        return ",".join(map(as_typed, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else str(value)


def is_strength(text: str) -> bool:
    """Whether a text says how strongly something counts: off, auto, or a number from 0 on."""
    try:
        return text in ("off", "auto") or 0 <= float(text) < math.inf
    except ValueError:
        return False


def _require(fits: bool, option: str, got: object, wanted: str) -> None:
    if not fits:
        raise UserError(f"{option} must be {wanted}; got {got}.")
