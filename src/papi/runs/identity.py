"""What makes two runs the same: all that decides their results, and nothing else."""

import hashlib
import json

import numpy as np

from papi.config import Settings, Values, to_dict
from papi.data.dataset import Dataset
from papi.data.digest import data_hash
from papi.networks.card import EncoderCard

# What changes neither the weights nor the metrics of a run. `preset` only filled in the other fields, and what was left
# out of the data is told by their hash.
# Weights of an encoder are told by their checksum, wherever they come from.
NO_EFFECT = {"data_dir", "threads", "device", "checkpoint", "preset", "skip_bad", "weights", "embed_weights"}

# Settings at which a run does what it did before they existed. Its identity leaves them out, so that it can go on.
NEUTRAL = {
    "data_holdout": 0.0, "select": "last", "calibrate": False, "optim.clip_norm": 0.0, "optim.average": 0.0,
    "optim.encoder_lr": 0.0, "data_views": 0, "data_image_column": None,
    "stop_when": "never", "patience": 5,
    "candidates.format": None, "candidates.column": None, "candidates.threshold": 0.0, "candidates.separator": None,
    "option.set_prior": "off",
    "candidates.empty": "refuse", "classes_tree": None,
    "weights": "default", "tune": None, "head": None, "embed_weights": False,
}  # fmt: skip


def settings_identity(settings: Settings) -> Values:
    """All settings that a run's result depends on, as JSON values; its data are not in it."""
    options = json.loads(json.dumps(settings.options))  # tuples as lists
    values = _without_neutral(to_dict(settings) | {"option": options})
    if not settings.candidates.weighs:  # as earlier versions wrote it; they could weigh votes at the start alone
        del values["candidates"]["weigh"]
        values["candidates"]["weigh_votes"] = False
    return values


def _without_neutral(values: Values, prefix: str = "") -> Values:
    """All settings but those at which nothing changes."""
    return {
        name: _without_neutral(value, f"{prefix}{name}.") if isinstance(value, dict) else value
        for name, value in values.items()
        if value != NEUTRAL.get(prefix + name, ...)
    }


def identity_of(
    settings: Settings,
    dataset: Dataset,
    candidates: np.ndarray,
    parent: str | None = None,
    encoder: EncoderCard | None = None,
) -> Values:
    """All that decides the result of a run, as JSON values. Data, a parent's model and an encoder count by hashes."""
    identity = settings_identity(settings) | {"data_hash": data_hash(dataset, candidates)}
    if encoder is not None:
        identity["encoder"] = {"checksum": encoder.checksum, "preparation": encoder.preparation.to_json()}
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
