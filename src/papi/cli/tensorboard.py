"""Measurements of a run as TensorBoard scalars: `papi train --tensorboard`."""

from pathlib import Path
from typing import Any

from papi.errors import UserError


class Scalars:
    """Writes the row of every epoch into `tensorboard/` of a run folder.

    A run that goes on writes into the same folder; what an earlier part wrote beyond `first_epoch` is dropped there.
    """

    def __init__(self, folder: Path, first_epoch: int = 0) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise UserError("--tensorboard needs the package: pip install 'papi-pll[tensorboard]'.") from error
        self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=first_epoch + 1)  # type: ignore[no-untyped-call]

    def add(self, row: dict[str, Any]) -> None:
        """One epoch. It is on disk when this returns, so that a kill loses nothing and the curves are live."""
        for name, value in row.items():
            if name != "epoch" and isinstance(value, int | float):
                self._writer.add_scalar(_group(name), value, int(row["epoch"]) + 1)  # type: ignore[no-untyped-call]
        self._writer.flush()  # type: ignore[no-untyped-call]


def _group(name: str) -> str:
    """`test_accuracy` → `accuracy/test_accuracy`: TensorBoard shows what is before the stroke as a section."""
    for group in ("loss", "accuracy", "similarity", "only_right"):
        if group in name:
            return f"{group}/{name}"
    return f"run/{name}"
