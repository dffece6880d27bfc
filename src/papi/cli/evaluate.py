"""`papi evaluate`: how good a trained model is, class by class."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from papi.cli.terminal import make_console, printable
from papi.errors import UserError

if TYPE_CHECKING:
    import numpy as np


def evaluate(
    run: Path, /, *, data: str | None = None, data_dir: Annotated[Path | None, Parameter(show_default=False)] = None
) -> None:
    """Measure a trained model on test images: accuracy of each class and the most frequent confusions.

    Parameters
    ----------
    run
        Folder of a finished run.
    data
        Test images of another dataset with the same classes. [default: those of the run]
    data_dir
        Folder in which datasets lie. [default: that of the run]
    """
    from papi.config import from_dict
    from papi.inference import load
    from papi.metrics import accuracy, calibration_error
    from papi.preparation import load_dataset
    from papi.runfolder import RunFolder

    record = RunFolder(run).read_config()
    if record is None:
        raise UserError(f"{run} holds no run: give a folder that `papi train` has written.")
    model = load(run)
    config = from_dict(record["config"])
    if data is not None:  # the run's table of candidate sets is about its own images
        config = replace(config, data=data, candidates=replace(config.candidates, file=None))
    dataset = load_dataset(replace(config, data_dir=data_dir or config.data_dir))
    if dataset.test_images is None or dataset.test_labels is None:
        raise UserError(f"{dataset.name} has no test images with true labels: there is nothing to measure on.")
    if dataset.class_names != model.class_names:
        raise UserError(f"the classes of {dataset.name} are not those of the model: {', '.join(model.class_names)}.")
    probabilities = model.predict_proba(dataset.test_images)
    predicted = probabilities.argmax(1)
    console = make_console()
    right = accuracy(predicted, dataset.test_labels)
    console.print(f"Test accuracy {right:.2%} on {len(predicted):,} images", style="bold")
    console.print(
        f"Calibration error {calibration_error(probabilities, dataset.test_labels):.2%}: "
        "how far its certainty is, on average, from how often it is right",
        soft_wrap=True,
    )
    console.print(_class_table(predicted, dataset.test_labels, model.class_names))


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
