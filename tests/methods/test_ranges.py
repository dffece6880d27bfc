"""Ranges of settings: what is drawn lies in them; every method declares some, and its own values lie inside."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papi.errors import UserError
from papi.methods import METHODS, find_method
from papi.methods.config import MethodConfig
from papi.methods.ranges import Among, Between, Range, ranges_of, require_sound, type_of


@pytest.mark.parametrize("name", METHODS)
class TestEveryMethod:
    def test_declares_ranges_that_hold_its_own_values(self, name: str) -> None:
        kind = find_method(name).Config
        ranges = ranges_of(kind)
        assert ranges
        for epochs in (2, 12, 40, 200):
            for values in ({}, kind.quick(epochs, {})):
                config = kind(**values)
                outside = {
                    each: getattr(config, each) for each in ranges if not ranges[each].holds(getattr(config, each))
                }
                assert not outside

    def test_accepts_what_its_ranges_hold(self, name: str) -> None:
        kind = find_method(name).Config
        random = np.random.default_rng(0)
        for field, declared in ranges_of(kind).items():
            for _ in range(20):
                value = declared.draw(random, type_of(kind, field))
                assert declared.holds(value)
                kind(**{field: value})


numbers = st.floats(-1e3, 1e3)


class TestBetween:
    @given(low=numbers, width=st.floats(1e-3, 1e3), seed=st.integers(0, 1000))
    def test_draws_lie_inside_and_are_short(self, low: float, width: float, seed: int) -> None:
        declared = Between(low, low + width)
        value = declared.draw(np.random.default_rng(seed), float)
        assert low <= value <= low + width
        assert value in (low, low + width) or float(f"{value:.3g}") == value

    def test_logarithmic_draws_take_every_factor_alike(self) -> None:
        random = np.random.default_rng(0)
        values = [Between(0.001, 10.0, log=True).draw(random, float) for _ in range(4000)]
        shares = np.histogram(np.log10(values), bins=4, range=(-3, 1))[0] / len(values)
        assert shares == pytest.approx(0.25, abs=0.03)

    def test_whole_numbers_are_equally_likely(self) -> None:
        random = np.random.default_rng(0)
        values = [Between(1, 4).draw(random, int) for _ in range(4000)]
        assert {type(value) for value in values} == {int}
        assert np.bincount(values)[1:] / len(values) == pytest.approx(0.25, abs=0.03)

    def test_pairs_are_drawn_number_by_number(self) -> None:
        first, second = Between(0.0, 1.0).draw(np.random.default_rng(0), tuple[float, float])
        assert first != second
        assert Between(0.0, 1.0).holds((first, second))
        assert not Between(0.0, 1.0).holds((first, 1.5))

    @pytest.mark.parametrize(
        ("declared", "kind"),
        [
            (Between(2.0, 1.0), float),
            (Between(1.0, 1.0), float),
            (Between(math.nan, 1.0), float),
            (Between(0.0, math.inf), float),
            (Between(0.0, 1.0, log=True), float),
            (Between(0.5, 3), int),
            (Between(0.0, 1.0), str),
            (Between(0.0, 1.0), Literal["a", "b"]),
            (Among(("a",)), str),
            (Among(()), str),
        ],
        ids=str,
    )
    def test_ranges_without_sense_are_refused(self, declared: Range, kind: Any) -> None:
        with pytest.raises(UserError, match="the range of it"):
            require_sound("the range of it", declared, kind)


def test_among() -> None:
    random = np.random.default_rng(0)
    declared = Among(("a", "b", "c"))
    assert {declared.draw(random, str) for _ in range(100)} == {"a", "b", "c"}
    assert declared.holds("a")
    assert not declared.holds("d")


def test_a_bad_range_is_told_with_its_field() -> None:
    @dataclass(frozen=True)
    class Bad(MethodConfig):
        """A range upside down."""

        plain: float = 1.0
        pull: Annotated[float, Between(3.0, 1.0)] = 2.0

    with pytest.raises(UserError, match=r"pull in Bad must go from a number to a larger one; got 3\.\.1"):
        ranges_of(Bad)


def test_fields_without_a_range_are_left_out() -> None:
    assert ranges_of(MethodConfig) == {}
    assert "passes" not in ranges_of(find_method("papi").Config)
