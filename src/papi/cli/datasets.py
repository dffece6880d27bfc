"""`papi datasets`: list the known datasets, show which are on this machine, and download them."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table

from papi.cli.terminal import make_console
from papi.data.known.download import fetch
from papi.data.known.published import Source
from papi.data.known.sources import SOURCES
from papi.errors import UserError, unknown

datasets = App(name="datasets")

_DataDir = Annotated[Path, Parameter(help="Folder where known datasets are stored.")]


@datasets.default
def show(name: str | None = None, /, *, data_dir: _DataDir = Path("data")) -> None:
    """List the known datasets and show which are on this machine, or describe one dataset.

    Parameters
    ----------
    name
        Name of a known dataset. [default: list all]
    """
    console = make_console()
    if name is not None:
        if name not in SOURCES:
            raise unknown("dataset", name, SOURCES)
        _describe(console, name, SOURCES[name], data_dir)
        return
    table = Table(box=None, padding=(0, 1))
    for column in ("name", "training + test", "size", "classes", "licence", "on this machine"):
        table.add_column(column, no_wrap=True, header_style="bold")
    absent = {}
    for each, source in SOURCES.items():
        if source.find(data_dir) is None:
            absent[each] = source
        here = "no" if each in absent else "yes"
        table.add_row(each, _counts(source), _shape(source), str(source.classes), source.licence, here)
    console.print(table)
    console.print("`papi datasets NAME` describes a dataset; `papi train --data NAME` trains on it.")
    if offered := [each for each, source in absent.items() if source.remotes]:
        console.print(f"`papi datasets get NAME` downloads {', '.join(offered)}.", soft_wrap=True)


def _counts(source: Source) -> str:
    return " + ".join(f"{count:,}" for count in source.counts if count)


def _samples(source: Source) -> str:
    split = " (training + test)" if all(source.counts) else ""
    return f"{_counts(source)}{split}, each {_shape(source)}{' features' if len(source.shape) == 1 else ''}"


def _shape(source: Source) -> str:
    return "x".join(map(str, source.shape))


def _describe(console: Console, name: str, source: Source, data_dir: Path) -> None:
    """Print the details of a dataset."""
    found = source.find(data_dir)
    numbers = {"mean": source.mean, "std": source.std}
    facts = {
        "title": source.title,
        "published at": source.published,
        "licence": source.licence,
        "samples": _samples(source),
        "classes": f"{source.classes}{': ' if source.class_names else ''}{', '.join(source.class_names)}",
        **{key: ", ".join(map(str, value)) or "computed from the data" for key, value in numbers.items()},
        "views": _views(source),
        "found": str(found) if found else f"no: {source.hint(name, data_dir)}",
    }
    for fact, value in facts.items():
        console.print(f"{fact + ':':13} {value.strip()}", soft_wrap=True)
    for remote in source.remotes:
        console.print(f"{'file:':13} {remote.target} from {remote.url}, MD5 {remote.md5}", soft_wrap=True)


def _views(source: Source) -> str:
    """Describe the weak and the strong augmentation."""
    if len(source.shape) == 1:
        return "weak: noise; strong: more noise, and some features dropped"
    recipe = source.recipe
    weak = [
        f"random crop resized to {recipe.resized_crop}" if recipe.resized_crop else "",
        "horizontal flip" if recipe.flip else "",
        f"random crop with padding {recipe.crop_padding}" if recipe.crop_padding else "",
    ]
    strong = [
        f"AutoAugment {recipe.policy}" if recipe.policy else "",
        f"cutout {recipe.cutout}" if recipe.cutout else "",
    ]
    return f"weak: {', '.join(filter(None, weak)) or 'none'}; strong: also {', '.join(filter(None, strong))}"


@datasets.command
def get(name: str, /, *, data_dir: _DataDir = Path("data")) -> None:
    """Download a dataset and verify it. The same command continues an interrupted download.

    Parameters
    ----------
    name
        Name of a known dataset.
    """
    if name not in SOURCES:
        raise unknown("dataset", name, SOURCES)
    source = SOURCES[name]
    console = make_console()
    found = source.find(data_dir)
    if found is not None:
        console.print(f"{name} is already here: {found}", soft_wrap=True)
        return
    if not source.remotes:
        raise UserError(f"{name} cannot be downloaded: {source.hint(name, data_dir)}.")
    with _bar(console) as bar:
        for remote in source.remotes:
            fetch(remote, data_dir, _shown(bar, Path(remote.target).name))
    _conclude(console, name, source, data_dir)


def _conclude(console: Console, name: str, source: Source, data_dir: Path) -> None:
    found = source.find(data_dir)
    assert found is not None, "all its files have just been downloaded"
    console.print(f"{name} is ready: {found}", soft_wrap=True)
    console.print(f"Licence: {source.licence} ({source.published})", soft_wrap=True)


def _shown(bar: Progress, name: str) -> Callable[[int, int], None]:
    """Return a callback that shows the bytes of one download in the bar."""
    task = bar.add_task(name, total=None)
    return lambda done, total: bar.update(task, completed=done, total=total or None)


def _bar(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    return Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal)
