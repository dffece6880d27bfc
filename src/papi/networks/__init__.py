"""Networks: an encoder, a linear classifier and, for methods that want one, a projector.

`registry` finds encoders by name, inside the package and outside; `build` completes them. Each other module is one
encoder. Imports `errors` alone.
"""

from papi.networks.build import Network, Output, build, compile_encoders, require_compiler
from papi.networks.registry import NETWORKS, Factory, is_name, reference, require_fitting, title

__all__ = [
    "NETWORKS",
    "Factory",
    "Network",
    "Output",
    "build",
    "compile_encoders",
    "is_name",
    "reference",
    "require_compiler",
    "require_fitting",
    "title",
]
