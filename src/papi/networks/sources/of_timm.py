"""`timm:NAME`: encoders of timm, with the size, statistics and interpolation that their weights were trained with."""

import sys
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from papi.errors import UserError, unknown
from papi.networks.preparation import Preparation
from papi.networks.registry import explained
from papi.networks.sources.made import Config, Made, fetching, hub_of, library, require_hub
from papi.networks.weights import HEADS, put_weights, read_weights_file

_FILE = "model.safetensors"  # in a repository on the hub


def make(name: str, weights: Path | None, size: int | None, *, default: bool, fetch: bool) -> Made:
    """An encoder without its head: with the weights of a file, else its `default` ones, else random ones."""
    timm = library("timm")
    config = _config(timm, name)
    preparation = _preparation(config, size)
    reference = f"timm:{name}"
    if default and weights is None:
        weights = _fetched(config, reference, fetch)
        if weights is None:
            with fetching(reference):
                encoder = _build(timm, name, config, preparation.size, pretrained=True)
            return Made(encoder, preparation, {})
    encoder = _build(timm, name, config, preparation.size)
    if weights is None:
        return Made(encoder, preparation, {})
    heads = (*HEADS, *_names(config.classifier))
    tensors = _converted(read_weights_file(weights), encoder, weights, reference)
    notes = put_weights(encoder, tensors, str(weights), reference, heads)
    return Made(encoder, preparation, {}, () if default else notes)


def rebuild(name: str, config: Config, size: int) -> nn.Module:
    """The same encoder with random weights, to be replaced by those of a model file."""
    timm = library("timm")
    return _build(timm, name, _config(timm, name), size)


def _config(timm: Any, name: str) -> Any:
    """timm's settings for the default weights of a model. The name must be in its table: others download code."""
    if not timm.is_model(name) or ":" in name:
        raise unknown_encoder("timm", name, timm.list_models())
    base, _, tag = name.partition(".")
    if not tag:
        return timm.get_pretrained_cfg(base)
    known = timm.list_pretrained(f"{base}.*")
    if name not in known:
        raise unknown_encoder("timm", name, [*known, base])
    return timm.get_pretrained_cfg(name)


def unknown_encoder(source: str, name: str, known: list[str]) -> UserError:
    """An error that suggests the nearest name. The list of all names is too long for a message."""
    told = str(unknown("encoder", name, sorted(known, key=len)))
    nearest = told.partition("did you mean ")[2].partition("?")[0]
    hint = f"did you mean {source}:{nearest.strip(chr(39))}?" if nearest else f"{len(known):,} are known to {source}."
    return UserError(f"{source} has no encoder {name[:200]!r}: {hint}")


def _preparation(config: Any, size: int | None) -> Preparation:
    try:
        return Preparation(
            size=size or int(config.input_size[-1]),
            mean=_three(config.mean),
            std=_three(config.std),
            interpolation=config.interpolation if config.interpolation != "random" else "bicubic",
        )
    except (ValueError, TypeError) as error:
        raise UserError(f"timm defines a preparation of photos that is not supported ({error}).") from error


def _three(numbers: Any) -> tuple[float, float, float]:
    first, second, third = map(float, numbers)
    return first, second, third


def _build(timm: Any, name: str, config: Any, size: int, *, pretrained: bool = False) -> nn.Module:
    fixed = config.fixed_input_size and size != config.input_size[-1]
    options: Config = {"img_size": size} if fixed else {}
    try:
        encoder: nn.Module = timm.create_model(name, pretrained=pretrained, num_classes=0, **options)
    except (TypeError, AssertionError) as error:
        if not fixed:
            raise
        raise UserError(
            f"timm:{name} only takes photos of {config.input_size[-1]} pixels ({explained(error)}): leave out "
            "--data.size."
        ) from error
    return encoder


def _fetched(config: Any, reference: str, fetch: bool) -> Path | None:
    """The weights file, from the hub or its cache; None if only timm knows where the weights are."""
    if not config.has_weights:
        raise UserError(f"{reference} comes without weights: choose another, or give --weights FILE.")
    if config.hf_hub_id is None or config.custom_load:
        require_hub(reference, fetch)
        return None
    hub = hub_of(reference)
    cached = hub.try_to_load_from_cache(config.hf_hub_id, _FILE)
    if isinstance(cached, str):
        return Path(cached)
    require_hub(reference, fetch)
    with fetching(reference):
        return Path(hub.hf_hub_download(config.hf_hub_id, _FILE))


def _converted(tensors: dict[str, Tensor], encoder: nn.Module, file: Path, reference: str) -> dict[str, Tensor]:
    """The weights with timm's names and shapes. timm converts original weights and weights for other image sizes."""
    convert = getattr(sys.modules[type(encoder).__module__], "checkpoint_filter_fn", None)
    if convert is None:
        return tensors
    try:
        converted: dict[str, Tensor] = convert(tensors, encoder)
    except Exception as error:  # timm expects weights of this architecture
        raise UserError(
            f"the weights in {file} are not those of {reference} ({explained(error)}): give those of {reference}."
        ) from error
    return converted


def _names(classifier: Any) -> tuple[str, ...]:
    return (classifier,) if isinstance(classifier, str) else tuple(classifier or ())
