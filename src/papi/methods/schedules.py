"""Schedules: values that change over a run, as pure functions of its progress."""

import math

from papi.types import Progress


def linear(start: float, end: float, fraction: float) -> float:
    """From `start` at fraction 0 to `end` at fraction 1."""
    return start + (end - start) * fraction


def ramp(position: float, length: float) -> float:
    """Rises from 0 to 1 over `length` and stays there; always 1 for a length of 0."""
    return min(position / length, 1.0) if length > 0 else 1.0


def cosine_by_epoch(progress: Progress, floor: float) -> float:
    """From 1 towards `floor`, constant within an epoch; the paper's schedule has a floor of 1e-3."""
    return floor + (1 - floor) * (1 + math.cos(math.pi * progress.epoch / progress.epochs)) / 2


def warmup_cosine(progress: Progress, warmup: float, floor: float) -> float:
    """Rises linearly over the fraction `warmup` of all steps, then falls along a cosine to `floor` at the last step."""
    total = progress.epochs * progress.steps
    position = progress.epoch * progress.steps + progress.step + 1  # so that the first step is not zero
    rising = max(1, round(warmup * total))
    if position <= rising:
        return position / rising
    return floor + (1 - floor) * (1 + math.cos(math.pi * (position - rising) / (total - rising))) / 2


def multistep(progress: Progress, milestones: tuple[float, ...], factor: float) -> float:
    """Starts at 1, multiplied by `factor` at the first epoch at or after each milestone, a fraction of the run."""
    passed = sum(progress.epoch >= milestone * progress.epochs for milestone in milestones)
    return math.pow(factor, passed)


def halving(progress: Progress, half_life: float) -> float:
    """Exponential decay with this half-life in epochs, constant within an epoch."""
    return math.pow(0.5, progress.epoch / half_life)
