"""Completes a `RunConfig` to `Settings` with the values of a preset.

quick   papi train                                       40 epochs of one pass, about two minutes on two cores
paper   papi train --data cifar10 --preset paper         the released settings: 500 epochs, for a GPU

Settings that are specific to a method are in the file of the method. A method without released settings, such as one
from outside the package, is trained with the released optimizer settings of PaPi.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace

from papi.config import (
    CandidatesConfig,
    CandidateSettings,
    OptimConfig,
    OptimSettings,
    Precision,
    RunConfig,
    Settings,
    Values,
    as_typed,
)
from papi.data.dataset import Dataset
from papi.data.known.sources import SOURCES
from papi.errors import UserError, unknown
from papi.methods import METHODS, find_method
from papi.methods.config import MethodConfig, Release
from papi.methods.options import parse_options

HOLDOUT = 0.1  # fraction of the training samples that --select and --stop-when hold out
FEATURE_EPOCHS = 200
EMBEDDING_EPOCHS = 50
TUNED_EPOCHS = 3


@dataclass(frozen=True)
class Preset:
    """Default values for one run."""

    network: str
    epochs: int
    batch_size: int
    drop_last: bool
    optim: OptimSettings
    options: Values  # of the method, if they differ from its defaults


def complete(config: RunConfig, *, features: bool, sets_given: bool) -> Settings:
    """Return the complete settings of a run. Values that the config sets are kept.

    Parameters
    ----------
    config
        The requested configuration.
    features
        Whether the samples are rows of a feature table.
    sets_given
        Whether the data include candidate sets.
    """
    if config.preset not in PRESETS:
        raise unknown("preset", config.preset, PRESETS)
    kind = find_method(config.method).Config
    given = parse_options(kind, config.given_options)
    candidates = _candidates(config, sets_given)
    preset = PRESETS[config.preset](replace(config, candidates=candidates), kind, given, features)
    options = _typed(kind(**preset.options | given))
    own = {field.name: getattr(config, field.name) for field in fields(RunConfig)}
    network = config.network or preset.network
    head = (config.head or preset.network) if config.tune == "head" else None
    return Settings(
        **own
        | {
            "candidates": candidates,
            "option": tuple(f"{name}={as_typed(value)}" for name, value in sorted(options.items())),
            "options": options,
            "network": network,
            "head": head,
            "epochs": config.epochs or preset.epochs,
            "batch_size": config.batch_size or preset.batch_size,
            "drop_last": preset.drop_last if config.drop_last is None else config.drop_last,
            "optim": _filled(config.optim, preset.optim),
            "data_holdout": _holdout(config),
            "precision": _precision(config, head or network),
        }
    )


def settings_for(config: RunConfig, dataset: Dataset) -> Settings:
    """Return the complete settings of a config for a dataset."""
    return complete(config, features=dataset.kind == "features", sets_given=dataset.candidates is not None)


def quick(config: RunConfig, kind: type[MethodConfig], given: Values, features: bool) -> Preset:
    """Short runs on a CPU: the same network and optimizer for every method, so that comparisons are fair."""
    if config.tune == "head":
        return _quick_embeddings(config, kind, given)
    if config.tune == "all":
        return _quick_tuned(config, kind, given)
    if features:
        return _quick_features(config, kind, given)
    epochs = config.epochs or kind.quick_epochs(given)
    optim = OptimSettings(
        optimizer="sgd",
        lr=0.05,
        momentum=0.9,
        nesterov=True,
        weight_decay=5e-4,
        decay="matrices",
        schedule="warmup-cosine",
    )
    return Preset("small", epochs, 64, False, optim, kind.quick(epochs, given))


def _quick_features(config: RunConfig, kind: type[MethodConfig], given: Values) -> Preset:
    """Settings for feature tables, tuned on validation sets (docs/results.md) and the same for every method.

    papi train --data lost.mat                           200 epochs, seconds on one core
    """
    epochs = config.epochs or FEATURE_EPOCHS
    optim = OptimSettings(
        optimizer="adam",
        lr=3e-3,
        momentum=0.9,
        nesterov=False,
        weight_decay=1e-5,
        decay="matrices",
        schedule="multistep",  # a high learning rate until the end would make the result of the last epoch random
    )
    return Preset("mlp", epochs, 128, False, optim, kind.quick(epochs, given) | kind.tabular(epochs, given))


def _quick_embeddings(config: RunConfig, kind: type[MethodConfig], given: Values) -> Preset:
    """Settings for embeddings of a frozen encoder, tuned on validation photos and the same for every method.

    papi train --data photos/ --network timm:NAME        50 epochs, seconds on one core once photos are embedded

    The head is linear with strong weight decay: with large candidate sets, a hidden layer memorizes wrong candidates.
    """
    epochs = config.epochs or EMBEDDING_EPOCHS
    optim = OptimSettings(
        optimizer="adam",
        lr=1e-3,
        momentum=0.9,
        nesterov=False,
        weight_decay=0.05,
        decay="matrices",
        schedule="cosine",
    )
    return Preset("linear", epochs, 64, False, optim, kind.quick(epochs, given) | kind.frozen(epochs, given))


def _quick_tuned(config: RunConfig, kind: type[MethodConfig], given: Values) -> Preset:
    """Settings to fine-tune a pretrained encoder, starting from the head that was trained on the frozen encoder.

    papi train --data photos/ --network timm:NAME --tune all        3 epochs, each several times the cost of embedding
    """
    epochs = config.epochs or TUNED_EPOCHS
    optim = OptimSettings(
        optimizer="sgd",
        lr=0.01,
        momentum=0.9,
        nesterov=True,
        weight_decay=1e-4,
        decay="matrices",
        schedule="warmup-cosine",
        clip_norm=1.0,
        encoder_lr=1e-3,  # a larger rate would first destroy the pretrained features
    )
    options = kind.quick(epochs, given) | kind.tuned(epochs, given)
    return Preset(config.network or "", epochs, 32, False, optim, options)


def paper(config: RunConfig, kind: type[MethodConfig], given: Values, features: bool) -> Preset:
    """The settings of the method's released code for the dataset and the flip rate."""
    release = _release(config, kind, given)
    optim = OptimSettings(
        optimizer=release.optimizer,
        lr=release.lr,
        momentum=0.9,
        nesterov=False,
        weight_decay=release.weight_decay,
        decay=release.decay,
        schedule=release.schedule,
        clip_norm=release.clip_norm,
    )
    network = "mlp" if features else "resnet18"
    return Preset(network, release.epochs, release.batch_size, release.drop_last, optim, release.options)


