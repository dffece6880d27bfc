"""The form of a dataset: its parts stay together, whatever is taken of it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from papi.data.dataset import Dataset, ViewRecipe, column_statistics, pixel_statistics, refuse
from papi.errors import UserError


def numbered(labels: list[int], classes: int = 4, kind: str = "images") -> Dataset:
    """A dataset in which everything that belongs to sample i tells i."""
    count = len(labels)
    number = np.arange(count)
    images = np.broadcast_to((number % 256).astype(np.uint8)[:, None, None, None], (count, 1, 2, 3)).copy()
    features = np.stack([number, -number], 1).astype(np.float32)
    return Dataset(
        name="numbered",
        class_names=tuple("abcdefghij"[:classes]),
        samples=images if kind == "images" else features,
        mean=(),
        std=(),
        labels=np.array(labels, np.int64),
        candidates=number[:, None] % (2 + np.arange(classes)) == 0,
        prior=(number[:, None] * np.ones(classes)).astype(np.float32),
        initial_confidence=(number[:, None] * np.ones(classes)).astype(np.float32),
        file_names=tuple(f"{k}.png" for k in number),
    )


def assert_together(part: Dataset, rows: np.ndarray, whole: Dataset) -> None:
    """All that belongs to the samples of `part` is that of these rows."""
    assert part.labels is not None
    assert whole.labels is not None
    assert part.candidates is not None
    assert whole.candidates is not None
    assert part.initial_confidence is not None
    assert part.prior is not None
    assert part.file_names == tuple(f"{row}.png" for row in rows)
    assert part.rows is not None
    np.testing.assert_array_equal(part.rows, rows)
    np.testing.assert_array_equal(part.samples, whole.samples[rows])
    np.testing.assert_array_equal(part.labels, whole.labels[rows])
    np.testing.assert_array_equal(part.candidates, whole.candidates[rows])
    np.testing.assert_array_equal(part.initial_confidence[:, 0], rows)
    np.testing.assert_array_equal(part.prior[:, 0], rows)


several_labels = st.lists(st.integers(0, 3), min_size=1, max_size=60)


@given(several_labels, st.data())
def test_taking_keeps_everything_together(labels: list[int], data: st.DataObject) -> None:
    whole = numbered(labels)
    rows = np.array(data.draw(st.lists(st.integers(0, len(labels) - 1), max_size=40)), np.int64)
    assert_together(whole.taking(rows), rows, whole)


@given(several_labels, st.data())
def test_rows_of_a_part_count_in_what_was_read(labels: list[int], data: st.DataObject) -> None:
    whole = numbered(labels)
    first = np.array(data.draw(st.lists(st.integers(0, len(labels) - 1), min_size=1, max_size=40)), np.int64)
    second = np.array(data.draw(st.lists(st.integers(0, len(first) - 1), max_size=40)), np.int64)
    assert_together(whole.taking(first).taking(second), first[second], whole)


def test_what_is_missing_stays_missing() -> None:
    bare = Dataset("bare", ("a", "b"), np.zeros((5, 2), np.float32), (), ())
    part = bare.taking(np.array([3, 1]))
    assert (part.labels, part.candidates, part.initial_confidence, part.file_names) == (None, None, None, None)


def test_a_beginning_is_not_copied() -> None:
    data = numbered([0, 1] * 4)
    assert np.shares_memory(data.taking(np.arange(5)).samples, data.samples)
    assert not np.shares_memory(data.taking(np.arange(1, 5)).samples, data.samples)


@given(several_labels, st.data())
def test_a_limit_takes_the_classes_in_turn(labels: list[int], data: st.DataObject) -> None:
    whole = numbered(labels)
    count = data.draw(st.integers(1, len(labels)))
    part = whole.limited(count)
    assert part.rows is not None
    assert_together(part, part.rows, whole)
    assert len(part.samples) == count
    there, taken = np.bincount(labels, minlength=4), np.bincount(np.array(labels)[part.rows], minlength=4)
    # A class has fewer than the largest only if it has no more, or by the one that the last turn did not reach.
    assert all(taken[k] >= taken.max() - 1 or taken[k] == there[k] for k in range(4))
    for k in range(4):
        np.testing.assert_array_equal(part.rows[part.labels == k], np.flatnonzero(whole.labels == k)[: taken[k]])


def test_a_limit_without_labels_takes_a_part_of_all() -> None:
    whole = replace(numbered([0] * 50), labels=None)
    part = whole.limited(20)
    assert part.rows is not None
    assert len(set(part.rows.tolist())) == 20
    assert part.rows.tolist() == sorted(part.rows.tolist())
    assert part.rows[-1] > 30  # not the first twenty
    np.testing.assert_array_equal(part.rows, whole.limited(20).rows)


def test_no_limit_and_too_high_a_limit() -> None:
    data = numbered([0, 1, 2])
    assert data.limited(None) is data
    assert len(data.limited(3).samples) == 3
    with pytest.raises(UserError, match="--limit 4 exceeds the 3 training samples of numbered"):
        data.limited(4)


@given(several_labels, st.floats(0.05, 0.95), st.integers(0, 5))
def test_a_part_is_held_out_within_each_class(labels: list[int], share: float, seed: int) -> None:
    whole = numbered(labels)
    assume(0 < round(len(labels) * share) < len(labels))
    part = whole.with_held_out(share, seed)
    assert part.test_labels is not None
    assert part.test_samples is not None
    assert part.rows is not None
    assert part.labels is not None
    held = np.setdiff1d(np.arange(len(labels)), part.rows)
    assert_together(part, part.rows, whole)
    np.testing.assert_array_equal(part.test_samples, whole.samples[held])
    np.testing.assert_array_equal(part.test_labels, np.array(labels)[held])
    tested = np.bincount(part.test_labels, minlength=4)
    assert np.abs(tested - np.bincount(labels, minlength=4) * share).max() <= 1


def test_the_held_out_part_is_drawn_by_seed() -> None:
    data = numbered([0, 1] * 30)
    parts = [data.with_held_out(0.2, seed).rows for seed in (0, 0, 1)]
    assert parts[0] is not None
    assert parts[1] is not None
    assert parts[2] is not None
    np.testing.assert_array_equal(parts[0], parts[1])
    assert not np.array_equal(parts[0], parts[2])


def test_nothing_is_held_out_without_need_or_means() -> None:
    data = numbered([0, 1] * 5)
    tested = replace(data, test_samples=data.samples[:2], test_labels=np.array([0, 1]))
    assert tested.with_held_out(0.2, 0) is tested
    unlabelled = replace(data, labels=None)
    assert unlabelled.with_held_out(0.2, 0) is unlabelled
    assert data.with_held_out(0, 0) is data


@pytest.mark.parametrize(("count", "share"), [(1, 0.2), (2, 0.2), (1, 0.9)])
def test_too_few_samples_to_hold_any_out(count: int, share: float) -> None:
    with pytest.raises(
        UserError, match=rf"numbered has {count} samples, which is not enough to hold out .*--data.test-share 0"
    ):
        numbered([0] * count).with_held_out(share, 0)


@pytest.mark.parametrize(("kind", "shape"), [("images", (1, 2, 3)), ("features", (2,))])
def test_samples_are_images_or_features(kind: str, shape: tuple[int, ...]) -> None:
    data = numbered([0, 1], kind=kind)
    assert data.kind == kind
    assert data.input_shape == shape


def test_a_resized_crop_decides_what_the_network_sees() -> None:
    assert replace(numbered([0, 1]), recipe=ViewRecipe(resized_crop=7)).input_shape == (1, 7, 7)


@given(st.integers(1, 30), st.sampled_from([1, 3]), st.integers(0, 2**32 - 1))
def test_pixel_statistics_equal_those_of_numpy(count: int, channels: int, seed: int) -> None:
    images = np.random.default_rng(seed).integers(0, 256, (count, channels, 5, 4), np.uint8)
    mean, std = pixel_statistics(images)
    pixels = images.astype(np.float64).transpose(1, 0, 2, 3).reshape(channels, -1) / 255
    assert mean == pytest.approx(pixels.mean(1))
    assert std == pytest.approx(pixels.std(1))


def test_pixel_statistics_of_more_images_than_are_read_at_once() -> None:
    images = np.arange(2500 * 4, dtype=np.int64).reshape(2500, 1, 2, 2) % 251
    mean, std = pixel_statistics(images.astype(np.uint8))
    assert (mean, std) == (pytest.approx((images.mean() / 255,)), pytest.approx((images.std() / 255,)))


def test_one_grey_level_everywhere_can_be_divided_by() -> None:
    mean, std = pixel_statistics(np.full((3, 1, 4, 4), 51, np.uint8))
    assert mean == pytest.approx((0.2,))
    assert std == (0.001,)


def test_column_statistics() -> None:
    features = np.array([[1, 5, 1e6], [3, 5, 1e6 + 2]], np.float32)
    mean, std = column_statistics(features)
    assert mean == pytest.approx((2, 5, 1e6 + 1))
    assert std == pytest.approx((1, 1, 1))  # a constant column counts as 1


@pytest.mark.parametrize("kind", ["images", "features"])
def test_measured_data_have_their_own_statistics(kind: str) -> None:
    data = numbered([0, 1] * 10, kind=kind)
    statistics = pixel_statistics if kind == "images" else column_statistics
    assert (data.measured().mean, data.measured().std) == statistics(data.samples)


def test_a_problem_is_an_error_where_data_must_be_sound() -> None:
    with pytest.raises(UserError, match="this is wrong"):
        refuse("this is wrong")


def test_embeddings_are_features_measured_by_their_plain_views() -> None:
    table = np.random.default_rng(0).normal(3, 2, (2500, 5, 4)).astype(np.float16)
    table[:, :, 3] = 7
    data = Dataset("embeddings", ("a", "b"), table, (), ()).measured()
    assert data.kind == "features"
    assert data.input_shape == (4,)
    mean, std = column_statistics(table[:, 0].astype(np.float64))
    assert data.mean == pytest.approx(mean)
    one = np.sqrt(np.mean(np.square(std) * (1, 1, 1, 0)))  # for all columns; a constant one adds nothing to it
    assert data.std == pytest.approx((one,) * 4)


def test_embeddings_that_are_all_alike_have_a_spread_to_divide_by() -> None:
    data = Dataset("embeddings", ("a", "b"), np.full((3, 1, 2), 4, np.float16), (), ()).measured()
    assert (data.mean, data.std) == ((4.0, 4.0), (1.0, 1.0))
