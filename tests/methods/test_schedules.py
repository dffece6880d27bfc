"""Values over a run, at the places that matter: its start, its end, and where they change."""

import pytest

from papi.methods.schedules import cosine_by_epoch, halving, linear, multistep, ramp, warmup_cosine
from papi.types import Progress


def at(epoch: int, epochs: int, step: int = 0, steps: int = 10) -> Progress:
    return Progress(epoch, epochs, step, steps, seed=0)


def test_linear() -> None:
    assert [linear(0.9, 0.5, fraction) for fraction in (0, 0.25, 1)] == pytest.approx([0.9, 0.8, 0.5])


def test_ramp() -> None:
    assert [ramp(position, 10) for position in (0, 1, 10, 11)] == [0, 0.1, 1, 1]
    assert ramp(0, 0) == 1


def test_cosine_by_epoch() -> None:
    values = [cosine_by_epoch(at(epoch, 500), 1e-3) for epoch in (0, 250, 499)]
    assert values == pytest.approx([1, 0.5005, 0.001 + 0.999 * 9.87e-6], abs=1e-6)
    assert cosine_by_epoch(at(3, 10, step=0), 1e-3) == cosine_by_epoch(at(3, 10, step=9), 1e-3)


@pytest.mark.parametrize(("epochs", "steps"), [(12, 157), (1, 1), (1, 2), (2, 3)])
def test_warmup_cosine_rises_to_one_and_falls_to_its_floor(epochs: int, steps: int) -> None:
    values = [warmup_cosine(at(e, epochs, s, steps), 0.15, 1e-3) for e in range(epochs) for s in range(steps)]
    top = values.index(max(values))
    assert values[top] == pytest.approx(1)
    assert values[: top + 1] == sorted(values[: top + 1])
    assert values[top:] == sorted(values[top:], reverse=True)
    assert values[0] > 0
    assert values[-1] == pytest.approx(1e-3 if len(values) > 1 else 1)


def test_multistep_of_a_release_of_200_epochs() -> None:
    values = [multistep(at(epoch, 200), (0.5, 0.75), 0.1) for epoch in (0, 99, 100, 149, 150, 199)]
    assert values == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01])


@pytest.mark.parametrize("epochs", [1, 2, 3])
def test_multistep_of_short_runs_starts_at_one(epochs: int) -> None:
    assert multistep(at(0, epochs), (0.5, 0.75), 0.1) == 1


def test_halving_is_smooth_by_epoch() -> None:
    assert [halving(at(epoch, 250), 50) for epoch in (0, 25, 50, 100)] == pytest.approx([1, 0.5**0.5, 0.5, 0.25])
    assert halving(at(7, 250, step=0), 50) == halving(at(7, 250, step=9), 50)
