"""The requested configuration (`RunConfig`) and the complete settings of a run (`Settings`), as frozen dataclasses.

A field of a `RunConfig` may be `None`: then the preset sets it. `papi.setup.settings.complete` turns a `RunConfig` into
`Settings`, where every value is set. Values are checked when an object is created. The command line takes its options
and their help from these fields; `papi.cli.options` sets their names and groups.
"""

import dataclasses
import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from papi.errors import UserError

MAX_SEED = 2**32 - 1  # the released code cannot sample candidates with a larger seed
MAX_VIEWS = 64  # per kind and photo: each embedded view takes time and disk space
MAX_THREADS = 1024  # more than any machine has cores; tens of thousands crash the process

Select = Literal["last", "covering-rate", "approximated-accuracy"]
StopWhen = Literal["never", "covering-rate", "approximated-accuracy"]
Precision = Literal["fp32", "bf16", "fp16"]
RequestedPrecision = Literal["auto", "fp32", "bf16", "fp16"]
Tune = Literal["head", "all"]
Optimizer = Literal["sgd", "adam"]
Decay = Literal["all", "matrices"]
Schedule = Literal["cosine", "warmup-cosine", "constant", "multistep", "exponential"]
Values = dict[str, Any]
"""Settings by name, as in JSON or in a method's `Config`."""

_VOTES = "union, vaguest, dawid-skene, at-least-N or at-least-N-else-union"
STRENGTHS = "off, auto, or a number of 0 or more"
WITHOUT_RATE = ("uniform-sets", "instance-dependent")  # kinds of candidate sets that use no flip rate
FileFormat = Literal["table", "label-studio", "cvat", "coco", "via", "crowd"]
CandidateKind = Literal["uniform", "hierarchical", "class-dependent", "uniform-sets", "instance-dependent", "noisy"]


@dataclass(frozen=True)
class CandidatesConfig:
    """Where candidate sets come from: a file, the dataset itself, or synthesis from true labels."""

    flip_rate: float = 0.5
    """Probability that each wrong label becomes a candidate, in [0, 1)."""
    seed: int | None = None
    """Random seed of the candidate sets. [default: the run's seed]"""
    file: Path | None = None
    """File with your candidate labels: csv, jsonl, parquet or npz, or an export of an annotation tool (Label Studio
    JSON, CVAT XML, COCO JSON, VIA csv). [default: the candidates in the dataset; if there are none, synthetic ones]"""
    kind: CandidateKind | None = None
    """How to synthesize candidate sets from true labels. [default: uniform; hierarchical for cifar100-h]"""
    groups: Path | None = None
    """For hierarchical: a csv file with the columns class and group. [default: the superclasses of the dataset]"""
    matrix: str | None = None
    """For class-dependent: a built-in matrix (01, 02, 03, 04, pair), or a csv or npy file with a K x K matrix of flip
    probabilities."""
    noise_rate: float = 0.2
    """For noisy: probability that the true label is missing from the candidate set, in [0, 1]."""
    annotator: str = "small"
    """For instance-dependent: network that is trained on the true labels; the classes it confuses become candidates."""
    annotator_epochs: int = 12
    """For instance-dependent: number of epochs to train the annotator network."""
    rule: Literal["released", "paper"] = "released"
    """For instance-dependent: how the annotator's score s becomes a flip probability. released uses min(1, rate x K x
    s) as in the released code, paper uses s / max s as in the paper."""
    instance_rate: float = 0.4
    """For instance-dependent with the released rule: expected number of wrong candidates as a fraction of the number of
    classes."""
    votes: str = "union"
    """How to turn several annotators' votes into candidate sets. union keeps every label with a vote; at-least-N keeps
    labels with N votes or more; at-least-N-else-union falls back to the union for images without such a label; vaguest
    takes the answer of the annotator who named the most labels; dawid-skene keeps every label and weighs each annotator
    by their estimated reliability."""
    weigh: str | None = None
    """How strongly votes or weights act as a prior over the candidates: off, auto (estimated from the data), or the
    power to which their shares are raised. [default: auto for weights, off for votes]"""
    allow_missing_truth: bool = False
    """Accept rows whose true label is not among their candidates."""
    format: FileFormat | None = None
    """Format of your file. [default: detected from its content]"""
    column: str | None = None
    """Where to find the labels if there is more than one place: the column of a table, the control in Label Studio, or
    the attribute in CVAT or VIA. [default: candidates; in an export, the only one]"""
    separator: str | None = None
    """Character between the labels in one cell of your table. [default: |]"""
    threshold: float = 0.0
    """For labels with weights: minimum share of an image's total weight for a label to become a candidate. The most
    likely label is always a candidate."""
    empty: Literal["refuse", "unlabelled", "label"] = "refuse"
    """How to treat an empty cell, `?` or `*`: refuse reports an error, unlabelled makes every class a candidate, label
    uses the `label` column as the only candidate."""

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
            _require(
                fits,
                "--candidates.separator",
                repr(self.separator),
                "a character that is not a letter or digit, such as ;",
            )
        _require(0 <= self.threshold <= 1, "--candidates.threshold", self.threshold, "a number in [0, 1]")
        _require(self.weigh is None or is_strength(self.weigh), "--candidates.weigh", self.weigh, STRENGTHS)
        if self.seed is not None:
            _require(0 <= self.seed <= MAX_SEED, "--candidates.seed", self.seed, f"between 0 and {MAX_SEED}")
        if self.file is not None and self.kind is not None:
            raise UserError(
                "--candidates.file and --candidates.kind cannot be used together: candidate sets are either read or "
                "synthesized."
            )
        for name, kind in (("matrix", "class-dependent"), ("groups", "hierarchical")):
            if getattr(self, name) is not None and self.kind != kind:
                raise UserError(f"--candidates.{name} requires --candidates.kind {kind}; use both options or neither.")

    @property
    def weighs(self) -> bool:
        """Whether votes or weights are requested as a prior over the candidates."""
        return self.weigh not in (None, "off")

    @property
    def rate(self) -> float | None:
        """The flip rate, or None for kinds of candidate sets without one."""
        return None if self.kind in WITHOUT_RATE else self.flip_rate


