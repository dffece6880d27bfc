"""What training costs, in encoder units: one forward pass of one image is a unit, one backward pass is two."""

from collections.abc import Mapping

from papi.config import RunConfig
from papi.data.known.sources import SOURCES
from papi.experiments.cells import settings_of
from papi.methods import find_method
from papi.methods.options import parse_options


def units(method: str, options: Mapping[str, str]) -> int:
    """Encoder units of a step for each image; where a warm-up costs less, those after it."""
    kind = find_method(method).Config
    return kind(**parse_options(kind, options)).encoder_passes.units


def epochs_within(budget: int, method: str, options: Mapping[str, str]) -> int:
    """The number of epochs that comes nearest to a budget of encoder units for each image."""
    return max(1, round(budget / units(method, options)))


def work(config: RunConfig) -> int:
    """Encoder units of a whole run."""
    settings = settings_of(config)
    cost = find_method(config.method).Config(**settings.options).encoder_passes.units
    return cost * settings.epochs * images(config)


def images(config: RunConfig) -> int:
    """Training images; of people's own data a guess, because they are not read for it."""
    count = SOURCES[config.data].counts[0] if config.data in SOURCES else 10_000
    return count if config.limit is None else min(config.limit, count)
