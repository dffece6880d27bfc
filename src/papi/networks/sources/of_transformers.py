"""`hf:NAME`: encoders of transformers, from the hub or from a folder with config.json and safetensors.

Code that comes with a model is never run: `trust_remote_code` is not set, and only safetensors are read.
"""

import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from papi.errors import UserError
from papi.files.reading import read_json, reason
from papi.networks.preparation import Interpolation, Preparation
from papi.networks.registry import explained
from papi.networks.sources.made import Config, Made, fetching, hub_of, library, require_hub
from papi.networks.weights import listed, read_weights_file

_SETTINGS, _WEIGHTS, _SHARDS = "config.json", "model.safetensors", "model.safetensors.index.json"
_PROCESSORS = ("preprocessor_config.json", "processor_config.json")
_PATTERNS = [_SETTINGS, *_PROCESSORS, _WEIGHTS, _SHARDS, "model-*.safetensors"]
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")  # on the hub: MODEL or OWNER/MODEL
_RESAMPLING: tuple[Interpolation, ...] = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")  # by number


class VisionFeatures(nn.Module):
    """One vector per photo, as the model pools them: its pooled output, its class token, or the mean.

    `pools` tells whether the weights of its pooler are known, if it has one with weights.
    """

    def __init__(self, model: Any, pools: bool) -> None:
        super().__init__()
        self.model = model
        self.pools = pools
        pooler = getattr(model, "pooler", None)
        if not pools and isinstance(pooler, nn.Module) and any(True for _ in pooler.parameters()):
            model.pooler = None  # its weights would be random
        self.has_token = any(name.endswith(("cls_token", "class_embedding")) for name, _ in model.named_parameters())
        self.interpolates = "interpolate_pos_encoding" in inspect.signature(model.forward).parameters

    def forward(self, images: Tensor) -> Tensor:
        """`(B, 3, H, W)` to `(B, D)`."""
        options: Config = {"interpolate_pos_encoding": True} if self.interpolates else {}
        output = self.model(pixel_values=images, **options)
        pooled: Tensor | None = getattr(output, "pooler_output", None)
        if pooled is not None:
            return pooled.flatten(1)
        hidden: Tensor = output.last_hidden_state
        if hidden.ndim == 4:
            return hidden.mean((2, 3))
        return hidden[:, 0] if self.has_token else hidden.mean(1)


def make(name: str, weights: Path | None, size: int | None, *, default: bool, fetch: bool) -> Made:
    """An encoder with the weights of a file, else its `default` ones, else random ones."""
    transformers = library("transformers")
    with _quiet(transformers):
        folder, inside = _folder(name, fetch)
        settings = _settings(folder, inside)
        preparation, notes = _preparation(folder, inside, settings, size)
        more: tuple[str, ...] = ()
        if weights is None and not default:
            encoder = _new(transformers, settings, f"hf:{name}")
        else:
            tensors = _stored(folder, inside) if weights is None else read_weights_file(weights)
            encoder, more = _filled(transformers, settings, tensors, weights or folder, f"hf:{name}")
    return Made(encoder, preparation, {"settings": settings, "pools": encoder.pools}, (*notes, *more))


def rebuild(name: str, config: Config, size: int) -> nn.Module:
    """The same encoder with random weights, to be replaced by those of a model file, from the settings in that file."""
    transformers = library("transformers")
    with _quiet(transformers):
        return _new(transformers, config.get("settings"), f"hf:{name}", pools=config.get("pools") is True)


def _folder(name: str, fetch: bool) -> tuple[Path, Path]:
    """The folder of a model, and the folder that its files must not leave through links.

    A model named only by a file is read from the hub's cache, so that a file cannot point to any folder.
    """
    folder = Path(name)
    if fetch and folder.is_dir():
        in_cache = folder.parent.name == "snapshots" and (folder.parents[1] / "blobs").is_dir()
        return folder, folder.resolve().parents[1] if in_cache else folder
    if folder.is_dir() and not _NAME.fullmatch(name):
        raise UserError(
            f"{name} is a folder, which is not read if only a file names it: to read it, add --network hf:{name} or "
            "network=…."
        )
    if not _NAME.fullmatch(name):
        raise UserError(f"hf:{name} is neither a folder nor a name on the hub: write it like hf:facebook/dinov2-small.")
    hub = hub_of(f"hf:{name}")
    cached = hub.try_to_load_from_cache(name, _SETTINGS)
    complete = isinstance(cached, str) and any((Path(cached).parent / file).exists() for file in (_WEIGHTS, _SHARDS))
    if complete:
        return Path(cached).parent, Path(cached).parents[2]
    require_hub(f"hf:{name}", fetch)
    with fetching(f"hf:{name}"):
        found = Path(hub.snapshot_download(name, allow_patterns=_PATTERNS))
    return found, found.parents[1]


def _settings(folder: Path, inside: Path) -> Config:
    """The settings in config.json, without those that would download or run something else."""
    found = _json(folder / _SETTINGS, inside)
    if found is None:
        raise UserError(f"{folder} has no {_SETTINGS}: give a folder that transformers has written, or a hub name.")
    return _harmless(found)


def _harmless(settings: Config) -> Config:
    """Remove names of code, kernels and other models, also in nested settings of models with several parts."""
    left_out = ("auto_map", "attn_implementation", "quantization_config", "torch_dtype", "dtype")
    return {
        key: _harmless(value) if isinstance(value, dict) else value
        for key, value in settings.items()
        if not key.startswith("_") and key not in left_out
    }


