"""PaPi: image classifiers from candidate label sets."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from papi.estimator import PartialLabelClassifier as PartialLabelClassifier
    from papi.estimator import approximated_accuracy_scorer as approximated_accuracy_scorer
    from papi.estimator import candidate_likelihood_scorer as candidate_likelihood_scorer
    from papi.estimator import covering_rate_scorer as covering_rate_scorer
    from papi.inference import Model as Model
    from papi.inference import load as load

__version__ = "0.1.0"

# Loaded on first use, so that `papi --help` and readers of run folders start without torch.
_LAZY = {
    "load": "papi.inference",
    "Model": "papi.inference",
    "PartialLabelClassifier": "papi.estimator",
    "approximated_accuracy_scorer": "papi.estimator",
    "candidate_likelihood_scorer": "papi.estimator",
    "covering_rate_scorer": "papi.estimator",
}
__all__ = [
    "Model",
    "PartialLabelClassifier",
    "__version__",
    "approximated_accuracy_scorer",
    "candidate_likelihood_scorer",
    "covering_rate_scorer",
    "load",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'papi' has no attribute {name!r}")