def _release(config: RunConfig, kind: type[MethodConfig], given: Values) -> Release:
    source, sets = SOURCES.get(config.data), config.candidates
    data = (
        config.data if source is None else source.twin or source.part_of or config.data
    )  # the name in the released code
    release = kind.released(data, sets.flip_rate, sets.kind, given)
    if release is None:
        own = find_method(next(iter(METHODS))).Config.released(data, sets.flip_rate, sets.kind, {})
        assert own is not None, "the first method is PaPi, which has released settings"
        release = replace(own, options={})
    return release


PRESETS: dict[str, Callable[[RunConfig, type[MethodConfig], Values, bool], Preset]] = {"quick": quick, "paper": paper}


def _candidates(config: RunConfig, sets_given: bool) -> CandidateSettings:
    sets = config.candidates
    kind = sets.kind
    if kind is None and not sets_given:
        known = SOURCES.get(config.data)
        kind = "hierarchical" if known is not None and known.hierarchical else "uniform"
    seed = config.seed if sets.seed is None else sets.seed
    settled = CandidateSettings(**_typed(sets) | {"kind": kind, "seed": seed})
    _require_used(settled)
    return settled


def _require_used(sets: CandidateSettings) -> None:
    """Reject options that have no effect for this kind of candidate sets."""
    kind = f"of the kind {sets.kind}" if sets.kind else "part of the data"
    used = {
        "flip_rate": sets.kind is not None and sets.rate is not None,
        "noise_rate": sets.kind == "noisy",
        "weigh": sets.kind is None,
    }
    for name, counts in used.items():
        if not counts and getattr(sets, name) != getattr(CandidatesConfig(), name):
            option = f"--candidates.{name.replace('_', '-')}"
            raise UserError(f"{option} has no effect for candidate sets that are {kind}: leave it out.")


def _holdout(config: RunConfig) -> float:
    if config.data_holdout is not None:
        return config.data_holdout
    return 0.0 if (config.select, config.stop_when) == ("last", "never") else HOLDOUT


def _precision(config: RunConfig, network: str) -> Precision:
    """The requested precision. auto: bf16 where it is native, for methods and networks that are as accurate in it.

    The released settings stay in fp32. Under several processes, the first one decides for all.
    """
    if config.precision != "auto":
        return config.precision
    if config.preset == "paper" or not find_method(config.method).bf16:
        return "fp32"
    from papi import distributed  # these import torch, which most commands do not need
    from papi.networks import NETWORKS

    if network not in NETWORKS or not NETWORKS[network].bf16:
        return "fp32"
    return "bf16" if distributed.from_first(lambda: _is_native(config.device)) else "fp32"


def _is_native(device: str) -> bool:
    from papi.training.devices import find_device, has_native_bf16

    try:
        return has_native_bf16(find_device(device))
    except UserError:  # the settings may be for another machine; training reports a missing device
        return False


def _filled(given: OptimConfig, preset: OptimSettings) -> OptimSettings:
    return replace(preset, **{name: value for name, value in asdict(given).items() if value is not None})


def _typed(config: object) -> Values:
    """Return the fields of a dataclass by name, without copying or converting them."""
    return {field.name: getattr(config, field.name) for field in fields(config)}  # type: ignore[arg-type]
