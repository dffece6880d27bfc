"""A cell is told from others by what decides its result, and its command gives the same run."""

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import tiny_suite

import papi.cli
from papi.config import CandidatesConfig, OptimConfig, RunConfig, from_dict, to_dict
from papi.experiments import SUITES, cells
from papi.experiments.compute import epochs_within, units


@pytest.fixture
def config(toy_npz: Path) -> RunConfig:
    return next(tiny_suite(toy_npz).cells())


def test_what_changes_nothing_does_not_count(config: RunConfig) -> None:
    same = dataclasses.replace(config, threads=7, device="cuda", data_dir=Path("/data"))
    assert cells.key(same) == cells.key(config)
    assert cells.key(cells.settings_of(config)) == cells.key(config)
    assert cells.key(dataclasses.replace(config, option=("view=weak",))) == cells.key(config)  # its default
    assert cells.key(dataclasses.replace(config, option=("view=plain",))) != cells.key(config)


def test_kinds_of_candidates_are_those_the_data_would_get() -> None:
    uniform = CandidatesConfig(kind="uniform")
    assert cells.key(RunConfig(data="cifar10")) == cells.key(RunConfig(data="cifar10", candidates=uniform))
    hierarchical = CandidatesConfig(kind="hierarchical")
    assert cells.key(RunConfig(data="cifar100-h")) == cells.key(RunConfig(data="cifar100-h", candidates=hierarchical))
    assert cells.key(RunConfig(data="cifar100-h")) != cells.key(RunConfig(data="cifar100-h", candidates=uniform))


@pytest.mark.parametrize(
    "config",
    [
        RunConfig(),
        RunConfig(
            data="cifar100-h", limit=100, method="papi", option=("mixup=off", "passes=paper"), epochs=3, drop_last=False
        ),
        RunConfig(data="x.npz", data_size=32, data_test_share=0.5, optim=OptimConfig(lr=0.1, nesterov=True), seed=4),
        RunConfig(optim=OptimConfig(nesterov=False)),
        RunConfig(candidates=CandidatesConfig(kind="instance-dependent", rule="paper", allow_missing_truth=True)),
    ],
)
def test_arguments_give_the_same_config(config: RunConfig) -> None:
    _, bound, _ = papi.cli.app.parse_args(["train", *cells.arguments(config)])
    assert bound.arguments.get("config", RunConfig()) == config


def test_every_cell_of_every_suite_has_a_command_and_a_folder_of_its_own() -> None:
    for suites in SUITES.values():
        runs = {cells.key(config): config for suite in suites.values() for config in suite.cells()}
        assert len({cells.folder_name(config) for config in runs.values()}) == len(runs)
        some = list(runs.values())[::40]
        for config in some:
            _, bound, _ = papi.cli.app.parse_args(["train", *cells.arguments(config)])
            assert to_dict(bound.arguments.get("config", RunConfig())) == to_dict(config)


def test_encoder_units() -> None:
    """As counted in the methods' papers: a forward pass is one, a backward pass two."""
    known = {"papi": 10, "dpll": 9, "pico": 4, "valen": 6, "proden": 3, "lws": 4, "rc": 4, "cc": 3, "supervised": 3}
    assert {method: units(method, {}) for method in known} == known
    forms = {"passes=paper": 10, "passes=two": 6, "passes=one": 3, "mixup=off": 6, "alignment=off": 3}
    assert {form: units("papi", dict([form.split("=")])) for form in forms} == forms


def test_equal_compute() -> None:
    epochs = {"papi": 12, "dpll": 13, "pico": 30, "valen": 20, "proden": 40, "lws": 30, "rc": 30, "cc": 40}
    assert {method: epochs_within(120, method, {}) for method in epochs} == epochs
    assert epochs_within(360, "papi", {"passes": "two"}) == 60


options = st.sampled_from(["mixup=off", "passes=paper", "passes=one", "views=WW", "temperature=0.5", "lr=0.5"])
configs = st.builds(
    RunConfig,
    data=st.sampled_from(["fashion-mini", "cifar10", "mine.npz", "my photos/"]),
    data_size=st.none() | st.integers(4, 1024),
    data_test_share=st.floats(0, 0.9),
    limit=st.none() | st.integers(2, 10**6),
    candidates=st.builds(
        CandidatesConfig,
        flip_rate=st.floats(0, 0.99),
        kind=st.sampled_from([None, "uniform", "noisy", "instance-dependent"]),
        seed=st.none() | st.integers(0, 2**32 - 1),
        allow_missing_truth=st.booleans(),
    ),
    option=st.lists(options, max_size=3, unique=True).map(tuple),
    network=st.sampled_from([None, "small", "resnet18"]),
    preset=st.sampled_from(["quick", "paper"]),
    epochs=st.none() | st.integers(1, 1000),
    drop_last=st.sampled_from([None, True, False]),
    optim=st.builds(OptimConfig, lr=st.none() | st.floats(0, 10), nesterov=st.sampled_from([None, True, False])),
    seed=st.integers(0, 2**32 - 1),
    calibrate=st.booleans(),
    precision=st.sampled_from(["auto", "fp32", "bf16"]),
)


@given(configs)
def test_any_config_survives_its_command(config: RunConfig) -> None:
    _, bound, _ = papi.cli.app.parse_args(["train", *cells.arguments(config)])
    assert bound.arguments.get("config", RunConfig()) == config


@given(configs)
def test_any_config_survives_as_what_differs_from_the_defaults(config: RunConfig) -> None:
    assert from_dict(cells.differing(config)) == config
    assert cells.differing(RunConfig(precision="fp32")) == {}


@given(configs, configs)
def test_different_settings_never_share_a_folder(first: RunConfig, second: RunConfig) -> None:
    for config in (first, second):
        try:
            cells.key(config)
        except ValueError:
            return  # an option that the method does not have
    assert (cells.key(first) == cells.key(second)) == (cells.folder_name(first) == cells.folder_name(second))
