"""What training costs, in encoder units: one forward pass of one image is a unit, one backward pass is two."""

from collections.abc import Mapping

from papi.config import RunConfig
from papi.data.sources import SOURCES
from papi.presets import complete

# Forward passes plus twice the backward passes of a step. VALEN's are those after its warm-up.
UNITS = {
    "papi": 10,
    "dpll": 9,
    "pico": 4,
    "valen": 6,
    "proden": 3,
    "lws": 4,
    "rc": 4,
    "cc": 3,
    "supervised": 3,
}
_PASSES = {"paper": 10, "two": 6, "one": 3}


def units(method: str, options: Mapping[str, str]) -> int:
    """Encoder units of a step for each image."""
    if method != "papi":
        return UNITS.get(method, 3)  # of one from elsewhere nothing is known: a forward and a backward pass
    if options.get("alignment") == "off":  # Variant 2
        return 3
    passes = _PASSES[options.get("passes", "paper")]
    return min(6, passes) if options.get("mixup") == "off" else passes  # Variant 1 has no mixed passes


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
