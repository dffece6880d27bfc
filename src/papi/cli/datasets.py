"""`papi datasets`: what can be trained on by name, and whether it is on this machine."""

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text


def datasets(*, data_dir: Path = Path("data")) -> None:
    """List the known datasets and whether they are on this machine.

    Parameters
    ----------
    data_dir
        Folder in which datasets lie.
    """
    from papi.data.sources import SOURCES

    console = Console(markup=False, highlight=False)
    table = Table("name", "what it is", "classes", "licence", "here")
    for name, source in SOURCES.items():
        here = source.find(data_dir) is not None
        table.add_row(name, source.title, str(len(source.class_names)), source.licence, Text("yes" if here else "no"))
    console.print(table)
    for name, source in SOURCES.items():
        if source.find(data_dir) is None:
            console.print(f"{name}: {source.hint}.", soft_wrap=True)