def _json(file: Path, inside: Path) -> Config | None:
    if not file.exists():
        return None
    try:
        found = read_json(file, inside)
        if not isinstance(found, dict):
            raise ValueError("it is not a JSON object")
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read ({reason(error)}): fetch the model again.") from error
    return found


def _preparation(folder: Path, inside: Path, settings: Config, size: int | None) -> tuple[Preparation, tuple[str, ...]]:
    """The preparation of the image processor; without one, the size in the settings and ImageNet's statistics."""
    processor = next((found for file in _PROCESSORS if (found := _json(folder / file, inside)) is not None), None)
    vision = settings.get("vision_config") if isinstance(settings.get("vision_config"), dict) else settings
    assert isinstance(vision, dict)
    try:
        if processor is None:
            side = size or _side(vision.get("image_size")) or 224
            note = f"{folder} has no {_PROCESSORS[0]}: photos are prepared as for ImageNet, at {side} pixels."
            return Preparation(side), (note,)
        nested = processor.get("image_processor")
        processor = nested if isinstance(nested, dict) else processor
        crops = processor.get("do_center_crop", "crop_size" in processor) and processor.get("crop_size")
        side = size or _side(crops or processor.get("size")) or _side(vision.get("image_size")) or 224
        mean, std = _statistics(processor)
        return Preparation(side, mean, std, _RESAMPLING[int(processor.get("resample", 3))]), ()
    except (ValueError, TypeError, IndexError) as error:
        raise UserError(f"{folder} defines a preparation of photos that is not supported ({reason(error)}).") from error


def _side(size: object) -> int | None:
    """The side of the square input, in any of the formats of image processors."""
    if isinstance(size, dict):
        size = next((size[key] for key in ("shortest_edge", "height", "width") if key in size), None)
    if isinstance(size, list) and size:
        size = size[-1]
    return size if type(size) is int and size > 0 else None


def _statistics(processor: Config) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Mean and standard deviation of pixel values in [0, 1], for any scale that the processor uses."""
    scale = 255 * float(processor.get("rescale_factor", 1 / 255)) if processor.get("do_rescale", True) else 255.0
    if not processor.get("do_normalize", True):
        return (0.0, 0.0, 0.0), (1 / scale, 1 / scale, 1 / scale)
    default = Preparation()
    mean, std = processor.get("image_mean", default.mean), processor.get("image_std", default.std)
    (m0, m1, m2), (s0, s1, s2) = (tuple(float(value) / scale for value in values) for values in (mean, std))
    return (m0, m1, m2), (s0, s1, s2)


def _stored(folder: Path, inside: Path) -> dict[str, Tensor]:
    """All weights in the safetensors of a folder."""
    files = sorted(file for file in folder.iterdir() if file.suffix == ".safetensors")
    if not files:
        raise UserError(f"{folder} has no safetensors: other weights are not read, because they can hold code.")
    return {name: tensor for file in files for name, tensor in read_weights_file(file, inside).items()}


def _filled(
    transformers: Any, settings: Config, tensors: dict[str, Tensor], source: Path, reference: str
) -> tuple[VisionFeatures, tuple[str, ...]]:
    """The architecture in the settings with these weights, also under names of earlier versions; and notes."""
    try:
        config, kind, options = _architecture(transformers, settings)
        found, info = kind.from_pretrained(
            None, config=config, state_dict=tensors, output_loading_info=True, ignore_mismatched_sizes=True, **options
        )
    except Exception as error:  # of transformers, of torch
        raise UserError(f"{reference} cannot be built ({explained(error)}): fetch it again, or use another.") from error
    missing = [key for key in info["missing_keys"] if "pooler." not in key]
    wrong = [*missing, *(str(each[0]) for each in info["mismatched_keys"])]
    if wrong:
        raise UserError(
            f"the weights in {source} are not those of {reference} (it lacks, or has in another shape: "
            f"{listed(wrong)}): give those of {reference}."
        )
    left_out = sorted({key.partition(".")[0] for key in info["unexpected_keys"]})
    note = f"{listed(left_out)} in {source} is left out: it is for other classes."
    return VisionFeatures(_vision(found), pools=not info["missing_keys"]), (note,) if left_out else ()


def _architecture(transformers: Any, settings: Config) -> tuple[Any, Any, Config]:
    """The config, its model class, and the attention implementation, for which settings could name code."""
    values = dict(_harmless(settings))
    config = transformers.AutoConfig.for_model(values.pop("model_type", ""), **values)
    kind = transformers.AutoModel._model_mapping[type(config)]
    return config, kind, {"attn_implementation": "sdpa" if getattr(kind, "_supports_sdpa", False) else "eager"}


def _new(transformers: Any, settings: Config | None, reference: str, *, pools: bool = True) -> VisionFeatures:
    """The architecture in the settings, with random weights."""
    try:
        config, kind, options = _architecture(transformers, settings or {})
        found = kind._from_config(config, **options)
    except Exception as error:  # of transformers, of torch
        raise UserError(f"{reference} cannot be built ({explained(error)}): fetch it again, or use another.") from error
    return VisionFeatures(_vision(found), pools)


def _vision(model: nn.Module) -> nn.Module:
    """The vision part of a model that also has a text part."""
    part = getattr(model, "vision_model", model)
    return part if isinstance(part, nn.Module) else model


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Hide progress bars and reports on weights; notes contain what matters."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
