"""PaPi: train image classifiers from candidate label sets."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from papi.data.own.frames import read_candidates as read_candidates
    from papi.data.own.hub import unpack as unpack
    from papi.estimator import PartialLabelClassifier as PartialLabelClassifier
    from papi.inference import Model as Model
    from papi.inference import load as load
    from papi.training.scorers import approximated_accuracy_scorer as approximated_accuracy_scorer
    from papi.training.scorers import candidate_likelihood_scorer as candidate_likelihood_scorer
    from papi.training.scorers import covering_rate_scorer as covering_rate_scorer
    from papi.training.scorers import true_accuracy_scorer as true_accuracy_scorer

__version__ = "0.2.0"

# Imported on first use, so that `papi --help` and reports start without torch.
_LAZY = {
    "load": "papi.inference",
    "read_candidates": "papi.data.own.frames",
    "unpack": "papi.data.own.hub",
    "Model": "papi.inference",
    "PartialLabelClassifier": "papi.estimator",
    "approximated_accuracy_scorer": "papi.training.scorers",
    "candidate_likelihood_scorer": "papi.training.scorers",
    "covering_rate_scorer": "papi.training.scorers",
    "true_accuracy_scorer": "papi.training.scorers",
}
__all__ = [
    "Model",
    "PartialLabelClassifier",
    "__version__",
    "approximated_accuracy_scorer",
    "candidate_likelihood_scorer",
    "covering_rate_scorer",
    "load",
    "read_candidates",
    "true_accuracy_scorer",
    "unpack",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'papi' has no attribute {name!r}")
