"""Hashes of data: they change with everything that training sees, and with nothing else."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papi.data import digest
from papi.data.dataset import Dataset, ViewRecipe
from papi.data.digest import content_hash, data_hash, same_data

SETS = np.arange(24).reshape(6, 4) % 3 == 0
WHOLE = Dataset(
    name="six",
    class_names=("a", "b", "c", "d"),
    samples=np.arange(6 * 4, dtype=np.uint8).reshape(6, 1, 2, 2),
    mean=(0.5,),
    std=(0.5,),
    labels=np.array([0, 1, 2, 3, 0, 1], np.int64),
    test_samples=np.arange(2 * 4, dtype=np.uint8).reshape(2, 1, 2, 2),
    test_labels=np.array([3, 2], np.int64),
    prior=np.full((6, 4), 0.2, np.float32),
    initial_confidence=np.full((6, 4), 0.25, np.float32),
)


def changed(array: np.ndarray | None) -> np.ndarray:
    """The array with another value in its last place."""
    assert array is not None
    copy = array.copy()
    copy.flat[-1] += 1
    return copy


def test_the_hash_of_known_data_never_changes() -> None:
    """Runs on disk are tied to their data by it."""
    earlier = replace(WHOLE, prior=None)
    assert data_hash(earlier, SETS) == "7998e00ce14fe74147285de6bc918a0f04952e72900b548df6b1cea5726b58fe"
    bare = Dataset("bare", ("a", "b", "c", "d"), np.eye(6, 3, dtype=np.float32), (), ())
    assert data_hash(bare, SETS) == "dc8b17224af45a9cda5a297158519d9d0fe38510f70776449d5ef8270e842d02"


@pytest.mark.parametrize("part", ["samples", "labels", "test_samples", "test_labels", "prior", "initial_confidence"])
def test_every_part_counts(part: str) -> None:
    other = replace(WHOLE, **{part: changed(getattr(WHOLE, part))})
    assert data_hash(other, SETS) != data_hash(WHOLE, SETS)


@pytest.mark.parametrize("part", ["labels", "test_samples", "test_labels", "prior", "initial_confidence"])
def test_a_missing_part_counts(part: str) -> None:
    assert data_hash(replace(WHOLE, **{part: None}), SETS) != data_hash(WHOLE, SETS)


@given(st.integers(0, 5), st.integers(0, 3))
def test_every_candidate_counts(row: int, column: int) -> None:
    other = SETS.copy()
    other[row, column] ^= True
    assert data_hash(WHOLE, other) != data_hash(WHOLE, SETS)


def test_names_and_views_do_not_count() -> None:
    other = replace(WHOLE, name="other", class_names=("w", "x", "y", "z"), recipe=ViewRecipe(flip=False), notes=("!",))
    assert data_hash(other, SETS) == data_hash(WHOLE, SETS)


def test_what_stands_beside_the_data_counts() -> None:
    assert content_hash(WHOLE, [b"one"]) != content_hash(WHOLE, [b"two"])
    assert content_hash(WHOLE, [b"one"]) == content_hash(replace(WHOLE, candidates=SETS), [b"one"])


def test_mapped_and_strided_samples_have_the_hash_of_plain_ones() -> None:
    wide = np.zeros((6, 1, 2, 4), np.uint8)
    wide[..., ::2] = WHOLE.samples
    assert data_hash(replace(WHOLE, samples=wide[..., ::2]), SETS) == data_hash(WHOLE, SETS)


def test_of_many_bytes_every_nth_sample_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "_HASHED_BYTES", 20)  # the six samples have 24: every second counts
    seen = []
    for row in range(6):
        samples = WHOLE.samples.copy()
        samples[row] += 1
        seen.append(data_hash(replace(WHOLE, samples=samples), SETS) != data_hash(WHOLE, SETS))
    assert seen == [True, False] * 3


def test_data_are_known_again() -> None:
    known = data_hash(WHOLE, SETS)
    assert same_data(known, WHOLE, SETS)
    assert not same_data(known, replace(WHOLE, samples=changed(WHOLE.samples)), SETS)
    assert not same_data(known, WHOLE, ~SETS)


def test_without_a_hash_the_numbers_of_samples_and_classes_decide() -> None:
    assert same_data(None, WHOLE, SETS)
    assert same_data(None, WHOLE, ~SETS)
    assert not same_data(None, WHOLE, SETS[1:])
    assert not same_data(None, replace(WHOLE, class_names=("a", "b", "c")), SETS)
