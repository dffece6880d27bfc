"""From what a person typed to a `Dataset`: a known dataset by name, or data of one's own by path."""

from pathlib import Path

from papi.data.dataset import Dataset, Progress, Report, refuse, silent
from papi.data.known.sources import SOURCES, load_known
from papi.data.own.load import Reading, annotate, load_own, refuse_votes
from papi.errors import UserError, unknown

_AS_IT_COMES = Reading()


def load(
    data: str,
    data_dir: Path,
    how: Reading = _AS_IT_COMES,
    report: Report = refuse,
    progress: Progress = silent,
) -> Dataset:
    """A dataset by name, or from a folder or file of one's own, ready to train on.

    Test samples are held out where the data have none but true labels, and samples without published constants are
    measured.
    """
    if data in SOURCES:
        dataset = load_known(data, data_dir, how, progress)
        if how.annotations is None:
            refuse_votes(data, how)
        else:
            dataset = annotate(dataset, how, report)
    elif Path(data).exists() or Path(data).suffix or "/" in data:
        if how.split != "train":
            raise UserError(f"--data.split is for known datasets; {data} is your own: leave it out.")
        dataset = load_own(Path(data), how, report, progress)
    else:
        raise unknown("dataset", data, [*SOURCES, "a path to your own data"])
    if not len(dataset.samples):
        raise UserError(f"{data} has no usable rows: there is nothing to train on.")
    dataset = dataset.with_held_out(how.test_share, how.seed)
    return dataset if dataset.mean else dataset.measured()