@dataclass(frozen=True)
class OptimConfig:
    """The optimizer and the learning-rate schedule."""

    optimizer: Optimizer | None = None
    """Optimizer. [default: from the preset]"""
    lr: float | None = None
    """Peak learning rate. [default: from the preset]"""
    momentum: float | None = None
    """Momentum of SGD. [default: from the preset]"""
    nesterov: bool | None = None
    """Use Nesterov momentum. [default: from the preset]"""
    weight_decay: float | None = None
    """Weight decay. [default: from the preset]"""
    decay: Decay | None = None
    """Apply weight decay to all parameters, or only to weight matrices (not to biases and batch norm).
    [default: from the preset]"""
    schedule: Schedule | None = None
    """Learning-rate schedule. [default: from the preset]"""
    clip_norm: float | None = None
    """Clip the gradient to this norm; 0 turns clipping off. [default: from the preset]"""
    average: float | None = None
    """Evaluate and save a moving average of the weights over about this fraction of all steps; 0 uses the last weights.
    [default: 0]"""
    encoder_lr: float | None = None
    """Separate peak learning rate for the encoder; 0 uses the same rate as for the other layers.
    [default: 0; with --tune all, from the preset]"""

    def __post_init__(self) -> None:
        for name in ("lr", "weight_decay", "clip_norm", "encoder_lr"):
            value = getattr(self, name)
            if value is not None:
                _require(
                    0 <= value < math.inf, f"--optim.{name.replace('_', '-')}", value, "a finite number of 0 or more"
                )
        if self.momentum is not None:
            _require(0 <= self.momentum < 1, "--optim.momentum", self.momentum, "a number in [0, 1)")
        if self.average is not None:
            _require(0 <= self.average <= 1, "--optim.average", self.average, "a number in [0, 1]")


@dataclass(frozen=True)
class CheckpointConfig:
    """How often to save a checkpoint. Every run also saves one at the end of each epoch."""

    every: str = "60s"
    """Interval between checkpoints within an epoch, in steps (200) or seconds (60s)."""

    def __post_init__(self) -> None:
        fits = re.fullmatch("0*[1-9][0-9]{0,8}s?", self.every) is not None
        _require(fits, "--checkpoint.every", self.every, "a number of steps such as 200 or of seconds such as 60s")

    @property
    def seconds(self) -> float:
        """Seconds between two checkpoints; infinite if the interval is in steps."""
        return float(self.every[:-1]) if self.every.endswith("s") else float("inf")

    @property
    def steps(self) -> float:
        """Steps between two checkpoints; infinite if the interval is in seconds."""
        return float("inf") if self.every.endswith("s") else float(self.every)


