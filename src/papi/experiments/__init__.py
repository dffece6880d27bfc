"""Runs the experiments behind the tables and figures of the paper, and our own: `papi bench`.

This package contains the suites, the grid that trains their cells, and the tables and figures made from finished
runs. It does not import the report, the command line or the terminal.
"""

import importlib

from papi.errors import UserError, unknown
from papi.experiments import cpu, paper
from papi.experiments.suites import Scale, Suite

__all__ = ["SUITES", "find_suites"]

SUITES: dict[Scale, dict[str, Suite]] = {
    "cpu": {suite.name: suite for suite in cpu.SUITES},
    "paper": {suite.name: suite for suite in paper.SUITES},
}


def find_suites(name: str, scale: Scale) -> list[Suite]:
    """Find a suite by name, all suites of a scale (`all`), or a suite on the Python path (`module:SUITE`)."""
    if name == "all":
        return list(SUITES[scale].values())
    if ":" in name:
        return [_imported(name)]
    if name not in SUITES[scale]:
        raise unknown(f"suite of scale {scale}", name, SUITES[scale])
    return [SUITES[scale][name]]


def _imported(name: str) -> Suite:
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UserError(f"the suite {name} cannot be imported ({error}): add its folder to PYTHONPATH.") from error
    if not isinstance(found, Suite):
        raise UserError(f"{name} is not a papi.experiments.suites.Suite.")
    return found
