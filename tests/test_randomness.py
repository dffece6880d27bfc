"""Draws: each depends on its place in the run alone, and rows of a batch get what the whole batch would."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from papi.randomness import Draws, Size, draws, draws_by_row, draws_of_rows, seed_torch

# Every method of `Draws`, called for a number of rows and the other sizes of an array.
METHODS: dict[str, Callable[[Draws, Size], np.ndarray]] = {
    "random": lambda source, size: source.random(size),
    "uniform": lambda source, size: source.uniform(-2.5, 4, size),
    "integers": lambda source, size: source.integers(-3, 9, size),
    "standard_normal": lambda source, size: source.standard_normal(size, np.float32),
}


def test_every_method_of_the_protocol_is_tested() -> None:
    assert set(METHODS) == {name for name in vars(Draws) if not name.startswith("_")}


def test_a_draw_depends_on_its_place_alone() -> None:
    first = draws(1, "shuffle", 2, 3).random(5)
    draws(1, "mixup", 2, 3).random(100)
    np.testing.assert_array_equal(draws(1, "shuffle", 2, 3).random(5), first)


def test_all_places_differ() -> None:
    places = [(s, name, e, t) for s in (0, 1) for name in ("a", "b") for e in (0, 1) for t in (0, 1)]
    numbers = {tuple(draws(*place).random(3)) for place in places}
    assert len(numbers) == len(places)


def test_neighbouring_steps_do_not_overlap() -> None:
    """A long draw of one step must not run into the numbers of the next."""
    assert not np.intersect1d(draws(0, "x", 0, 0).random(100_000), draws(0, "x", 0, 1).random(1000)).size


def test_torch_is_seeded_from_the_same_source() -> None:
    seed_torch(3, "network")
    first = torch.rand(4)
    seed_torch(3, "network")
    torch.testing.assert_close(torch.rand(4), first, rtol=0, atol=0)
    seed_torch(4, "network")
    assert not torch.equal(torch.rand(4), first)


@st.composite
def parts_of_a_batch(draw: st.DrawFn) -> tuple[int, list[slice]]:
    """A number of rows, and how processes share them: contiguous parts, some of them empty."""
    count = draw(st.integers(1, 30))
    borders = sorted(draw(st.lists(st.integers(0, count), max_size=4)))
    return count, [slice(a, b) for a, b in zip([0, *borders], [*borders, count], strict=True)]


@pytest.mark.parametrize("name", METHODS)
@given(shared=parts_of_a_batch(), others=st.lists(st.integers(0, 4), max_size=2), seed=st.integers(0, 2**32))
def test_parts_of_a_batch_draw_what_the_whole_batch_draws(
    name: str, shared: tuple[int, list[slice]], others: list[int], seed: int
) -> None:
    count, parts = shared
    whole = METHODS[name](draws(seed, "view"), (count, *others))
    drawn = [
        METHODS[name](draws_of_rows(draws(seed, "view"), part, count), (part.stop - part.start, *others))
        for part in parts
    ]
    assert {each.dtype for each in drawn} == {whole.dtype}
    np.testing.assert_array_equal(np.concatenate(drawn), whole)


@given(
    st.lists(st.tuples(st.sampled_from(sorted(METHODS)), st.lists(st.integers(1, 3), max_size=1)), max_size=6),
    st.integers(0, 8),
    st.integers(1, 9),
)
def test_later_draws_stay_in_step(calls: list[tuple[str, list[int]]], start: int, length: int) -> None:
    """A process that draws for some rows only uses up as many numbers as one that draws for all."""
    part = slice(start, start + length)
    whole, mine = draws(7, "view"), draws_of_rows(draws(7, "view"), part, 17)
    for name, others in calls:
        expected = METHODS[name](whole, (17, *others))[part]
        np.testing.assert_array_equal(METHODS[name](mine, (length, *others)), expected)


@pytest.mark.parametrize("name", METHODS)
def test_one_number_for_each_row_needs_no_tuple(name: str) -> None:
    drawn = METHODS[name](draws_of_rows(draws(1, "view"), slice(2, 5), 8), 3)
    np.testing.assert_array_equal(drawn, METHODS[name](draws(1, "view"), (8,))[2:5])


def test_a_batch_of_one_process_is_drawn_directly() -> None:
    generator = draws(1, "view")
    assert draws_of_rows(generator, slice(0, 6), 6) is generator


def test_a_size_that_is_not_the_number_of_rows_is_a_mistake() -> None:
    mine = draws_of_rows(draws(1, "view"), slice(2, 5), 8)
    for size in (8, (8, 2), (2,)):
        with pytest.raises(AssertionError):
            mine.random(size)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("others", [(), (3,), (2, 4)])
def test_draws_by_row_come_from_one_generator_each(method: str, others: tuple[int, ...]) -> None:
    seeds = (1, 2, 9)
    together = METHODS[method](draws_by_row([draws(seed, "test") for seed in seeds]), (len(seeds), *others))
    alone = [METHODS[method](draws(seed, "test"), (1, *others)) for seed in seeds]
    np.testing.assert_array_equal(together, np.concatenate(alone))
