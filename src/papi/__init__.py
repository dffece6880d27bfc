"""PaPi: image classifiers from candidate label sets."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from papi.inference import Model as Model
    from papi.inference import load as load

__version__ = "0.1.0"

# Loaded on first use, so that `papi --help` and readers of run folders start without torch.
_LAZY = {"load": "papi.inference", "Model": "papi.inference"}
__all__ = ["Model", "__version__", "load"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'papi' has no attribute {name!r}")
