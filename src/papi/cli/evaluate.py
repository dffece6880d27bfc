"""`papi evaluate`: how good a trained model is, class by class."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from papi.cli.terminal import make_console, printable
from papi.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from papi.config import RunConfig
    from papi.data.dataset import Dataset
    from papi.runs.folder import RunFolder


def evaluate(
    run: Path, /, *, data: str | None = None, data_dir: Annotated[Path | None, Parameter(show_default=False)] = None
) -> None:
    """Measure a trained model on test images: accuracy of each class and the most frequent confusions.

    Parameters
    ----------
    run
        Folder of a finished run.
    data
        Another dataset with the same classes: its test images, or if it has none, all images with true labels.
        [default: the test images of the run]
    data_dir
        Folder in which datasets lie. [default: that of the run]
    """
    from papi.config import from_dict
    from papi.inference import load
    from papi.runs.folder import RunFolder
    from papi.setup.data import load_dataset
    from papi.training.metrics import accuracy, calibration_error

    folder = RunFolder(run)
    record = folder.read_config()
    if record is None:
        raise UserError(f"{run} holds no run: give a folder that `papi train` has written.")
    model = load(run)
    config = from_dict(record["config"])
    config = replace(config, data_dir=data_dir or config.data_dir)
    # Of the data it was trained on, only what was held out tells how good it is, also if a person names them.
    other = data is not None and Path(data).resolve() != Path(config.data).resolve()
    if data is not None and other:
        config = _elsewhere(config, data, model.card.shape)
    dataset = load_dataset(config)
    images, labels = _labelled(dataset, other)
    if dataset.class_names != model.class_names:
        raise UserError(f"the classes of {dataset.name} are not those of the model: {', '.join(model.class_names)}.")
    probabilities = model.predict_proba(images)
    predicted = probabilities.argmax(1)
    console = make_console()
    warning = None if other else _warning(folder, record, config, dataset)
    if warning:
        console.print(f"Warning: {warning}", soft_wrap=True)
    for note in dataset.notes if other else ():  # of the run's own data they were told when it began
        console.print(f"Note: {printable(note)}", soft_wrap=True)
    what = ("samples" if dataset.kind == "features" else "images") + (f" of {dataset.name}" if other else "")
    right = accuracy(predicted, labels)
    console.print(f"Test accuracy {right:.2%} on {len(predicted):,} {what}", style="bold", soft_wrap=True)
    console.print(
        f"Calibration error {calibration_error(probabilities, labels):.2%}: "
        "how far its certainty is, on average, from how often it is right",
        soft_wrap=True,
    )
    console.print(_class_table(predicted, labels, model.class_names))
    console.print(f"Next: papi report {shlex.quote(str(run))} --open", soft_wrap=True)


def _elsewhere(config: "RunConfig", data: str, shape: tuple[int, ...]) -> "RunConfig":
    """How to read other data for a model that takes `shape`: whole, because none of them was trained on."""
    from papi.config import CandidatesConfig
    from papi.data.known.sources import SOURCES

    folder = data not in SOURCES and Path(data).is_dir()
    return replace(
        config,
        data=data,
        data_size=shape[-1] if folder and len(shape) == 3 else None,
        data_split="train",
        data_test_share=0,
        candidates=CandidatesConfig(allow_missing_truth=True),  # sets do not matter here, the run's or others
    )


def _labelled(dataset: "Dataset", other: bool) -> tuple["np.ndarray", "np.ndarray"]:
    """What to measure on: test images; of other data without them, all images."""
    if dataset.test_samples is not None and dataset.test_labels is not None:
        return dataset.test_samples, dataset.test_labels
    if not other:
        raise UserError(
            f"{dataset.name} has no test images with true labels: give other images with true labels with --data."
        )
    if dataset.labels is None:
        raise UserError(
            f"{dataset.name} has no true labels to measure by: it needs one for each row, or rows of the split `test`."
        )
    return dataset.samples, dataset.labels


def _warning(folder: "RunFolder", record: dict[str, Any], config: "RunConfig", dataset: "Dataset") -> str | None:
    """What to know if the data are not, or not surely, those that the run was trained on."""
    from papi.data.digest import same_data

    try:
        candidates = folder.read_arrays(folder.candidates_file)["candidates"]
    except (UserError, KeyError):
        doctor = f"papi doctor {shlex.quote(str(folder.path))}"
        return f"candidates.npz cannot be read, so nothing tells whether the data are those of the run: see `{doctor}`."
    enough = config.limit is None or config.limit <= len(dataset.samples)
    if enough and same_data(record, dataset.limited(config.limit), candidates):
        return None
    return f"{config.data} may have changed since the run was trained; this is measured on what there is now."


def _class_table(predicted: "np.ndarray", labels: "np.ndarray", names: tuple[str, ...]) -> Table:
    import numpy as np

    table = Table("class", "images", "accuracy", "most often taken for")
    classes = len(names)
    answers = np.bincount(labels * classes + predicted, minlength=classes**2).reshape(classes, classes)
    for name, row, right in zip(names, answers - np.diag(answers.diagonal()), answers.diagonal(), strict=True):
        wrong, total = int(row.max()), int(row.sum() + right)
        confused = f"{names[row.argmax()]} ({wrong / total:.1%})" if wrong else "–"
        share = f"{right / total:.1%}" if total else "–"
        table.add_row(Text(printable(name)), f"{total:,}", share, Text(printable(confused)))
    return table
