"""A custom method outside the package: the average loss over all candidates.

Train it with this script, or from the command line with all its options:

    python examples/add_a_method.py
    PYTHONPATH=examples papi train --method add_a_method:AverageLoss
"""

from pathlib import Path

from papi.config import RunConfig
from papi.methods.base import Method
from papi.methods.losses import soft_cross_entropy
from papi.train import train
from papi.training.engine import EpochEnded
from papi.types import Batch, Progress, StepOutput


class AverageLoss(Method):
    """All candidates always have equal weight: the simplest way to learn from candidate sets."""

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        logits = self.network(batch.views[0]).logits
        target = batch.candidates / batch.candidates.sum(1, keepdim=True)
        return StepOutput(soft_cross_entropy(logits, target), logits)


def main(config: RunConfig, folder: Path) -> None:
    for event in train(config, folder):
        if isinstance(event, EpochEnded):
            print(f"epoch {event.row.epoch + 1}: test accuracy {event.row.test_accuracy:.1%}")


if __name__ == "__main__":
    main(RunConfig(method="add_a_method:AverageLoss", limit=2000, epochs=4), Path("runs/add_a_method"))
