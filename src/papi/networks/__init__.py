"""Networks: an encoder, a linear classifier and, for methods that need one, a projector.

`registry` finds encoders by name, inside and outside the package; `pretrained` loads pretrained ones; `network` adds
classifier and projector. `preparation` defines how photos become inputs. Each other module is one encoder.
Imports `errors` and `files`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from papi.networks.network import Network as Network
    from papi.networks.network import Output as Output
    from papi.networks.network import build as build
    from papi.networks.network import compile_encoders as compile_encoders
    from papi.networks.network import folded as folded
    from papi.networks.network import require_compiler as require_compiler
    from papi.networks.registry import NETWORKS as NETWORKS
    from papi.networks.registry import Factory as Factory
    from papi.networks.registry import is_name as is_name
    from papi.networks.registry import reference as reference
    from papi.networks.registry import require_fitting as require_fitting
    from papi.networks.registry import title as title

# Loaded on first use: code that reads photos needs only their preparation, and not torch.
_LAZY = {
    "Network": "network",
    "Output": "network",
    "build": "network",
    "compile_encoders": "network",
    "folded": "network",
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
