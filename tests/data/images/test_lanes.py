"""Work in several threads: results in order, few ahead, and torch's own threads as before."""

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
import torch

from papi.data.images.lanes import in_lanes


@pytest.fixture(autouse=True)
def threads() -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield 3
    torch.set_num_threads(before)


def test_results_come_in_order_from_threads_that_use_one_core_each() -> None:
    def call(number: int) -> tuple[int, int, int]:
        time.sleep(0.01 * (number % 3))
        return number, torch.get_num_threads(), threading.get_ident()

    found = list(in_lanes(partial(call, number) for number in range(20)))
    assert [number for number, _, _ in found] == list(range(20))
    assert {count for _, count, _ in found} == {1}
    assert 1 < len({thread for _, _, thread in found}) <= 3
    assert torch.get_num_threads() == 3


def test_few_are_computed_ahead() -> None:
    begun = 0

    def calls() -> Iterator[Callable[[], int]]:
        nonlocal begun
        for number in range(100):
            begun += 1
            yield partial(int, number)

    results = in_lanes(calls())
    assert next(results) == 0
    assert begun <= 7
    results.close()  # type: ignore[attr-defined]
    assert torch.get_num_threads() == 3


def test_an_error_ends_the_work() -> None:
    def call(number: int) -> int:
        if number == 4:
            raise ValueError("four")
        return number

    results = in_lanes(partial(call, number) for number in range(50))
    assert [next(results) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="four"):
        next(results)
    assert torch.get_num_threads() == 3
