"""The paper's tables and figures, and our own, as grids of runs: `papi bench`."""

import importlib

from papi.errors import UserError, unknown
from papi.experiments import cpu, paper
from papi.experiments.suites import Scale, Suite

__all__ = ["SUITES", "find_suite"]

SUITES: dict[Scale, dict[str, Suite]] = {
    "cpu": {suite.name: suite for suite in cpu.SUITES},
    "paper": {suite.name: suite for suite in paper.SUITES},
}


def find_suite(name: str, scale: Scale) -> Suite:
    """A suite of the table, or `package.module:SUITE` from anywhere on the Python path."""
    if ":" in name:
        module, _, attribute = name.partition(":")
        try:
            found = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise UserError(f"the suite {name} cannot be imported: {error}. Is its folder on PYTHONPATH?") from error
        if not isinstance(found, Suite):
            raise UserError(f"{name} is not a papi.experiments.suites.Suite.")
        return found
    if name not in SUITES[scale]:
        raise unknown(f"suite of scale {scale}", name, SUITES[scale])
    return SUITES[scale][name]