@dataclass(frozen=True)
class RunConfig:
    """The requested configuration of a run. `None` means that the preset or the data set the value."""

    data: str = "fashion-mini"
    """Name of a known dataset (see `papi datasets`), or your own data: a folder of images, a file (.npz, .csv, .mat
    …), or hf:NAME:split for a Hugging Face dataset."""
    data_dir: Path = Path("data")
    """Folder where known datasets are stored."""
    data_size: int | None = None
    """Resize your images to this height and width in pixels. [default: the input size of the pretrained encoder;
    without one, the images' own size if it is small and the same for all, otherwise 64]"""
    data_image_column: str | None = None
    """Name of the image column in parquet files and Hugging Face datasets. [default: image, or the first column with
    images]"""
    data_views: int = 0
    """With a frozen encoder: number of weak and of strong augmented views of each photo to embed. With 0, only the
    original photo is embedded, and methods that compare views augment its features instead."""
    data_split: Literal["train", "test"] = "train"
    """Published split of a known dataset to train on."""
    data_test_share: float = 0.2
    """Fraction of the data to hold out as a test set if there are true labels but no test images, in [0, 1)."""
    data_holdout: float | None = None
    """Fraction of the training samples to hold out as a validation set, which needs only candidate labels.
    [default: 0; 0.1 with --select or --stop-when]"""
    limit: int | None = None
    """Train on only this many images, balanced over the classes. [default: all]"""
    classes_tree: Path | None = None
    """Class hierarchy: a csv file with the columns label and parent, or nested json. A label of an inner node stands
    for all classes below it."""
    skip_bad: bool = False
    """Skip and list rows and images with problems instead of stopping at the first one."""
    candidates: CandidatesConfig = field(default_factory=CandidatesConfig)
    method: str = "papi"
    """Name of a method (see `papi methods`), or `package.module:Class` for your own."""
    option: tuple[str, ...] = ()
    """Setting of the method as KEY=VALUE; can be repeated. `papi methods NAME` lists the settings."""
    network: str | None = None
    """Network: small, resnet18, wide-resnet, mlp (for feature tables), a pretrained encoder (timm:NAME, hf:NAME or
    torchvision:NAME), or `package.module:factory` for your own. [default: from the preset]"""
    weights: str = "default"
    """Weights of the pretrained encoder: default, a file (safetensors or .pth), or none for random initialization."""
    tune: Tune | None = None
    """What to train with a pretrained encoder. head embeds every photo once with the frozen encoder and trains only a
    head, which takes seconds; all fine-tunes the whole network. [default: head]"""
    head: str | None = None
    """Network between the frozen encoder's embeddings and the classifier. [default: from the preset]"""
    embed_weights: bool = False
    """Store the encoder's weights in model.safetensors even if a library provides them."""
    preset: str = "quick"
    """Source of the default settings: quick (minutes on a CPU) or paper (the settings of the released code)."""
    epochs: int | None = None
    """Number of training epochs. [default: from the preset]"""
    batch_size: int | None = None
    """Number of images per step. [default: from the preset]"""
    drop_last: bool | None = None
    """Drop the last batch of an epoch if it is smaller than the others. [default: from the preset]"""
    optim: OptimConfig = field(default_factory=OptimConfig)
    select: Select = "last"
    """Which epoch's model to keep: the last one, or the best one by this criterion on the candidate labels of the
    validation set. True labels are not used."""
    stop_when: StopWhen = "never"
    """Stop early when this criterion on the candidate labels of the validation set stops improving. True labels are not
    used."""
    patience: int = 5
    """Number of epochs without improvement before --stop-when ends the run."""
    calibrate: bool = False
    """Fit a temperature on candidate labels (those of the validation set if there is one), so that probabilities match
    accuracy."""
    precision: RequestedPrecision = "auto"
    """Numerical precision of the encoder; fp16 needs a GPU. auto uses bf16 if the processor or GPU has instructions for
    it and the method and network are as accurate as in fp32, and fp32 otherwise. The classifier and the method's own
    state are always float32."""
    compile: bool = False
    """Compile the encoder with torch.compile before the first step. This takes minutes and pays off in long runs on
    GPUs."""
    seed: int = 0
    """Random seed: the same seed gives the same model, bit for bit."""
    threads: int | None = None
    """Number of CPU threads. [default: all cores; 1 to train on features with a network of the package]"""
    device: str = "auto"
    """Device to train on: cpu, cuda, cuda:1 …; auto uses a GPU if there is one."""
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)

    def __post_init__(self) -> None:
        _require(0 <= self.seed <= MAX_SEED, "--seed", self.seed, f"between 0 and {MAX_SEED}")
        _require(0 <= self.data_test_share < 1, "--data.test-share", self.data_test_share, "a number in [0, 1)")
        if self.data_holdout is not None:
            _require(0 <= self.data_holdout < 1, "--data.holdout", self.data_holdout, "a number in [0, 1)")
        for option, rule, off in (("--select", self.select, "last"), ("--stop-when", self.stop_when, "never")):
            if rule != off and self.data_holdout == 0:
                raise UserError(f"{option} {rule} needs a validation set: set --data.holdout to a fraction above 0.")
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
        """The method's settings as text, by name; if a name is repeated, the last value counts."""
        return dict(text.split("=", 1) for text in self.option)


