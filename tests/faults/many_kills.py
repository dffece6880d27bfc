"""Kills real trainings at random moments, over all methods, and compares each with a run that was left alone.

    python tests/faults/many_kills.py [KILLS] [SEED]

`make faults` runs it. It prints kills, resumes and losses: runs that ended with another model or other rows.
"""

import random
import sys
import tempfile
from pathlib import Path

from preloaded import preloaded
from tiny_runs import kill_often, result, train, training_seconds, write_data

from papi.methods import METHODS

EPOCHS = 3


def main(kills: int, seed: int) -> int:
    """The number of runs that lost something."""
    shares = {name: kills // len(METHODS) + (k < kills % len(METHODS)) for k, name in enumerate(METHODS)}
    resumes = losses = 0
    with tempfile.TemporaryDirectory() as place, preloaded() as processes:
        data = write_data(Path(place) / "data.npz")
        for method, share in shares.items():
            twin, parts = Path(place) / f"{method}-twin", Path(place) / f"{method}-parts"
            alone = processes.run(*train(data, twin, method, EPOCHS), output=Path(place) / "said")
            assert alone.code == 0, alone.said
            chance = random.Random(f"{method} {seed}")
            command, seconds = train(data, parts, method, EPOCHS), training_seconds(twin)
            resumed = kill_often(processes, command, parts, share, seconds, chance)
            equal = result(parts) == result(twin)
            print(f"{method:11} {share} kills, {resumed} resumes, {'bit-equal' if equal else 'LOST'}", flush=True)
            resumes, losses = resumes + resumed, losses + (not equal)
    print(f"{kills} kills, {resumes} resumes, {losses} losses")
    return losses


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    sys.exit(main(*numbers, *(200, 0)[len(numbers) :]) > 0)
