"""Values for what a person leaves open.

quick   papi train                                       20 epochs of two passes, about two minutes on two cores
paper   papi train --data cifar10 --preset paper         the released settings: 500 epochs, made for a GPU
"""

from dataclasses import fields, replace
from typing import Any, Literal, NamedTuple

from papi.config import OptimConfig, RunConfig
from papi.errors import unknown

HOLDOUT = 0.1  # share of the training samples that choosing an epoch takes
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
    """Short runs on a CPU: the same network and optimizer for every method, so that comparisons are fair.

    They take 12 epochs. Cheaper forms of PaPi take as many as 12 epochs in the form of the paper cost.
    """
    if config.network == "mlp":
        return _quick_features(config)
    epochs = config.epochs or 12
    if config.method == "papi" and config.epochs is None:
        epochs = _EPOCHS_OF_EQUAL_COST.get(config.options.get("passes", _QUICK_FORM), 12)
    optim = OptimConfig(
        optimizer="sgd",
        lr=0.05,
        momentum=0.9,
        nesterov=True,
        weight_decay=5e-4,
        decay="matrices",
        schedule="warmup-cosine",
    )
    options = _QUICK_OPTIONS[config.method](epochs, config.options) if config.method in _QUICK_OPTIONS else {}
    return Preset("small", epochs, 64, False, optim, options)


def _quick_features(config: RunConfig) -> Preset:
    """For feature tables, chosen on held-out parts of training data (docs/results.md): the same for every method.

    papi train --data lost.mat                           200 epochs, seconds on one core
    """
    epochs = config.epochs or 200
    optim = OptimConfig(
        optimizer="adam",
        lr=3e-3,
        momentum=0.9,
        nesterov=False,
        weight_decay=1e-5,
        decay="matrices",
        schedule="multistep",  # the last epoch counts: a high rate to the end makes its result a matter of luck
    )
    options = _QUICK_OPTIONS[config.method](epochs, config.options) if config.method in _QUICK_OPTIONS else {}
    return Preset("mlp", epochs, 128, False, optim, options)


_QUICK_FORM = "two"  # the best on average at this price: docs/results.md
_EPOCHS_OF_EQUAL_COST = {"paper": 12, "two": 20, "one": 40}  # a step costs 10, 6 or 3 forward passes


def _quick_papi(epochs: int, given: dict[str, str]) -> dict[str, str]:
    # Each image's confidence is updated once an epoch: a momentum meant for 500 epochs would hardly move it in 12. But
    # without any the first guesses would count for too much.
    start, end = (momentum ** (PAPER_EPOCHS / epochs) for momentum in (0.95, 0.8))
    form = given.get("passes", _QUICK_FORM)
    return {
        "passes": form,
        "temperature": "0.3",
        "mixup_alpha": "5",
        "confidence_momentum": f"{max(0.2, start):.6g},{end:.6g}",
        "prototype_momentum": "0.9,0.5",
        "alignment_weight": "1" if form == "one" else "0.5",
        "ramp_epochs": f"{epochs / 12:.6g}",
        "schedule": "step",
    }


def _quick_dpll(epochs: int, _: dict[str, str]) -> dict[str, str]:
    return {"ramp_epochs": f"{epochs / 2:.6g}"}  # 100 of 200 epochs in the release


def _quick_pico(epochs: int, _: dict[str, str]) -> dict[str, str]:
    # One-hot guidance without memory locks early mistakes in, and in a few thousand steps a key network that follows
    # as slowly as in 800 epochs, and a queue that spans most of the data, leave the contrastive loss near chance.
    start, end = (momentum ** (800 / epochs) for momentum in (0.95, 0.8))
    return {
        "warmup_epochs": f"{epochs / 4:.6g}",
        "queue": "1024",
        "encoder_momentum": "0.99",
        "confidence_momentum": f"{max(0.9, start):.6g},{max(0.5, end):.6g}",
    }


