"""A method whose steps take for ever, to be interrupted: `--method sleeping:Sleeping`."""

import time
from pathlib import Path

from papi.methods.proden import PRODEN
from papi.types import Batch, Progress, StepOutput


class Sleeping(PRODEN):
    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        Path("asleep").touch()
        time.sleep(600)
        return super().training_step(batch, progress)
