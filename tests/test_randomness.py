import numpy as np
import torch

from papi.randomness import draws, draws_of_rows, seed_torch


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


def test_rows_of_a_batch_get_their_part_of_its_draws() -> None:
    def drawn(rows: slice) -> list[np.ndarray]:
        generator, count = draws_of_rows(draws(7, "view"), rows, 9), rows.stop - rows.start
        return [
            generator.random(count),
            generator.integers(-3, 4, count),
            generator.random((count, 5)),
            generator.uniform(0.2, 1, (count, 2)),
            generator.standard_normal((count, 3), np.float32),
        ]

    for whole, *parts in zip(*map(drawn, (slice(0, 9), slice(0, 4), slice(4, 9))), strict=True):
        np.testing.assert_array_equal(np.concatenate(parts), whole)