def _quick_valen(epochs: int, _: dict[str, str]) -> dict[str, str]:
    return {
        "warmup_epochs": str(max(1, round(epochs / 50))),  # 10 of 500 epochs in the release
        # The second network and the decoder share no gradient with the classifier: this only slows them down by ten.
        # At the learning rate that all methods share here, the second network would answer the same to every image.
        "reconstruction_weight": "0.1",
        "prior_weight": "0.01",
        "distribution_weight": "1",
    }


_QUICK_OPTIONS = {"papi": _quick_papi, "pico": _quick_pico, "dpll": _quick_dpll, "valen": _quick_valen}

_NO_OPTIONS: dict[str, str] = {}


class _Row(NamedTuple):
    """What a release sets for one dataset, at one flip rate where it tells rates apart."""

    lr: float
    weight_decay: float
    options: dict[str, str] = _NO_OPTIONS
    flip_rate: float = 0.0
    batch_size: int = 256
    epochs: int | None = None  # where they are not those of the release's other datasets


_NO_ROWS: dict[str, _Row] = {}


class _Release(NamedTuple):
    """How a method's authors train it: what is the same on all datasets, and a list of rows for each."""

    epochs: int
    schedule: Literal["cosine", "constant", "multistep", "exponential"]
    drop_last: bool
    rows: dict[str, list[_Row]]  # those of CIFAR-10 also stand for data a release does not know
    optimizer: Literal["sgd", "adam"] = "sgd"
    options: dict[str, str] = _NO_OPTIONS
    instance_dependent: dict[str, _Row] = _NO_ROWS  # where they differ for instance-dependent candidate sets


def _papi(
    flip_rate: float, temperature: float, alpha: float, lr: float, weight_decay: float = 1e-3, batch_size: int = 256
) -> _Row:
    """One command of PaPi's README."""
    options = {"temperature": str(temperature), "mixup_alpha": str(alpha)}
    return _Row(lr, weight_decay, options, flip_rate, batch_size)


_PAPI_ROWS = {
    "fashion-mnist": [
        _papi(0.1, 1.0, 8.0, 0.05),
        _papi(0.3, 1.0, 0.05, 0.05, weight_decay=1e-4),
        _papi(0.5, 1.0, 5.0, 0.05),
        _papi(0.7, 1.0, 5.0, 0.05),
    ],
    "svhn": [_papi(0.1, 0.3, 0.05, 0.05)] + [_papi(q, 0.3, 0.05, 0.07) for q in (0.3, 0.5, 0.7)],
    "cifar10": [_papi(q, 0.3, 8.0, 0.05) for q in (0.1, 0.3, 0.5, 0.7)],
    "cifar100": [_papi(q, 0.3, 8.0, 0.1) for q in (0.01, 0.05, 0.1, 0.2)],
    "mini-imagenet": [_papi(q, 0.1, 5.0, 0.03, 1e-4, 64) for q in (0.01, 0.05, 0.1, 0.2)],
}
_PAPI_INSTANCE_DEPENDENT = {"cifar100": _papi(0.0, 1.0, 5.0, 0.1)._replace(epochs=200)}
_PICO_MANY_CLASSES = [  # PaPi's authors gave PiCO a long warm-up where it has many classes and many candidates
    _Row(0.01, 1e-3, {"warmup_epochs": "1" if q < 0.1 else "100"}, flip_rate=q) for q in (0.01, 0.05, 0.1, 0.2)
]
_PICO_ROWS = {
    "cifar10": [_Row(0.01, 1e-3, {"warmup_epochs": "1"})],
    "cifar100": _PICO_MANY_CLASSES,
    "mini-imagenet": _PICO_MANY_CLASSES,
}
_DPLL_ROWS = {"cifar10": [_Row(0.1, 1e-4, batch_size=64)]}
_VALEN_ROWS = {
    "fashion-mnist": [_Row(0.01, 1e-4, {"distribution_weight": "5"})],
    "cifar10": [_Row(0.05, 1e-3)],
    "cifar100": [_Row(0.01, 1e-3)],
}
_PRODEN_ROWS = {"fashion-mnist": [_Row(0.01, 1e-5)], "cifar10": [_Row(0.05, 1e-3)]}
_LWS_ROWS = {
    "fashion-mnist": [
        _Row(0.05, 1e-3, {"beta": "2"}, flip_rate=0.1),
        _Row(0.1, 1e-3, {"beta": "1"}, flip_rate=0.3),
        _Row(0.1, 1e-3, {"beta": "1"}, flip_rate=0.5),
    ],
    "cifar10": [_Row(0.05, 1e-3, {"beta": "1"})],
}
_LWS_CROSS_ENTROPY_ROWS = {
    "cifar10": [_Row(0.01, 0.01, {"beta": beta}, flip_rate=q) for q, beta in ((0.1, "1"), (0.3, "2"), (0.5, "1"))],
}
_RC_CC_ROWS = {"fashion-mnist": [_Row(1e-3, 1e-5)], "cifar10": [_Row(1e-3, 1e-3)]}

