"""Exports a trained model as a single file that maps batches of raw samples to probabilities.

The exported file is read back and compared with the model before it is kept.
"""

import copy
import json
import logging
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import replace
from importlib.util import find_spec
from io import BytesIO, StringIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.jit._trace import TracerWarning

from papi.errors import UserError
from papi.files.durable import output_file
from papi.inference import Model, load
from papi.networks import NETWORKS
from papi.networks.network import arranged
from papi.networks.pretrained import Root
from papi.networks.registry import explained
from papi.randomness import draws
from papi.runs.model import model_bytes

TOLERANCE = 1e-4  # what answers may differ by
ENCODER_TOLERANCE = 1e-3  # with a pretrained encoder, which has many more layers
CHECKED = (1, 2, 7, 64)  # sizes of the batches that are compared
METADATA = "papi"  # under this name a file holds the model's card as JSON: class names, shape, mean and spread

Answer = Callable[[np.ndarray], np.ndarray]


class Standardised(nn.Module):
    """Pixels `(B, C, H, W) uint8` or features `(B, d)` with mean 0 and spread 1."""

    scale: Tensor
    shift: Tensor

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...], *, pixels: bool) -> None:
        super().__init__()
        centre, spread = torch.tensor(mean, dtype=torch.float64), torch.tensor(std, dtype=torch.float64)
        scale, shift = 1 / spread, -centre / spread
        if pixels:
            scale, shift = (scale / 255)[:, None, None], shift[:, None, None]
        self.register_buffer("scale", scale.float())
        self.register_buffer("shift", shift.float())

    def forward(self, samples: Tensor) -> Tensor:
        """The same shape, in float32."""
        return samples.float() * self.scale + self.shift


