"""What training costs, in encoder units: one forward pass of one image is a unit, one backward pass is two."""

import re
from collections.abc import Mapping

from papi.config import RunConfig
from papi.data.known.sources import SOURCES
from papi.methods import find_method
from papi.methods.options import parse_options
from papi.setup.settings import complete


def units(method: str, options: Mapping[str, str]) -> int:
    """Encoder units of a step for each image; where a warm-up costs less, those after it."""
    kind = find_method(method)
    passes = kind.passes_with(parse_options(kind.Config, dict(options)))
    counted = re.findall(r"(\d+)f \+ (\d+)b", passes) or [("1", "1")]  # one from elsewhere may not tell
    forward, backward = map(int, counted[-1])
    return forward + 2 * backward


def epochs_within(budget: int, method: str, options: Mapping[str, str]) -> int:
    """The number of epochs that comes nearest to a budget of encoder units for each image."""
    return max(1, round(budget / units(method, options)))


def work(config: RunConfig) -> int:
    """Encoder units of a whole run."""
    full = complete(config)
    assert full.epochs is not None
    return units(full.method, full.options) * full.epochs * images(config)


def images(config: RunConfig) -> int:
    """Training images; of people's own data a guess, because they are not read for it."""
    count = SOURCES[config.data].counts[0] if config.data in SOURCES else 10_000
    return count if config.limit is None else min(config.limit, count)
