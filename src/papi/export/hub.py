"""Writes a model as a folder for the Hugging Face Hub, with a model card.

Everything is written locally; nothing is uploaded.
"""

import json
import os
import shutil
import uuid
from importlib.util import find_spec
from pathlib import Path

from papi import __version__
from papi.errors import UserError
from papi.export.formats import FORMATS, export, input_name
from papi.files.durable import replacing, sync_folder
from papi.inference import Model
from papi.runs.schema import Record, Summary

_LARGE = ("*.safetensors", "*.onnx", "*.pt2", "*.pt")  # what the hub keeps outside git
_PLACES = {"onnx": "onnx/model.onnx"}  # where programs look for it; others lie at the top
_TAGS = ["partial-label-learning", "weak-supervision", "papi"]


def write_hub_folder(
    model: Model, kind: str, folder: Path, name: str, record: Record | None, summary: Summary | None
) -> float:
    """Write a new folder, and return the largest difference of the exported model's probabilities.

    `record` and `summary` belong to the run that trained the model, if there is one.
    """
    if find_spec("huggingface_hub") is None:
        raise UserError("--hub-folder needs huggingface_hub: run pip install 'papi-pll[hub]'.")
    if not folder.name or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise UserError(f"{folder} is not an empty folder: choose another with --hub-folder, or remove it.")
    if folder.is_symlink():
        raise UserError(f"{folder} is a link: specify its target, or remove the link.")
    half = folder.with_name(f".{folder.name[:40]}.{uuid.uuid4().hex[:12]}.writing")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        half.mkdir()
        export(model, "safetensors", half / "model.safetensors")
        difference = export(model, kind, half / place(kind))
        _write(half / "config.json", json.dumps(_config(model), indent=2, ensure_ascii=False) + "\n")
        _write(half / "README.md", _front_matter(model, name, summary) + _card(model, kind, name, record, summary))
        _write(half / ".gitattributes", "".join(f"{each} filter=lfs diff=lfs merge=lfs -text\n" for each in _LARGE))
        if folder.exists():
            folder.rmdir()
        os.replace(half, folder)
        sync_folder(folder.parent)
    except OSError as error:
        raise UserError(f"{folder} cannot be written ({error.strerror}): choose another with --hub-folder.") from error
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return difference


def place(kind: str) -> str:
    """Where a format lies in the folder."""
    return _PLACES.get(kind, f"model{FORMATS[kind].suffix}")


def _write(file: Path, text: str) -> None:
    with replacing(file) as stream:
        stream.write(text.encode())


def _config(model: Model) -> dict[str, object]:
    """What programs read before they load weights; the hub counts downloads of this file."""
    card = model.card
    names = dict(enumerate(card.class_names))
    sides = ("num_channels", "height", "width") if len(model.shape) == 3 else ("num_features",)
    return {
        "library_name": "papi-pll",
        "library_version": __version__,
        "model_type": "papi",
        "architectures": [card.network if card.encoder is None else card.encoder.reference],
        **dict(zip(sides, model.shape, strict=True)),
        "mean": card.mean if model.preparation is None else model.preparation.mean,
        "std": card.std if model.preparation is None else model.preparation.std,
        "num_labels": len(names),
        "id2label": names,
        "label2id": {label: k for k, label in names.items()},
    }


def _task(model: Model) -> str:
    return "tabular-classification" if input_name(model) == "features" else "image-classification"


def _front_matter(model: Model, name: str, summary: Summary | None) -> str:
    """The data of the card, which the hub reads."""
    from huggingface_hub import EvalResult, ModelCardData  # an extra, and slow to load

    results = None
    if summary is not None and summary.test_accuracy is not None:
        results = [
            EvalResult(
                task_type=_task(model),
                dataset_type=summary.dataset,
                dataset_name=summary.dataset,
                metric_type="accuracy",
                metric_value=round(summary.test_accuracy, 4),
            )
        ]
    data = ModelCardData(
        library_name="papi-pll",
        pipeline_tag=_task(model),
        tags=_TAGS,
        metrics=["accuracy"] if results else None,
        model_name=name if results else None,
        eval_results=results,
    )
    return f"---\n{data.to_yaml()}\n---\n"


def _card(model: Model, kind: str, name: str, record: Record | None, summary: Summary | None) -> str:
    samples, shape = input_name(model), " x ".join(map(str, model.shape))
    kinds = "uint8 images (channels x height x width)" if samples == "images" else "float32 features"
    sections = [
        f"# {_plain(name)}",
        f"A classifier that was trained with PaPi {__version__} (`papi-pll`) from *candidate label sets*: every "
        f"training sample had several candidate labels, one of which is true. The input is {kinds} of {shape}, "
        f"without normalisation. The output is the probabilities of {len(model.class_names)} classes.",
        "## Use",
        _usage(model, kind),
        "## Classes",
        ", ".join(_plain(each) for each in model.class_names),
        "## Training",
        "\n".join(_training(record, summary)) or "There is no information about the training.",
        "## Limits",
        "The training labels were ambiguous, and the method itself inferred the true ones. Evaluate the model on your "
        "own samples with known labels before you rely on it. It predicts one of its classes for every sample, even "
        "for samples of other classes.",
        "Add the licence and the intended use here.",
    ]
    return "\n" + "\n\n".join(sections) + "\n"


def _usage(model: Model, kind: str) -> str:
    shape = ", ".join(map(str, (1, *model.shape)))
    dtype = "uint8" if input_name(model) == "images" else "float32"
    made = f'import numpy as np\n\nsamples = np.zeros(({shape}), "{dtype}")  # yours'
    ours = 'import papi  # pip install papi-pll\n\nprint(papi.load("model.safetensors").predict(samples))'
    parts = [f"```python\n{made}\n\n{ours}\n```"]
    if kind == "onnx":
        parts.append(
            f'```python\n{made}\n\nimport onnxruntime\n\nsession = onnxruntime.InferenceSession("{place(kind)}")\n'
            f'print(session.run(None, {{"{input_name(model)}": samples}})[0])  # probabilities\n```'
        )
    elif kind in ("pt2", "torchscript"):
        load = "torch.export.load" if kind == "pt2" else "torch.jit.load"
        module = ".module()" if kind == "pt2" else ""
        parts.append(
            f'```python\n{made}\n\nimport torch\n\nmodel = {load}("{place(kind)}"){module}\n'
            "print(model(torch.from_numpy(samples)))  # probabilities\n```"
        )
    return "\n\n".join(parts)


def _training(record: Record | None, summary: Summary | None) -> list[str]:
    """What is known of the run, a line each."""
    facts: dict[str, object] = {}
    if record is not None:
        facts |= {name: record.config.get(name) for name in ("method", "network", "epochs", "seed")}
        facts["mean number of candidate labels"] = _rounded(record.candidates.get("mean_candidates"), 2)
        facts["continues the run"] = Path(record.parent.folder).name if record.parent else None
    if summary is not None:
        facts["data"] = summary.dataset
        facts["training samples"] = summary.training_images
        facts["test accuracy"] = _rounded(summary.test_accuracy, 4)
        facts["training labels resolved to the true label"] = _rounded(summary.disambiguation_accuracy, 4)
    return [f"- {what}: {_plain(str(value))}" for what, value in facts.items() if value is not None]


def _rounded(value: float | None, digits: int) -> str | None:
    return None if value is None else f"{value:.{digits}f}"


def _plain(text: str) -> str:
    """A name as text in Markdown: on one line, and nothing in it means anything."""
    return "".join(f"\\{each}" if each in "\\`*_{}[]<>#|!&" else each for each in " ".join(text.split()))
