"""`papi export`: export a trained model for other programs or for the Hugging Face Hub."""

import json
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

import papi
from papi.cli.options import OutsideNetwork
from papi.cli.terminal import make_console
from papi.errors import UserError
from papi.files.durable import require_output
from papi.runs.folder import RunFolder


def export(
    run: Path,
    /,
    *,
    kind: Annotated[Literal["onnx", "safetensors", "torchscript", "pt2"], Parameter(name="--format")] = "onnx",
    out: Path | None = None,
    hub_folder: Path | None = None,
    network: OutsideNetwork = None,
) -> None:
    """Export a trained model as a single file.

    Parameters
    ----------
    run
        Folder of a finished run, or its model.safetensors.
    kind
        Format: onnx (ONNX Runtime and many other programs), pt2 (torch.export), torchscript (older programs), or
        safetensors (weights for `papi.load`).
    out
        Output file. [default: model.* in the subfolder `exported` of the run]
    hub_folder
        Write a folder for the Hugging Face Hub instead, with the model card, settings, weights and the exported file.
    """
    if out is not None and hub_folder is not None:
        raise UserError("--out and --hub-folder cannot be used together: choose one file, or one folder for all files.")
    from papi.export import formats, hub  # imports torch, which `papi export --help` does not need

    suffixes = {name: form.suffix for name, form in formats.FORMATS.items()}
    home = run if run.is_dir() else run.parent
    file, within = out or home / "exported" / f"model{suffixes[kind]}", None if out else home
    _require_suffix(kind, file, suffixes)
    inputs = (run, *RunFolder(home).files)
    if hub_folder is None:
        require_output(file, inputs=inputs, within=within, pipes=False)
    model = papi.load(run, network=network)
    if hub_folder is None:
        difference = formats.export(model, kind, file, inputs=inputs, within=within)
        advice = _use(kind, file, formats.input_name(model))
    else:
        folder = RunFolder(home)
        record, summary = folder.read_record(), folder.read_summary()
        difference = hub.write_hub_folder(model, kind, hub_folder, home.resolve().name, record, summary)
        advice = f"add a licence to {hub_folder / 'README.md'}, then upload the folder"
    console = make_console()
    console.print(f"Exported the model to {hub_folder or file}", soft_wrap=True)
    console.print(f"Its probabilities differ from the original model's by at most {difference:.1g}.")
    told = formats.preprocessing(model)
    if told is not None and kind != "safetensors":
        console.print(
            f"It expects preprocessed photos: {told}. papi.load(…).prepare(photos) does this.", soft_wrap=True
        )
    console.print(f"Next: {advice}", soft_wrap=True)


def _require_suffix(kind: str, file: Path, suffixes: dict[str, str]) -> None:
    """Reject a file extension of another format: programs rely on it, and PyTorch requires .pt2."""
    others = {"." + suffix.rpartition(".")[2] for name, suffix in suffixes.items() if name != kind}
    if file.suffix.lower() in others or (kind == "pt2" and file.suffix != suffixes[kind]):
        raise UserError(
            f"--out {file} does not match --format {kind}: use a name that ends in {suffixes[kind]}, or another format."
        )


def _use(kind: str, file: Path, samples: str) -> str:
    """Return the line of Python code that computes probabilities with the file."""
    name = json.dumps(str(file))
    return {
        "onnx": f'onnxruntime.InferenceSession({name}).run(None, {{"{samples}": {samples}}})[0]',
        "pt2": f"torch.export.load({name}).module()({samples})",
        "torchscript": f"torch.jit.load({name})({samples})",
        "safetensors": f"papi.load({name}).predict_proba({samples})",
    }[kind]
