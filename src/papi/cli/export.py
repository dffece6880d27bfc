"""`papi export`: a trained model for other programs, or for Hugging Face's hub."""

import json
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from papi.cli.terminal import make_console
from papi.errors import UserError


def export(
    run: Path,
    /,
    *,
    kind: Annotated[Literal["onnx", "safetensors", "torchscript", "pt2"], Parameter(name="--format")] = "onnx",
    out: Path | None = None,
    hub_folder: Path | None = None,
) -> None:
    """Write a trained model as one file: raw images in, probabilities out, any number at a time.

    The file is checked against the model before it is kept.

    Parameters
    ----------
    run
        Folder of a finished run, or its model.safetensors.
    kind
        onnx (for ONNX Runtime and many other programs), pt2 (torch.export), torchscript (for older programs), or
        safetensors (weights for `papi.load`).
    out
        The file to write. [default: model.* in the folder `exported` of the run]
    hub_folder
        Write a folder for Hugging Face's hub instead: model card, settings, weights and the exported file.
    """
    if out is not None and hub_folder is not None:
        raise UserError("--out and --hub-folder exclude each other: a file, or a folder with all files.")
    from papi.export.formats import FORMATS, input_name
    from papi.export.formats import export as write
    from papi.export.hub import write_hub_folder
    from papi.inference import load
    from papi.runs.folder import RunFolder

    if out is not None:
        _require_suffix(kind, out, {name: form.suffix for name, form in FORMATS.items()})
    model = load(run)
    home = run if run.is_dir() else run.parent
    folder = RunFolder(home)
    file = out or home / "exported" / f"model{FORMATS[kind].suffix}"
    if hub_folder is None:
        difference = write(model, kind, file)
    else:
        record, summary = folder.read_config() or {}, folder.read_summary() or {}
        name = home.resolve().name
        difference = write_hub_folder(model, kind, hub_folder, name, record, summary)
    console = make_console()
    console.print(f"The model is in {hub_folder or file}", soft_wrap=True)
    console.print(f"Its probabilities differ from the model's by {difference:.1g} at most.")
    if hub_folder is None:
        console.print(f"Next: {_use(kind, file, input_name(model))}", soft_wrap=True)
    else:
        console.print(f"Next: add a licence to {hub_folder / 'README.md'}, then upload the folder", soft_wrap=True)


def _require_suffix(kind: str, out: Path, suffixes: dict[str, str]) -> None:
    """Stop if a name promises another format: programs go by it, and PyTorch wants .pt2 for its own."""
    others = {"." + suffix.rpartition(".")[2] for name, suffix in suffixes.items() if name != kind}
    if out.suffix.lower() in others or (kind == "pt2" and out.suffix != suffixes[kind]):
        raise UserError(
            f"--out {out} is not a name for --format {kind}: let it end in {suffixes[kind]}, or choose another format."
        )


def _use(kind: str, file: Path, samples: str) -> str:
    """How a program gets probabilities from the file."""
    name = json.dumps(str(file))
    return {
        "onnx": f'onnxruntime.InferenceSession({name}).run(None, {{"{samples}": {samples}}})[0]',
        "pt2": f"torch.export.load({name}).module()({samples})",
        "torchscript": f"torch.jit.load({name})({samples})",
        "safetensors": f"papi.load({name}).predict_proba({samples})",
    }[kind]
