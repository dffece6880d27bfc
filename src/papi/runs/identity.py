"""The identity of a run: everything that determines its results, and nothing else."""

import hashlib
import json

import numpy as np

from papi.config import Settings, Values, to_dict
from papi.data.dataset import Dataset
from papi.data.digest import data_hash
from papi.networks.card import EncoderCard

# Settings that change neither the weights nor the metrics of a run. `preset` only fills in other fields, skipped data
# change the hash of the data, and the weights of an encoder are identified by their checksum.
NO_EFFECT = {"data_dir", "threads", "device", "checkpoint", "preset", "skip_bad", "weights", "embed_weights"}

# Default values of newer settings that do not change a run. Its identity omits them, so that older runs can resume.
NEUTRAL = {
    "data_holdout": 0.0, "select": "last", "calibrate": False, "optim.clip_norm": 0.0, "optim.average": 0.0,
    "optim.encoder_lr": 0.0, "data_views": 0, "data_image_column": None,
    "stop_when": "never", "patience": 5,
    "candidates.format": None, "candidates.column": None, "candidates.threshold": 0.0, "candidates.separator": None,
    "option.set_prior": "off", "option.balance_weight": 0.0, "option.cloud_rounds": 0,
    "option.balance_by_evidence": True, "option.exclusion_weight": 0.0, "option.second_view_weight": 0.0,
    "candidates.empty": "refuse", "classes_tree": None,
    "weights": "default", "tune": None, "head": None, "embed_weights": False,
}  # fmt: skip


def settings_identity(settings: Settings) -> Values:
    """Return all settings that determine a run's results as JSON values, without its data."""
    options = json.loads(json.dumps(settings.options))  # tuples become lists
    values = _without_neutral(to_dict(settings) | {"option": options})
    if not settings.candidates.weighs:  # as written by earlier versions, which could weigh votes only at the start
        del values["candidates"]["weigh"]
        values["candidates"]["weigh_votes"] = False
    return values


def _without_neutral(values: Values, prefix: str = "") -> Values:
    """Return all settings without the neutral values."""
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
    """Return everything that determines a run's results as JSON values, with hashes for data, parent and encoder."""
    identity = settings_identity(settings) | {"data_hash": data_hash(dataset, candidates)}
    if encoder is not None:
        identity["encoder"] = {"checksum": encoder.checksum, "preparation": encoder.preparation.to_json()}
    return identity if parent is None else identity | {"parent": parent}


def identity_hash(identity: Values) -> str:
    """Return the hash of an identity, which checkpoints store."""
    deciding = {name: value for name, value in identity.items() if name not in NO_EFFECT}
    return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()


def differences(mine: Values, theirs: Values, prefix: str = "") -> dict[str, tuple[object, object]]:
    """Return the settings in which two runs differ, as `{"optim.lr": (mine, theirs)}`."""
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
