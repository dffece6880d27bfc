"""What a run is: frozen dataclasses that the command line is made from, checked when they are built.

A field that is `None` is left to the preset (`papi.presets.complete` fills it in). `Parameter` only names and groups
options on the command line.
"""

import dataclasses
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from cyclopts import Group, Parameter

from papi.errors import UserError, unknown

_DATA = Parameter(group=Group("Data and candidate labels", sort_key=1))
_METHOD = Parameter(group=Group("Method and network", sort_key=2))
_TRAINING = Parameter(group=Group("Training", sort_key=3))
_RUN = Parameter(group=Group("This run", sort_key=4))

MAX_SEED = 2**32 - 1  # the released code's candidate draw takes no larger seed

T = TypeVar("T")


@dataclass(frozen=True)
class CandidatesConfig:
    """How candidate sets come about."""

    flip_rate: Annotated[float, _DATA] = 0.5
    """Chance of each wrong label to be among the candidates, in [0, 1)."""
    seed: Annotated[int | None, _DATA] = None
    """Seed of the candidate sets. [default: the run's seed]"""

    def __post_init__(self) -> None:
        _require(0 <= self.flip_rate < 1, "--candidates.flip-rate", self.flip_rate, "a number in [0, 1)")
        if self.seed is not None:
            _require(0 <= self.seed <= MAX_SEED, "--candidates.seed", self.seed, f"between 0 and {MAX_SEED}")


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
                _require(value >= 0, f"--optim.{name.replace('_', '-')}", value, "zero or more")
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
    """A dataset by name (see `papi datasets`), or an .npz file of your own."""
    data_dir: Annotated[Path, _DATA] = Path("data")
    """Folder in which datasets lie."""
    limit: Annotated[int | None, _DATA] = None
    """Train on so many images only, the same number of each class. [default: all]"""
    candidates: CandidatesConfig = field(default_factory=CandidatesConfig)
    method: Annotated[str, _METHOD] = "papi"
    """A method by name (see `papi methods`), or `package.module:Class` for one of your own."""
    option: Annotated[tuple[str, ...], _METHOD, Parameter(negative="", show_default=False)] = ()
    """A setting of the method as KEY=VALUE, repeatable; `papi methods NAME` lists them."""
    network: Annotated[str | None, _METHOD] = None
    """Network: small or resnet18. [default: small; resnet18 with the preset paper]"""
    preset: Annotated[str, _METHOD] = "quick"
    """Where unset values come from: quick (minutes on a CPU) or paper (the released settings)."""
    epochs: Annotated[int | None, _TRAINING] = None
    """Passes over the training images. [default: from the preset]"""
    batch_size: Annotated[int | None, _TRAINING] = None
    """Images in a step. [default: from the preset]"""
    drop_last: Annotated[bool | None, _TRAINING] = None
    """Leave out the smaller batch at the end of an epoch. [default: from the preset]"""
    optim: OptimConfig = field(default_factory=OptimConfig)
    seed: Annotated[int, _TRAINING] = 0
    """Seed of everything random: the same seed gives the same model, bit for bit."""
    threads: Annotated[int | None, _RUN] = None
    """CPU threads. [default: all cores]"""
    device: Annotated[str, _RUN] = "auto"
    """cpu, cuda, cuda:1 …; auto takes a GPU if there is one."""
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)

    def __post_init__(self) -> None:
        _require(0 <= self.seed <= MAX_SEED, "--seed", self.seed, f"between 0 and {MAX_SEED}")
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


def to_dict(config: Any) -> dict[str, Any]:
    """A config as JSON values."""
    return {
        key: str(value) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value
        for key, value in dataclasses.asdict(config).items()
    }


def from_dict(values: dict[str, Any]) -> RunConfig:
    """The inverse of `to_dict`."""
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


def parse_options(kind: type[T], options: dict[str, str]) -> T:
    """A method's `Config` from texts: `{"mixup": "off", "prototype_momentum": "0.9,0.5"}`."""
    hints = typing.get_type_hints(kind)
    fields = [f.name for f in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for name in options:
        if name not in fields:
            raise (
                unknown("option", name, fields) if fields else UserError(f"there is no option {name!r}, nor any other.")
            )
    return kind(**{name: _parse(name, text, hints[name]) for name, text in options.items()})


def _parse(name: str, text: str, hint: Any) -> Any:
    """One value as its type says; a UserError that names the choices if it does not fit."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    try:
        if origin is Literal:
            if text not in arguments:
                raise ValueError
            return text
        if origin in (typing.Union, types.UnionType):  # the only union here is "or none"
            return None if text == "none" else _parse(name, text, next(a for a in arguments if a is not type(None)))
        if origin is tuple:
            parts = text.split(",")
            return tuple(_parse(name, part, kind) for part, kind in zip(parts, arguments, strict=True))
        if hint is bool:
            return {"on": True, "true": True, "off": False, "false": False}[text.lower()]
        return hint(text)
    except (ValueError, KeyError) as error:
        wanted = (
            f"one of {', '.join(arguments)}" if origin is Literal
            else "on or off" if hint is bool
            else f"{len(arguments)} numbers with commas between" if origin is tuple
            else f"a value of type {getattr(hint, '__name__', hint)}"
        )  # fmt: skip
        raise UserError(f"--option {name}={text} does not fit: give {wanted}.") from error


def _require(fits: bool, option: str, got: Any, wanted: str) -> None:
    if not fits:
        raise UserError(f"{option} must be {wanted}; got {got}.")
