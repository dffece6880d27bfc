"""Estimates how many labels are still wrong from a person's decisions, with an interval.

Images are offered in the order of their rank, so decisions are not a random sample: the first images have far more
wrong labels than later ones. Therefore every tenth image offered is drawn at random (an *audit*), and only audits are
used to estimate the images without a decision. Let ρ be the rank up to which all images are decided. The images beyond
ρ did not influence what was offered, so in each stratum of the ranking, the audits beyond ρ are a simple random sample
of the images beyond ρ. A simulation in the tests checks the coverage of the interval.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from papi.randomness import draws

STRATA = 3
EVERY = 10  # every tenth image is an audit
AUDITS = 2000  # per stratum
LEAST = 3  # decided audits that each stratum needs for an estimate
PRIOR = (1 / 3, 2 / 3)  # pseudo-counts of wrong and right labels per stratum
Z = 1.75  # 90 % of a normal distribution lie within 1.645; a little more, because samples are small


@dataclass(frozen=True)
class Plan:
    """The order in which images are offered. Images are numbered by their rank, from 0."""

    starts: tuple[int, ...]  # first rank of each stratum
    total: int
    audits: tuple[tuple[int, ...], ...]  # the random order of each stratum, or the start of it

    def queue(self) -> list[int]:
        """Return the order in which images are offered: by rank, with every tenth from the strata in turn."""
        offered: list[int] = []
        placed = np.zeros(self.total, bool)
        waiting = [iter(order) for order in self.audits]
        rank, turn = iter(range(self.total)), 0
        while len(offered) < self.total:
            found = None
            if len(offered) % EVERY == EVERY - 1:
                for step in range(len(waiting)):
                    stratum = (turn + step) % len(waiting)
                    found = next((place for place in waiting[stratum] if not placed[place]), None)
                    if found is not None:
                        turn = stratum + 1
                        break
            if found is None:
                found = next(place for place in rank if not placed[place])
            placed[found] = True
            offered.append(found)
        return offered


@dataclass(frozen=True)
class Estimate:
    """The number of wrong labels among the images without a decision."""

    wrong: float
    low: int
    high: int


def plan(chance: np.ndarray, seed: int) -> Plan:
    """Divide the ranking into strata and draw a random order in each.

    `chance` `(n,)` is the probability that each label is wrong, in the order of the ranking. The boundaries divide the
    sum of √(p(1 − p)) evenly, so that an audit is equally informative in each stratum.
    """
    p = np.clip(chance, 0.02, 0.98)
    spread = np.sqrt(p * (1 - p)).cumsum()
    borders = np.searchsorted(spread, spread[-1] * np.arange(1, STRATA) / STRATA) if len(p) else []
    starts = sorted({0, *(int(border) for border in borders)})
    random = draws(seed, "audit")
    ends = [*starts[1:], len(p)]
    orders = [random.permutation(end - start)[:AUDITS] + start for start, end in zip(starts, ends, strict=True)]
    return Plan(tuple(starts), len(p), tuple(tuple(int(i) for i in order) for order in orders))


def estimate(plan: Plan, wrong: Mapping[int, bool], skipped: Sequence[int] = ()) -> Estimate | None:
    """Estimate the wrong labels among the remaining images; None if too few audits have been decided.

    `wrong` maps each decided rank to whether its label was wrong. Skipped images are ignored.

    In a stratum, let N be the number of images beyond ρ, m the number of leading audits that are decided, x the wrong
    labels among them, and w the wrong labels among all decided images. With a = x + 1/3 and b = m − x + 2/3, the
    expected number of labels that are still wrong is x + (N − m) a / (a + b) − w, and its variance is that of a
    beta-binomial variable of size N − m. The interval is that of a normal distribution for the square root of the sum.
    If the ranking is almost at the end of a stratum, few audits lie beyond ρ; then the rate is estimated from all
    audits of the stratum, which is slightly too high.
    """
    left = set(skipped)
    known = [place in wrong or place in left for place in range(plan.total)]
    rho = next((place for place, decided in enumerate(known) if not decided), plan.total)
    mean = variance = 0.0
    ends = [*plan.starts[1:], plan.total]
    undecided = 0
    for start, end, order in zip(plan.starts, ends, plan.audits, strict=True):
        beyond = [place for place in range(max(start, rho), end) if place not in left]
        decided = [place for place in beyond if place in wrong]
        if len(decided) == len(beyond):
            continue
        sample = _leading(order, wrong, left, rho)
        elsewhere = len(sample) < LEAST
        sample = _leading(order, wrong, left, start) if elsewhere else sample
        if len(sample) < LEAST:
            return None
        found = sum(wrong[place] for place in sample)
        a, b = found + PRIOR[0], len(sample) - found + PRIOR[1]
        rest = len(beyond) - (len(decided) if elsewhere else len(sample))
        others = 0 if elsewhere else found - sum(wrong[place] for place in decided)
        mean += max(0.0, others + rest * a / (a + b))
        variance += rest * a * b * (a + b + rest) / ((a + b) ** 2 * (a + b + 1))
        undecided += len(beyond) - len(decided)
    if not undecided:
        return Estimate(0.0, 0, 0)
    root, spread = math.sqrt(mean), Z * math.sqrt(variance) / (2 * math.sqrt(max(mean, 1e-9)))
    low, high = max(0.0, root - spread) ** 2, (root + spread) ** 2
    return Estimate(min(mean, undecided), math.floor(low), min(math.ceil(high), undecided))


def _leading(order: Sequence[int], wrong: Mapping[int, bool], left: set[int], beyond: int) -> list[int]:
    """Return the audits from a rank on, up to the first undecided one."""
    offered = (place for place in order if place >= beyond and place not in left)
    return list(takewhile(lambda place: place in wrong, offered))
