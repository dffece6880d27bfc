"""Values for what a person leaves open.

quick   papi train                                       12 epochs, about two minutes on two cores
paper   papi train --data cifar10 --preset paper         the released settings: 500 epochs, made for a GPU
"""

from dataclasses import fields, replace
from typing import Any, NamedTuple

from papi.config import OptimConfig, RunConfig
from papi.errors import unknown

PAPER_EPOCHS = 500  # the confidence momenta of the paper were chosen for runs of this length


class Preset(NamedTuple):
    """Values of a preset for one run."""

    network: str
    epochs: int
    batch_size: int
    drop_last: bool
    optim: OptimConfig
    options: dict[str, str]


def quick(config: RunConfig) -> Preset:
    """Short runs on a CPU. The same network, optimizer and length for every method, so that comparisons are fair."""
    epochs = config.epochs or 12
    optim = OptimConfig(
        optimizer="sgd",
        lr=0.1,
        momentum=0.9,
        nesterov=True,
        weight_decay=5e-4,
        decay="matrices",
        schedule="warmup-cosine",
    )
    options = _QUICK_OPTIONS[config.method](epochs) if config.method in _QUICK_OPTIONS else {}
    return Preset("small", epochs, 64, False, optim, options)


def _quick_papi(epochs: int) -> dict[str, str]:
    # Each image's confidence is updated once an epoch: a momentum meant for 500 epochs would hardly move it in 12.
    start, end = (momentum ** (PAPER_EPOCHS / epochs) for momentum in (0.95, 0.8))
    return {
        "temperature": "0.3",
        "mixup_alpha": "5",
        "confidence_momentum": f"{start:.6g},{end:.6g}",
        "prototype_momentum": "0.9,0.5",
        "ramp_epochs": f"{epochs / 12:.6g}",
        "schedule": "step",
    }


_QUICK_OPTIONS = {"papi": _quick_papi}


class _Released(NamedTuple):
    """One command of the release's README."""

    flip_rate: float
    temperature: float
    mixup_alpha: float
    lr: float
    weight_decay: float = 1e-3
    batch_size: int = 256


_PAPI_RELEASED = {
    "fashion-mnist": [
        _Released(0.1, 1.0, 8.0, 0.05),
        _Released(0.3, 1.0, 0.05, 0.05, weight_decay=1e-4),
        _Released(0.5, 1.0, 5.0, 0.05),
        _Released(0.7, 1.0, 5.0, 0.05),
    ],
    "svhn": [_Released(0.1, 0.3, 0.05, 0.05)] + [_Released(q, 0.3, 0.05, 0.07) for q in (0.3, 0.5, 0.7)],
    "cifar10": [_Released(q, 0.3, 8.0, 0.05) for q in (0.1, 0.3, 0.5, 0.7)],
    "cifar100": [_Released(q, 0.3, 8.0, 0.1) for q in (0.01, 0.05, 0.1, 0.2)],
    "mini-imagenet": [_Released(q, 0.1, 5.0, 0.03, 1e-4, 64) for q in (0.01, 0.05, 0.1, 0.2)],
}
_SAME_AS = {"fashion-mini": "fashion-mnist"}


def paper(config: RunConfig) -> Preset:
    """The released settings for the dataset and the nearest flip rate; those of CIFAR-10 for data it does not know."""
    rows = _PAPI_RELEASED.get(_SAME_AS.get(config.data, config.data), _PAPI_RELEASED["cifar10"])
    row = min(rows, key=lambda r: abs(r.flip_rate - config.candidates.flip_rate))
    optim = OptimConfig(
        optimizer="sgd",
        lr=row.lr,
        momentum=0.9,
        nesterov=False,
        weight_decay=row.weight_decay,
        decay="all",
        schedule="cosine",
    )
    options = {"temperature": str(row.temperature), "mixup_alpha": str(row.mixup_alpha)}
    return Preset("resnet18", PAPER_EPOCHS, row.batch_size, True, optim, options)


PRESETS = {"quick": quick, "paper": paper}


def complete(config: RunConfig) -> RunConfig:
    """The config with every open value filled in; what the person set stays."""
    if config.preset not in PRESETS:
        raise unknown("preset", config.preset, PRESETS)
    preset = PRESETS[config.preset](config)
    options = {**preset.options, **config.options}
    return replace(
        config,
        network=config.network or preset.network,
        epochs=config.epochs or preset.epochs,
        batch_size=config.batch_size or preset.batch_size,
        drop_last=preset.drop_last if config.drop_last is None else config.drop_last,
        optim=_fill(config.optim, preset.optim),
        option=tuple(f"{name}={value}" for name, value in sorted(options.items())),
        candidates=replace(
            config.candidates, seed=config.seed if config.candidates.seed is None else config.candidates.seed
        ),
    )


def _fill(given: OptimConfig, preset: OptimConfig) -> OptimConfig:
    values: dict[str, Any] = {f.name: getattr(given, f.name) for f in fields(given)}
    return replace(preset, **{name: value for name, value in values.items() if value is not None})
