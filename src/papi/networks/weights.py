"""Reads weights from a file, as tensors only, checks them against an encoder and loads them into it."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from papi.errors import UserError
from papi.files.reading import memory_bytes, opened, plain_file, reason

LISTED = 5  # names in a message
# Common names of the last layer, which maps features to the classes that an encoder was trained on.
HEADS = ("fc", "_fc", "classifier", "head", "heads", "last_linear", "logits", "linear")
_WRAPPERS = ("state_dict", "model_state_dict", "model")  # keys under which training programs store weights
_PREFIX = "module."  # of weights saved by a multi-process run


def read_weights_file(file: Path, inside: Path | None = None) -> dict[str, Tensor]:
    """The tensors by name in a safetensors file, or in a `torch.save` file, without running its code.

    A file that comes with a folder must be `inside` that folder after links are resolved.
    """
    try:
        found = _safetensors(file, inside) if file.suffix == ".safetensors" else _torch_file(file)
    except (OSError, SafetensorError, ValueError) as error:
        raise UserError(
            f"the weights in {file} cannot be read ({reason(error)}): give a safetensors file, or a .pth file that "
            "holds tensors by name."
        ) from error
    broken = [name for name, tensor in found.items() if not is_finite(tensor)]
    if broken:
        raise UserError(
            f"the weights in {file} are damaged ({broken[0]} has values that are not finite): download them again."
        )
    return found


def _safetensors(file: Path, inside: Path | None) -> dict[str, Tensor]:
    with safe_open(plain_file(file, memory_bytes(), inside), "pt", device="cpu") as stored:  # type: ignore[no-untyped-call]
        return {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118


def _torch_file(file: Path) -> dict[str, Tensor]:
    with opened(file, memory_bytes()) as stream:
        try:
            found: object = torch.load(stream, map_location="cpu", weights_only=True)
        except Exception as error:  # other files can fail in the archive, the pickle or its tensors
            raise ValueError("it is damaged, or it holds code or objects besides tensors") from error
    for wrapper in _WRAPPERS:
        if isinstance(found, Mapping) and isinstance(found.get(wrapper), Mapping):
            found = found[wrapper]
    if not isinstance(found, Mapping) or not found:
        raise ValueError("it has no named tensors")
    strangers = [name for name, tensor in found.items() if not (isinstance(name, str) and isinstance(tensor, Tensor))]
    if strangers:
        raise ValueError(f"{str(strangers[0])[:100]} is not a tensor")
    if all(name.startswith(_PREFIX) for name in found):
        return {name.removeprefix(_PREFIX): tensor for name, tensor in found.items()}
    return dict(found)


def is_finite(tensor: Tensor) -> bool:
    """Whether its numbers are finite in the floating-point type that networks use."""
    return not tensor.is_floating_point() or bool(tensor.float().isfinite().all())


def put_weights(
    encoder: nn.Module, weights: Mapping[str, Tensor], source: str, name: str, heads: Iterable[str] = HEADS
) -> tuple[str, ...]:
    """Load all weights into an encoder and return notes. A head that the encoder does not have is left out."""
    own = encoder.state_dict()
    left_out = [key for key in weights if key not in own and key.startswith(tuple(f"{head}." for head in heads))]
    given = {key: tensor for key, tensor in weights.items() if key not in left_out}
    faults = {
        "it lacks": [key for key in own if key not in given and not key.endswith("num_batches_tracked")],
        "it has besides": [key for key in given if key not in own],
        "of another shape": [key for key in own if key in given and own[key].shape != given[key].shape],
    }
    said = [f"{what}: {listed(keys)}" for what, keys in faults.items() if keys]
    if said:
        raise UserError(f"the weights in {source} are not those of {name} ({'; '.join(said)}): give those of {name}.")
    encoder.load_state_dict(given, strict=False)
    return (f"{listed(left_out)} in {source} are left out: they are for other classes.",) if left_out else ()


def listed(keys: Iterable[str]) -> str:
    """The first few names, and the number of the others."""
    keys = list(keys)
    more = f" and {len(keys) - LISTED:,} more" if len(keys) > LISTED else ""
    return ", ".join(key[:100] for key in keys[:LISTED]) + more


def checksum(module: nn.Module) -> str:
    """SHA-256 over the names, types, shapes and bytes of all weights, in hex digits."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        plain = tensor.detach().cpu().contiguous()
        digest.update(f"{name}\0{plain.dtype}\0{tuple(plain.shape)}\n".encode())
        digest.update(memoryview(plain.reshape(-1).view(torch.uint8).numpy()))
    return digest.hexdigest()
