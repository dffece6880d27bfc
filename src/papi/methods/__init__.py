"""The methods by name. A new one is a file beside these and a line here."""

import importlib

from papi.errors import UserError, unknown
from papi.methods.base import Method
from papi.methods.cc import CC
from papi.methods.dpll import DPLL
from papi.methods.lws import LWS
from papi.methods.papi import PaPi
from papi.methods.pico import PiCO
from papi.methods.proden import PRODEN
from papi.methods.rc import RC
from papi.methods.supervised import Supervised
from papi.methods.valen import VALEN

__all__ = ["METHODS", "Method", "find_method"]

METHODS: dict[str, type[Method]] = {
    "papi": PaPi,
    "dpll": DPLL,
    "pico": PiCO,
    "valen": VALEN,
    "proden": PRODEN,
    "lws": LWS,
    "rc": RC,
    "cc": CC,
    "supervised": Supervised,
}


def find_method(name: str) -> type[Method]:
    """A method of the table, or `package.module:Class` from anywhere on the Python path."""
    if ":" not in name:
        if name not in METHODS:
            raise unknown("method", name, [*METHODS, "package.module:Class"])
        return METHODS[name]
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UserError(f"--method {name} cannot be imported: {error}. Is its folder on PYTHONPATH?") from error
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise UserError(f"--method {name} is not a subclass of papi.methods.Method.")
    return found