@dataclass(frozen=True, kw_only=True)
class CandidateSettings(CandidatesConfig):
    """Where the candidate sets of a run come from. If `kind` is `None`, they are part of the data."""

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
    """The complete settings of a run: every value is set.

    `options` holds all settings of the method with their types; `option` holds the same settings as text.
    """

    data_holdout: float = field()
    candidates: CandidateSettings = field()
    options: Values = field()
    network: str = field()
    epochs: int = field()
    batch_size: int = field()
    drop_last: bool = field()
    optim: OptimSettings = field()
    precision: Precision = field()


def to_dict(config: RunConfig) -> Values:
    """Convert a config or settings to JSON values."""
    values = {name: value for name, value in dataclasses.asdict(config).items() if name != "options"}
    plain: Values = json.loads(json.dumps(values, default=str))  # tuples become lists, paths become strings
    return plain


def renamed(values: Values) -> Values:
    """Replace names that earlier versions used in the JSON values of settings by the current names."""
    sets = values.get("candidates")
    if not isinstance(sets, dict) or "weigh_votes" not in sets:
        return values
    weighed = sets["weigh_votes"] is True  # with unchanged shares: a power of 1
    kept = {name: value for name, value in sets.items() if name != "weigh_votes"}
    return values | {"candidates": kept | ({"weigh": "1"} if weighed else {})}


def from_dict(values: Values) -> RunConfig:
    """Rebuild a config from the values of `to_dict`; from complete settings, a config without `None`.

    Values without a precision are those of an fp32 run: that was the default when the first ones were stored.
    """
    values = renamed(values)
    sets = values.get("candidates", {})
    paths = {name: Path(sets[name]) for name in ("file", "groups") if sets.get(name) is not None}
    read: Values = {"precision": "fp32", **values} | {
        "candidates": CandidatesConfig(**sets | paths),
        "optim": OptimConfig(**values.get("optim", {})),
        "checkpoint": CheckpointConfig(**values.get("checkpoint", {})),
        "option": tuple(values.get("option", ())),
    }
    named = {name: Path(values[name]) for name in ("data_dir", "classes_tree") if values.get(name) is not None}
    return RunConfig(**read | named)


def as_typed(value: object) -> str:
    """Format the value of a method's setting as typed in `--option NAME=VALUE`."""
    if isinstance(value, tuple | list):
        return ",".join(map(as_typed, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else str(value)


def is_strength(text: str) -> bool:
    """Return whether a text is a valid strength: off, auto, or a number of 0 or more."""
    try:
        return text in ("off", "auto") or 0 <= float(text) < math.inf
    except ValueError:
        return False


def _require(fits: bool, option: str, got: object, wanted: str) -> None:
    if not fits:
        raise UserError(f"{option} must be {wanted}; got {got}.")
