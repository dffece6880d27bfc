"""How many labels are still wrong, estimated from a person's decisions, with an interval.

Images are offered in the order of their rank, so decisions are no random sample: at first far more labels are wrong
than later. Therefore every tenth image offered is drawn at random (an *audit*), and only those count for the images
nobody has looked at. Let ρ be how far the ranking has been decided without a gap. Who comes beyond ρ has had no
influence on what was offered, so the audits beyond ρ are a simple random sample of the images beyond ρ, in each
stratum of the ranking. A simulation in the tests checks that the interval covers the truth.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from papi.randomness import draws

STRATA = 3
EVERY = 10  # one image in so many is an audit
AUDITS = 2000  # of each stratum: nobody decides on more
LEAST = 3  # audits that a stratum needs before anything is said
PRIOR = (1 / 3, 2 / 3)  # added to the wrong and the right labels of a stratum: few audits then say little
Z = 1.75  # of a normal distribution, 90 % lie within 1.645; a little more, because samples are small


@dataclass(frozen=True)
class Plan:
    """Who is offered when. Images are named by their place in the ranking, 0 first."""

    starts: tuple[int, ...]  # first place of each stratum
    total: int
    audits: tuple[tuple[int, ...], ...]  # the random order of each stratum, or the beginning of it

    def queue(self) -> list[int]:
        """The order in which images are offered: by rank, every tenth from the strata in turn."""
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
    """Labels that are still wrong among the images not decided on."""

    wrong: float
    low: int
    high: int


def plan(chance: np.ndarray, seed: int) -> Plan:
    """Strata of the ranking, and a random order in each.

    `chance` `(n,)` is how likely each label is wrong, in the order of the ranking. Borders lie where the sum of
    √(p(1 − p)) is divided evenly: there an audit of each stratum is worth the same.
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
    """What decisions say about the rest; None while too few audits have been decided.

    `wrong` tells of each place that was decided whether its label was. Images that were skipped count nowhere.

    In a stratum let N be the images beyond ρ, m the leading audits that are decided, x the wrong among them, w the
    wrong among all decided. With a = x + 1/3 and b = m − x + 2/3, the labels still wrong are
    x + (N − m) a / (a + b) − w on average, and their variance is that of a beta-binomial number of N − m. The interval
    is that of a normal distribution for the root of the sum. Where the ranking is nearly through with a stratum, few
    audits lie beyond ρ; then all audits of the stratum give the rate, which is rather too high.
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
    """The audits from some place on, up to the first that is not decided."""
    offered = (place for place in order if place >= beyond and place not in left)
    return list(takewhile(lambda place: place in wrong, offered))
