"""What makes two runs the same: all that decides their results, and nothing else."""

import hashlib
import json

import numpy as np

from papi.config import Settings, Values, to_dict
from papi.data.dataset import Dataset
from papi.data.digest import data_hash

# What changes neither the weights nor the metrics of a run. `preset` only filled in the other fields.
NO_EFFECT = {"data_dir", "threads", "device", "checkpoint", "preset"}

# Settings at which a run does what it did before they existed. Its identity leaves them out, so that it can go on.
NEUTRAL = {"data_holdout": 0.0, "select": "last", "calibrate": False}


def settings_identity(settings: Settings) -> Values:
    """All settings that a run's result depends on, as JSON values; its data are not in it."""
    options = json.loads(json.dumps(settings.options))  # tuples as lists
    return {name: value for name, value in to_dict(settings).items() if value != NEUTRAL.get(name, ...)} | {
        "option": options
    }


def identity_of(settings: Settings, dataset: Dataset, candidates: np.ndarray, parent: str | None = None) -> Values:
    """All that decides the result of a run, as JSON values. Data are told by a hash, and so is a parent's model."""
    identity = settings_identity(settings) | {"data_hash": data_hash(dataset, candidates)}
    return identity if parent is None else identity | {"parent": parent}


def identity_hash(identity: Values) -> str:
    """A short name for all that decides a run's result: what checkpoints are tied to."""
    deciding = {name: value for name, value in identity.items() if name not in NO_EFFECT}
    return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()


def differences(mine: Values, theirs: Values, prefix: str = "") -> dict[str, tuple[object, object]]:
    """Settings that make two runs different, as `{"optim.lr": (mine, theirs)}`."""
    found: dict[str, tuple[object, object]] = {}
    for key in sorted(mine.keys() | theirs.keys()):
        a, b = mine.get(key), theirs.get(key)
        if not prefix and key in NO_EFFECT:
            continue
        if isinstance(a, dict) and isinstance(b, dict):
            found |= differences(a, b, f"{prefix}{key}.")
        elif a != b:
            found[f"{prefix}{key}"] = (a, b)
    return found
