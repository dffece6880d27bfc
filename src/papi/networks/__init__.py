"""Networks: an encoder, a linear classifier and, for methods that want one, a projector.

`registry` finds encoders by name, inside the package and outside; `pretrained` finds those that come with weights;
`network` completes them. `preparation` says how a photo becomes an encoder's input. Each other module is one encoder.
Imports `errors` and `files`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from papi.networks.network import Network as Network
    from papi.networks.network import Output as Output
    from papi.networks.network import build as build
    from papi.networks.network import compile_encoders as compile_encoders
    from papi.networks.network import require_compiler as require_compiler
    from papi.networks.registry import NETWORKS as NETWORKS
    from papi.networks.registry import Factory as Factory
    from papi.networks.registry import is_name as is_name
    from papi.networks.registry import reference as reference
    from papi.networks.registry import require_fitting as require_fitting
    from papi.networks.registry import title as title

# Loaded on first use: what reads photos needs to know how they are prepared, and does without torch.
_LAZY = {
    "Network": "network",
    "Output": "network",
    "build": "network",
    "compile_encoders": "network",
    "require_compiler": "network",
    "NETWORKS": "registry",
    "Factory": "registry",
    "is_name": "registry",
    "reference": "registry",
    "require_fitting": "registry",
    "title": "registry",
}
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


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"papi.networks.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'papi.networks' has no attribute {name!r}")
