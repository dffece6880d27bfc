"""The methods, one file each with its settings and presets, and the building blocks of methods.

Imports `networks`, `distributed` and the foundations. A new method is a file here and a line in the table below.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from papi.errors import UserError, unknown

if TYPE_CHECKING:
    from papi.methods.base import Method

__all__ = ["METHODS", "find_method"]

# The class of each method, imported on first use like methods from outside the package.
METHODS = {
    "papi": "papi.methods.papi:PaPi",
    "dpll": "papi.methods.dpll:DPLL",
    "pico": "papi.methods.pico:PiCO",
    "valen": "papi.methods.valen:VALEN",
    "proden": "papi.methods.proden:PRODEN",
    "lws": "papi.methods.lws:LWS",
    "rc": "papi.methods.rc:RC",
    "cc": "papi.methods.cc:CC",
    "dirk": "papi.methods.dirk:DIRK",
    "em": "papi.methods.em:EM",
    "neighbours": "papi.methods.neighbours:NeighbourVotes",
    "supervised": "papi.methods.supervised:Supervised",
}


def find_method(name: str) -> "type[Method]":
    """Return a method of the table, or `package.module:Class` from the Python path."""
    from papi.methods.base import Method  # loads torch, which lists of names do not need

    if ":" not in name and name not in METHODS:
        raise unknown("method", name, METHODS, "package.module:Class")
    module, _, attribute = METHODS.get(name, name).partition(":")
    if not all(part.isidentifier() for part in f"{module}.{attribute}".split(".")):
        raise UserError(f"--method {name} does not name a class: write it like package.module:Class.")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UserError(f"--method {name} cannot be imported ({error}): add its folder to PYTHONPATH.") from error
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise UserError(f"--method {name} is not a subclass of papi.methods.base.Method.")
    return found
