"""Writes the metrics of a run as TensorBoard scalars: `papi train --tensorboard`."""

from pathlib import Path
from typing import Protocol

from papi.errors import UserError
from papi.files.durable import require_inside
from papi.runs.schema import EpochRow


class _Writer(Protocol):
    """The part of torch's untyped `SummaryWriter` that is used here."""

    def add_scalar(self, name: str, value: float, step: int, /) -> None: ...
    def flush(self) -> None: ...


class Scalars:
    """Writes the metrics of every epoch into `tensorboard/` in a run folder.

    A resumed run writes into the same folder and drops what was written after `first_epoch`.
    """

    def __init__(self, folder: Path, first_epoch: int = 0) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter  # an optional dependency
        except ImportError as error:
            raise UserError(
                "--tensorboard needs a package that is not installed: run pip install 'papi-pll[tensorboard]'."
            ) from error
        target = folder / "tensorboard"
        require_inside(target, folder)
        self._writer: _Writer = SummaryWriter(str(target), purge_step=first_epoch + 1)  # type: ignore[no-untyped-call]

    def add(self, row: EpochRow) -> None:
        """Write the metrics of one epoch to disk before returning, so that a kill loses nothing."""
        for name, value in row.to_json().items():
            if name != "epoch":
                self._writer.add_scalar(_group(name), value, row.epoch + 1)
        self._writer.flush()


def _group(name: str) -> str:
    """Add the section of a metric, which TensorBoard reads before the slash: `accuracy/test_accuracy`."""
    for group in ("loss", "accuracy", "similarity", "only_right"):
        if group in name:
            return f"{group}/{name}"
    return f"run/{name}"
