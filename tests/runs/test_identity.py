"""What makes two runs the same."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from papi.config import CandidatesConfig, CheckpointConfig, OptimConfig, RunConfig, to_dict
from papi.data.dataset import Dataset
from papi.runs.identity import NO_EFFECT, differences, identity_hash, identity_of, settings_identity
from papi.setup.settings import complete


def identity(config: RunConfig, **more: object) -> dict[str, object]:
    return settings_identity(complete(replace(config, **more), features=False, sets_given=False))


@pytest.mark.parametrize(
    "change",
    [
        {"threads": 2},
        {"device": "cpu"},
        {"data_dir": Path("elsewhere")},
        {"checkpoint": CheckpointConfig("7")},
        {"option": ("passes=one",)},  # what the preset chooses anyway
        {"epochs": 40},
        {"optim": OptimConfig(lr=0.05)},
        {"optim": OptimConfig(clip_norm=0.0)},
        {"data_holdout": 0.0},
    ],
)
def test_what_has_no_effect_makes_no_other_run(change: dict[str, object]) -> None:
    mine, other = identity(RunConfig()), identity(RunConfig(), **change)
    assert differences(mine, other) == {}
    assert identity_hash(mine) == identity_hash(other)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"epochs": 7},
        {"option": ("temperature=0.7",)},
        {"optim": OptimConfig(lr=0.3)},
        {"optim": OptimConfig(clip_norm=1.0)},
        {"optim": OptimConfig(encoder_lr=0.01)},
        {"candidates": CandidatesConfig(flip_rate=0.3)},
        {"candidates": CandidatesConfig(kind="noisy")},
        {"method": "proden"},
        {"network": "resnet18"},
        {"calibrate": True},
        {"data_holdout": 0.2},
        {"precision": "fp16"},
    ],
)
def test_what_has_an_effect_makes_another_run(change: dict[str, object]) -> None:
    mine, other = identity(RunConfig()), identity(RunConfig(), **change)
    assert differences(mine, other)
    assert identity_hash(mine) != identity_hash(other)


def test_every_setting_that_is_not_declared_harmless_counts() -> None:
    """A field that comes later is part of the identity unless somebody decides otherwise."""
    deciding = {field.name for field in fields(RunConfig)} - NO_EFFECT
    changed = {
        "select": "covering-rate",
        "calibrate": True,
        "stop_when": "covering-rate",
        "patience": 3,
        "skip_bad": True,
        "data_image_column": "photo",
    }
    full = identity(RunConfig(), **changed, classes_tree=Path("tree.csv"), tune="head", head="mlp", data_views=2)
    assert deciding <= full.keys()


def test_settings_that_do_what_was_done_before_they_existed_are_left_out() -> None:
    mine = identity(RunConfig())
    assert not {"select", "calibrate", "data_holdout"} & mine.keys()
    assert isinstance(mine["optim"], dict)
    assert "clip_norm" not in mine["optim"]


def test_data_and_parents_count(toy_dataset: Dataset) -> None:
    settings = complete(RunConfig(), features=False, sets_given=True)
    sets = np.ones((96, 4), bool)
    mine = identity_of(settings, toy_dataset, sets)
    assert identity_of(settings, toy_dataset, sets) == mine
    other = sets.copy()
    other[0, 0] = False
    assert differences(mine, identity_of(settings, toy_dataset, other)).keys() == {"data_hash"}
    assert differences(mine, identity_of(settings, toy_dataset, sets, parent="abc")).keys() == {"parent"}


def test_differences_are_named_by_their_options() -> None:
    a = to_dict(RunConfig(threads=1, device="cpu"))
    b = to_dict(RunConfig(threads=2, device="cuda", seed=1, optim=OptimConfig(lr=0.5)))
    assert differences(a, b) == {"seed": (0, 1), "optim.lr": (None, 0.5)}
