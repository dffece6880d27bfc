"""The cost of training in encoder units: a forward pass of one image is one unit, a backward pass is two."""

from collections.abc import Mapping

from papi.config import RunConfig
from papi.data.known.sources import SOURCES
from papi.experiments.cells import settings_of
from papi.methods import find_method
from papi.methods.options import parse_options


def units(method: str, options: Mapping[str, str]) -> int:
    """Encoder units per image in a step; for a method with a cheaper warm-up, those after the warm-up."""
    kind = find_method(method).Config
    return kind(**parse_options(kind, options)).encoder_passes.units


def epochs_within(budget: int, method: str, options: Mapping[str, str]) -> int:
    """The number of epochs whose cost is closest to a budget of encoder units per image."""
    return max(1, round(budget / units(method, options)))


def work(config: RunConfig) -> int:
    """Encoder units of a whole run."""
    settings = settings_of(config)
    cost = find_method(config.method).Config(**settings.options).encoder_passes.units
    return cost * settings.epochs * images(config)


def images(config: RunConfig) -> int:
    """Number of training images; a guess for user data, which are not read."""
    count = SOURCES[config.data].counts[0] if config.data in SOURCES else 10_000
    return count if config.limit is None else min(config.limit, count)