class Whole(nn.Module):
    """Images `(B, C, H, W) uint8` or features `(B, d) float32` to probabilities `(B, K)`, with all that is between."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        card = model.card
        self.encoder: nn.Module = nn.Identity()
        if model.encoder is not None and model.preparation is not None:
            prepared = Standardised(model.preparation.mean, model.preparation.std, pixels=True)
            self.encoder = nn.Sequential(prepared, _plain_copy(model.encoder), Root())
        self.standardised = Standardised(card.mean, card.std, pixels=len(card.shape) == 3)
        self.network = _plain_copy(model.network)
        self.temperature = card.temperature
        self.eval()

    def forward(self, samples: Tensor) -> Tensor:
        """Probabilities of raw samples."""
        logits: Tensor = self.network(self.standardised(self.encoder(samples))).logits
        return (logits / self.temperature).softmax(1)


def _plain_copy(module: nn.Module) -> nn.Module:
    """A module on the CPU in the plain memory layout, which every format understands."""
    return arranged(copy.deepcopy(module).cpu().eval().requires_grad_(False), torch.contiguous_format)


def preprocessing(model: Model) -> str | None:
    """What a program must do to a photo before it hands it to an exported model; None where images have their size.

    `papi.load(run).prepare(photos)` does the same.
    """
    how = model.preparation
    if how is None:
        return None
    return (
        f"turn the photo upright and into RGB, resize it with Pillow's {how.interpolation} filter (reducing_gap=3) so "
        f"that its shorter side has {how.kept} pixels, cut the square of {how.size} pixels out of its middle, and "
        f"give it as uint8 (3, {how.size}, {how.size})"
    )


class _Format(NamedTuple):
    suffix: str
    write: Callable[[Model, Path], None]
    read: Callable[[Model, Path], Answer]


def export(model: Model, kind: str, file: Path, *, inputs: Iterable[Path] = (), within: Path | None = None) -> float:
    """Write the model as `kind` of FORMATS; return by how much its answers differ at most.

    The file is written beside, checked, and renamed. `inputs` and `within` are those of `output_file`.
    """
    _require_packages(kind)
    with output_file(file, inputs=inputs, within=within, pipes=False) as half:
        difference = _written(model, kind, half)
        if not difference <= (TOLERANCE if model.encoder is None else ENCODER_TOLERANCE):
            raise UserError(
                f"the {kind} export was not written, because its probabilities differ from the model's by up to "
                f"{difference:.2g}: use another --format."
            )
    return difference


def _written(model: Model, kind: str, file: Path) -> float:
    """Write the file, read it back, and return the largest difference of its probabilities."""
    form = FORMATS[kind]
    try:
        with _quiet():
            form.write(model, file)
            return _largest_difference(model, form.read(model, file))
    except (UserError, OSError):  # OSError: the disk, of which `output_file` tells
        raise
    except Exception as error:  # every exporter has exceptions of its own
        name = model.card.network or type(model.network.encoder).__name__
        raise UserError(
            f"the network {name} cannot be exported as {kind} ({explained(error)}): use another --format, or change "
            "the network."
        ) from error


def input_name(model: Model) -> str:
    """Return the input name of an exported model."""
    return "features" if len(model.shape) == 1 else "images"


def _largest_difference(model: Model, answer: Answer) -> float:
    """Over batches of several sizes, of noise in the range of what the model was trained on."""
    generator = draws(0, "export check")
    worst = 0.0
    for count in CHECKED:
        shape = (count, *model.shape)
        if len(shape) == 4:
            samples = generator.integers(0, 256, shape, np.uint8)
        else:
            noise = generator.standard_normal(shape)
            samples = (noise * model.card.std + model.card.mean).astype(np.float32)
        found, expected = answer(samples), model.predict_proba(samples)
        if found.shape != expected.shape:
            return float("inf")
        worst = float(np.maximum(worst, np.abs(found - expected).max()))  # `max` would lose NaN
    return worst


def _example(model: Model) -> Tensor:
    """Two samples: with one, the size of the batch would be taken for fixed."""
    kind = torch.float32 if len(model.shape) == 1 else torch.uint8
    return torch.zeros(2, *model.shape, dtype=kind)


def _card(model: Model) -> str:
    told = preprocessing(model)
    return json.dumps(model.card.to_json() | ({} if told is None else {"preprocessing": told}))


def _write_onnx(model: Model, file: Path) -> None:
    program = torch.onnx.export(
        Whole(model),
        (_example(model),),
        dynamo=True,
        dynamic_shapes=({0: torch.export.Dim("batch")},),
        input_names=[input_name(model)],
        output_names=["probabilities"],
        verbose=False,
    )
    assert program is not None
    program.model.metadata_props[METADATA] = _card(model)
    program.save(str(file), external_data=False)


def _read_onnx(_: Model, file: Path) -> Answer:
    import onnxruntime  # type: ignore[import-untyped]

    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name

    def answer(samples: np.ndarray) -> np.ndarray:
        probabilities: np.ndarray = session.run(None, {name: samples})[0]
        return probabilities

    return answer


def _write_pt2(model: Model, file: Path) -> None:
    shapes = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(Whole(model), (_example(model),), dynamic_shapes=shapes)
    content = BytesIO()  # on a full disk PyTorch's own writer ends the process
    torch.export.save(program, content, extra_files={METADATA: _card(model)})
    file.write_bytes(content.getbuffer())


def _read_pt2(_: Model, file: Path) -> Answer:
    return _asking(torch.export.load(file).module())


def _write_torchscript(model: Model, file: Path) -> None:
    traced = torch.jit.trace(Whole(model), _example(model))  # type: ignore[no-untyped-call]
    content = BytesIO()  # on a full disk PyTorch's own writer ends the process
    torch.jit.save(traced, content, _extra_files={METADATA: _card(model)})  # type: ignore[no-untyped-call]
    file.write_bytes(content.getbuffer())


def _read_torchscript(_: Model, file: Path) -> Answer:
    return _asking(torch.jit.load(str(file)))  # type: ignore[no-untyped-call]


def _asking(module: Callable[[Tensor], Tensor]) -> Answer:
    """A module of torch that takes and gives NumPy arrays."""
    return lambda samples: module(torch.from_numpy(samples)).detach().numpy()


def _write_safetensors(model: Model, file: Path) -> None:
    card = model.card
    if card.encoder is not None:  # whoever gets the file may not have the library's weights
        card = replace(card, encoder=replace(card.encoder, stored=True))
    file.write_bytes(model_bytes(model.network, card, model.encoder))


def _read_safetensors(model: Model, file: Path) -> Answer:
    """By name, as others will read it; a network from outside is at hand already, wherever its code lies."""
    if model.card.encoder is not None:
        tuned = model.network.encoder if model.encoder is None else model.encoder
        return load(file, network=tuned).predict_proba
    network = None if model.card.network in NETWORKS else model.network.encoder
    return load(file, network=network).predict_proba


FORMATS = {
    "onnx": _Format(".onnx", _write_onnx, _read_onnx),
    "safetensors": _Format(".safetensors", _write_safetensors, _read_safetensors),
    "pt2": _Format(".pt2", _write_pt2, _read_pt2),
    "torchscript": _Format(".torchscript.pt", _write_torchscript, _read_torchscript),
}


def _require_packages(kind: str) -> None:
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if kind == "onnx" and find_spec(name) is None]
    if missing:
        raise UserError(f"--format onnx needs {', '.join(missing)}: run pip install 'papi-pll[onnx]'.")


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporters: deprecation warnings, and reports about missing parts and untraceable networks.

    Tracing also warns about every branch that it fixes; the comparison shows whether that was correct.
    """
    loggers = [logging.getLogger(f"torch.{name}") for name in ("onnx", "fx.experimental.symbolic_shapes")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stderr(StringIO()):
            for category in (DeprecationWarning, FutureWarning, TracerWarning):
                warnings.simplefilter("ignore", category)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
