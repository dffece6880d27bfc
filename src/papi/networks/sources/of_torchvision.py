"""`torchvision:NAME`: encoders of torchvision's table of models, without their last layer."""

from pathlib import Path
from typing import Any

from torch import nn

from papi.errors import UserError
from papi.networks.preparation import Preparation
from papi.networks.sources.made import Config, Made, fetching, library
from papi.networks.sources.of_timm import unknown_encoder
from papi.networks.weights import put_weights, read_weights_file


def make(name: str, weights: Path | None, size: int | None, *, default: bool, fetch: bool) -> Made:
    """An encoder without its head: with the weights of a file, else its `default` ones, else random ones."""
    models = _models(name)
    known = models.get_model_weights(name)
    choice = getattr(known, "DEFAULT", None)
    encoder = models.get_model(name, weights=None)
    head = _head(encoder, name)
    notes: tuple[str, ...] = ()
    if weights is not None:
        encoder.set_submodule(head, nn.Identity())
        notes = put_weights(encoder, read_weights_file(weights), str(weights), f"torchvision:{name}", (head,))
    elif default:
        if choice is None:
            raise UserError(f"torchvision:{name} comes without weights: choose another, or give --weights FILE.")
        if not fetch and not _is_cached(choice.url):
            raise UserError(
                f"the weights of torchvision:{name} are not on this machine, and are not downloaded if only a file "
                f"names the encoder: to download them, add --network torchvision:{name}."
            )
        with fetching(f"torchvision:{name}"):
            encoder.load_state_dict(choice.get_state_dict(progress=False, check_hash=True, weights_only=True))
        encoder.set_submodule(head, nn.Identity())
    else:
        encoder.set_submodule(head, nn.Identity())
    return Made(encoder, _preparation(choice, size), {}, notes)


def rebuild(name: str, config: Config, size: int) -> nn.Module:
    """The same encoder with random weights, to be replaced by those of a model file."""
    encoder: nn.Module = _models(name).get_model(name, weights=None)
    encoder.set_submodule(_head(encoder, name), nn.Identity())
    return encoder


def _models(name: str) -> Any:
    models: Any = library("torchvision").models
    known = models.list_models(module=models)
    if name not in known:
        raise unknown_encoder("torchvision", name, known)
    return models


def _head(encoder: nn.Module, name: str) -> str:
    """The name of the last linear layer, whose outputs are the classes of ImageNet."""
    parts = [path for path, part in encoder.named_modules() if isinstance(part, nn.Linear)]
    linear: list[str] = [path for path in parts if "aux" not in path.lower()]
    if not linear:
        raise UserError(
            f"torchvision:{name} ends without a linear layer, so its features cannot be found: use another."
        )
    return linear[-1]


def _preparation(choice: Any, size: int | None) -> Preparation:
    if choice is None:
        return Preparation(size or 224)
    how = choice.transforms()
    return Preparation(size or how.crop_size[0], tuple(how.mean), tuple(how.std), how.interpolation.value)


def _is_cached(url: str) -> bool:
    from torch.hub import get_dir

    return (Path(get_dir()) / "checkpoints" / url.rpartition("/")[2]).is_file()