_PLAIN = {"view": "plain"}  # releases without augmentation
_RELEASES = {
    "papi": _Release(PAPER_EPOCHS, "cosine", True, _PAPI_ROWS, instance_dependent=_PAPI_INSTANCE_DEPENDENT),
    "pico": _Release(800, "cosine", True, _PICO_ROWS),
    "dpll": _Release(200, "multistep", False, _DPLL_ROWS),
    "valen": _Release(500, "constant", False, _VALEN_ROWS, options=_PLAIN),
    "proden": _Release(500, "constant", True, _PRODEN_ROWS, options=_PLAIN),
    "lws": _Release(250, "exponential", False, _LWS_ROWS, options=_PLAIN),
    "lws with cross-entropy": _Release(250, "exponential", False, _LWS_CROSS_ENTROPY_ROWS, options=_PLAIN),
    "rc": _Release(250, "constant", False, _RC_CC_ROWS, "adam", _PLAIN),
    "cc": _Release(250, "constant", False, _RC_CC_ROWS, "adam", _PLAIN),
}
_SAME_AS = {"fashion-mini": "fashion-mnist", "cifar100-h": "cifar100"}


def paper(config: RunConfig) -> Preset:
    """The settings of the method's release for the dataset and the nearest flip rate.

    The upper bound and methods from outside the package are trained like PaPi, with their own options.
    """
    name = config.method
    if name == "lws" and config.options.get("loss") == "cross-entropy":
        name = "lws with cross-entropy"
    release = _RELEASES.get(name, _RELEASES["papi"])
    data = _SAME_AS.get(config.data, config.data)
    rows = release.rows.get(data, release.rows["cifar10"])
    row = min(rows, key=lambda r: abs(r.flip_rate - config.candidates.flip_rate))
    if config.candidates.kind == "instance-dependent":
        row = release.instance_dependent.get(data, row)
    optim = OptimConfig(
        optimizer=release.optimizer,
        lr=row.lr,
        momentum=0.9,
        nesterov=False,
        weight_decay=row.weight_decay,
        decay="all",
        schedule=release.schedule,
    )
    options = {**release.options, **row.options} if name in _RELEASES else {}
    return Preset("resnet18", row.epochs or release.epochs, row.batch_size, release.drop_last, optim, options)


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
        data_holdout=_holdout(config),
        option=tuple(f"{name}={value}" for name, value in sorted(options.items())),
        candidates=replace(
            config.candidates, seed=config.seed if config.candidates.seed is None else config.candidates.seed
        ),
    )


def _holdout(config: RunConfig) -> float:
    if config.data_holdout is not None:
        return config.data_holdout
    return 0.0 if config.select == "last" else HOLDOUT


def _fill(given: OptimConfig, preset: OptimConfig) -> OptimConfig:
    values: dict[str, Any] = {f.name: getattr(given, f.name) for f in fields(given)}
    return replace(preset, **{name: value for name, value in values.items() if value is not None})
