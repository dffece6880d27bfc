"""Measurements of a run as TensorBoard scalars: `papi train --tensorboard`."""

from pathlib import Path
from typing import Protocol

from papi.errors import UserError
from papi.files.durable import require_inside
from papi.runs.schema import EpochRow


class _Writer(Protocol):
    """What is needed of torch's `SummaryWriter`, which has no types."""

    def add_scalar(self, name: str, value: float, step: int, /) -> None: ...
    def flush(self) -> None: ...


class Scalars:
    """Writes the row of every epoch into `tensorboard/` of a run folder.

    A run that is continued writes into the same folder; what an earlier part wrote beyond `first_epoch` is dropped.
    """

    def __init__(self, folder: Path, first_epoch: int = 0) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter  # an extra that not everybody has installed
        except ImportError as error:
            raise UserError(
                "--tensorboard needs a package that is not installed: pip install 'papi-pll[tensorboard]'."
            ) from error
        target = folder / "tensorboard"
        require_inside(target, folder)
        self._writer: _Writer = SummaryWriter(str(target), purge_step=first_epoch + 1)  # type: ignore[no-untyped-call]

    def add(self, row: EpochRow) -> None:
        """Write the numbers of one epoch. They are on disk when this returns, so a kill loses nothing."""
        for name, value in row.to_json().items():
            if name != "epoch":
                self._writer.add_scalar(_group(name), value, row.epoch + 1)
        self._writer.flush()


def _group(name: str) -> str:
    """`test_accuracy` → `accuracy/test_accuracy`: TensorBoard makes a section of what is before the slash."""
    for group in ("loss", "accuracy", "similarity", "only_right"):
        if group in name:
            return f"{group}/{name}"
    return f"run/{name}"
