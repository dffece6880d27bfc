"""Random search: what is searched, that trials repeat, and what bad ranges end in."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from papi.config import OptimConfig, RunConfig
from papi.errors import UserError
from papi.experiments.search import Trial, space_of, trials
from papi.methods import METHODS, find_method
from papi.methods.cc import CC
from papi.methods.config import MethodConfig
from papi.methods.ranges import Among, Between, Range, ranges_of
from papi.train import settings_for
from toy_data import make_toy_dataset

DATA = make_toy_dataset()
CONFIG = RunConfig(data="toy", method="dirk", data_holdout=0.2, epochs=2)


def space(config: RunConfig = CONFIG, *given: str) -> dict[str, Range]:
    return space_of(config, settings_for(config, DATA), given)


def drawn(budget: int, config: RunConfig = CONFIG, *given: str) -> list[Trial]:
    return trials(config, DATA, space(config, *given), budget)


class TestSpace:
    def test_the_methods_ranges_and_the_optimizer(self) -> None:
        found = space()
        assert {"teacher_momentum", "certain", "optim.lr", "optim.weight_decay"} <= found.keys()
        rate = found["optim.lr"]
        assert isinstance(rate, Between)
        assert (rate.low, rate.high, rate.log) == (0.01, 0.25, True)

    def test_what_a_person_fixes_is_not_searched(self) -> None:
        fixed = replace(CONFIG, option=("teacher_momentum=0.9",), optim=OptimConfig(lr=0.1))
        assert not {"teacher_momentum", "optim.lr"} & space(fixed).keys()

    @pytest.mark.parametrize(
        ("method", "option", "idle"),
        [
            ("dirk", (), {"temperature", "belief_temperature"}),
            ("dirk", ("refinement_weight=1",), set()),
            ("papi", ("passes=one",), {"mixup_alpha", "views"}),
            ("papi", ("passes=two",), set()),
            ("papi", ("passes=paper", "mixup=off"), {"balance_weight", "mixup_alpha"}),
            ("papi", ("passes=paper", "balance_by_evidence=off"), set()),
        ],
    )
    def test_what_would_change_nothing_is_not_searched(
        self, method: str, option: tuple[str, ...], idle: set[str]
    ) -> None:
        config = replace(CONFIG, method=method, option=option)
        assert ranges_of(find_method(method).Config).keys() - space(config).keys() == idle
        for name in idle & {"temperature", "mixup_alpha"}:  # but where a person wants it
            assert name in space(config, f"{name}=1..2")

    def test_a_range_of_ones_own(self) -> None:
        found = space(CONFIG, "teacher_momentum=0.5..0.6", "epochs=1,3", "optim.weight-decay=0..0.1", "queue=8..64")
        assert found["teacher_momentum"] == Between(0.5, 0.6)
        assert found["epochs"] == Among((1, 3))
        assert found["optim.weight_decay"] == Between(0, 0.1)
        assert found["queue"] == Between(8, 64)

    @pytest.mark.parametrize("name", METHODS)
    def test_every_method_can_be_searched(self, name: str) -> None:
        found = drawn(4, replace(CONFIG, method=name))
        assert len(found) == 4
        assert len({trial.key for trial in found}) == 4


class TestTrials:
    def test_the_first_is_what_papi_train_does(self) -> None:
        first = drawn(1)[0]
        assert first.config == CONFIG
        assert first.values["optim.lr"] == first.settings.optim.lr
        assert first.values["teacher_momentum"] == first.settings.options["teacher_momentum"]

    def test_a_larger_budget_adds_to_a_smaller_one(self) -> None:
        assert drawn(9)[:4] == drawn(4)

    def test_a_trial_has_the_settings_that_were_drawn(self) -> None:
        for trial in drawn(5, CONFIG, "epochs=1..9"):
            assert trial.settings.optim.lr == trial.values["optim.lr"]
            assert trial.settings.epochs == trial.values["epochs"]
            assert trial.settings.options["teacher_momentum"] == trial.values["teacher_momentum"]
            assert trial.settings.options["certain"] == trial.values["certain"]

    def test_another_seed_draws_other_trials(self) -> None:
        ours, theirs = ({trial.values["optim.lr"] for trial in drawn(6, replace(CONFIG, seed=n))} for n in (0, 1))
        assert len(ours & theirs) == 1  # of the first trial

    def test_settings_that_exclude_each_other_are_drawn_again(self) -> None:
        config = replace(CONFIG, method="neighbours")
        found = drawn(30, config, "weights=distance,similarity")
        similar = [trial for trial in found if trial.values["weights"] == "similarity"]
        assert similar
        assert {trial.values["space"] for trial in similar} == {"unit"}

    def test_no_trial_comes_twice(self) -> None:
        config = replace(CONFIG, method="cc", optim=OptimConfig(lr=0.1, weight_decay=0.0))
        found = drawn(10, config)
        assert [trial.values for trial in found] == [{"view": "weak"}, {"view": "plain"}]


@dataclass(frozen=True)
class _Config(MethodConfig):
    """A setting that nobody gave a range."""

    pull: float = 1.0

    def __post_init__(self) -> None:
        if self.pull < 0:
            raise UserError(f"--option pull must be 0 or more; got {self.pull:g}.")


class WithoutRanges(CC):
    """A method from outside."""

    Config = _Config


OUTSIDE = replace(CONFIG, method=f"{__name__}:WithoutRanges")


@pytest.mark.parametrize(
    ("config", "given", "says"),
    [
        (OUTSIDE, (), "declares no ranges"),
        (OUTSIDE, ("pull=-1..1",), "pull must be 0 or more; got -1"),
        (CONFIG, ("teacher_momentum=0.9..0.1",), "must go from a number to a larger one; got 0.9..0.1"),
        (CONFIG, ("teacher_momentum=0.9..2",), "teacher_momentum must be between 0 and 1; got 2"),
        (CONFIG, ("teacher_momentum=low..high",), "low is not a number"),
        (CONFIG, ("teacher_momentum=0..nan",), "nan is not a number"),
        (CONFIG, ("teacher_momentum=",), "of the form NAME=LOW..HIGH"),
        (CONFIG, ("teacher_momentum",), "of the form NAME=LOW..HIGH"),
        (CONFIG, ("certain=0..1",), "is for numbers"),
        (CONFIG, ("certain=maybe,one-hot",), "certain=maybe"),
        (CONFIG, ("certain=one-hot",), "two values or more"),
        (CONFIG, ("queue=1.5..3",), "whole number"),
        (CONFIG, ("epochs=1.5,3",), "1.5 is not a whole number"),
        (CONFIG, ("epochs=0..3",), "--epochs must be 1 or more; got 0"),
        (CONFIG, ("epochs=3,0",), "--epochs must be 1 or more; got 0"),
        (CONFIG, ("batch-size=0,32",), "--batch-size must be 2 or more; got 0"),
        (CONFIG, ("temperature=0.1,-1",), "temperature must be above 0; got -1"),
        (CONFIG, ("optim.lr=-1..3",), "--optim.lr must be .* 0 or more; got -1"),
        (CONFIG, ("teacher_momentun=0..1",), "did you mean 'teacher_momentum'"),
        (replace(CONFIG, method="cc", option=("view=weak",), optim=OptimConfig(lr=0.1, weight_decay=0.0)), (), "fixed"),
    ],
)  # fmt: skip
def test_bad_ranges_end_in_a_sentence(config: RunConfig, given: tuple[str, ...], says: str) -> None:
    with pytest.raises(UserError, match=says):
        space(config, *given)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.one_of(
        st.text(max_size=30), st.builds("{}={}".format, st.sampled_from(["queue", "epochs", "optim.lr"]), st.text())
    )
)
def test_any_text_is_a_range_or_a_sentence(text: str) -> None:
    found: Any
    try:
        found = space(CONFIG, text)
    except UserError as error:
        found = str(error)
    assert found
