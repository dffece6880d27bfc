import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papi.data import packed_rows
from papi.data.packed_rows import PackedRows
from papi.runs.labels import candidate_shares, find_together, resolve

CANDIDATES = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 0], [1, 0, 1]], bool)
CONFIDENCE = np.array([[0.2, 0.8, 0.0], [0.4, 0.3, 0.3], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])


def test_by_hand() -> None:
    found = resolve(CANDIDATES, CONFIDENCE)
    assert found.label.tolist() == [1, 0, 1, 0]
    assert found.second.tolist() == [0, 1, -1, 2]
    np.testing.assert_allclose(found.confidence, [0.8, 0.4, 1.0, 0.5])
    np.testing.assert_allclose(found.margin, [0.6, 0.1, 1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.entropy[[2, 3]], [0, np.log(2)])
    assert found.rank.tolist() == [3, 1, 4, 2]  # least sure first, a single candidate last


def slow_change(candidates: np.ndarray, confidence: np.ndarray, opinion: np.ndarray | None) -> list[float]:
    """The formula of `resolve`, one number at a time, for confidence inside the sets."""
    shares = candidate_shares(candidates, confidence)
    images, classes = candidates.shape
    prior = [
        [
            (sum(shares[i, k] * candidates[i, j] for i in range(images)) + 1) / (sum(shares[:, k]) + 2)
            for j in range(classes)
        ]
        for k in range(classes)
    ]
    changes = []
    for i in range(images):
        q = shares[i].tolist()
        label = int(np.where(candidates[i], shares[i], -1).argmax())
        if opinion is not None:
            first, wanted = q[label], (q[label] + opinion[i]) / 2
            others = candidates[i].sum() - 1
            for k in range(classes):
                if k != label and candidates[i, k]:
                    q[k] = q[k] * (1 - wanted) / (1 - first) if first < 1 else (1 - wanted) / others
            q[label] = 1 - sum(q[k] for k in range(classes) if k != label)
        for k in range(classes):
            for j in range(classes):
                q[k] *= (prior[k][j] if candidates[i, j] else 1 - prior[k][j]) ** 0.5
        changes.append(1 - q[label] / sum(q))
    return changes


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(2, 5), st.booleans())
def test_the_expected_change_is_that_of_the_slow_version(seed: int, images: int, classes: int, asked: bool) -> None:
    random = np.random.default_rng(seed)
    candidates = random.random((images, classes)) < 0.5
    candidates[np.arange(images), random.integers(0, classes, images)] = True
    confidence = random.random((images, classes)).round(1) * candidates
    opinion = random.random(images) if asked else None
    found = resolve(candidates, confidence, opinion)
    np.testing.assert_allclose(found.change, slow_change(candidates, confidence, opinion), atol=1e-9)
    several = np.flatnonzero(candidates.sum(1) > 1)
    ranked = several[np.argsort(found.rank[several])]
    assert (np.diff(found.change[ranked]) <= 1e-12).all()


def test_a_second_opinion_counts_for_the_rank_alone() -> None:
    opinion = np.array([0.1, 0.8, 0.0, 0.75])
    found, alone = resolve(CANDIDATES, CONFIDENCE, opinion), resolve(CANDIDATES, CONFIDENCE)
    assert found.rank[0] == 1  # the network does not believe in the label of the first
    for name in ("label", "confidence", "margin", "entropy", "second"):
        np.testing.assert_array_equal(getattr(found, name), getattr(alone, name))


def test_a_set_that_is_usual_for_another_class_is_looked_at_first() -> None:
    """Two images are equally sure of label 0; the set of the second is the one that images of class 1 have."""
    candidates = np.array([[1, 1, 0]] * 10 + [[0, 1, 1]] * 10 + [[1, 1, 0], [1, 1, 1]], bool)
    confidence = np.array([[1, 0, 0]] * 10 + [[0, 1, 0]] * 10 + [[0.6, 0.4, 0], [0.6, 0.4, 0]], np.float32)
    found = resolve(candidates, confidence)
    assert found.rank[-1] == 1
    assert found.change[-1] > found.change[-2]


def test_the_set_prior_by_hand() -> None:
    prior = find_together(np.array([[1, 0], [1, 1]], bool), np.array([[1.0, 0], [0.5, 0.5]])).prior
    np.testing.assert_allclose(prior, [[2.5 / 3.5, 1.5 / 3.5], [1.5 / 2.5, 1.5 / 2.5]])


def test_confidence_outside_the_candidates_does_not_count() -> None:
    shares = candidate_shares(CANDIDATES[:1], np.array([[0.1, 0.1, 0.8]]))
    np.testing.assert_allclose(shares, [[0.5, 0.5, 0]])


def test_a_set_that_seems_to_lack_the_truth() -> None:
    """The label is the best candidate all the same; the one outside is named, and the image is looked at first."""
    confidence = CONFIDENCE.copy()
    confidence[0], confidence[2] = [0.1, 0.4, 0.5], [0.7, 0.3, 0.0]
    found = resolve(CANDIDATES, confidence)
    assert found.label.tolist() == [1, 0, 1, 0]
    assert found.outside.tolist() == [2, -1, 0, -1]
    assert found.rank.tolist() == [1, 3, 2, 4]
    assert (resolve(CANDIDATES, CONFIDENCE).outside == -1).all()


def test_a_row_that_says_nothing_is_uniform() -> None:
    confidence = np.array([[0.0, 0.0, 1.0], [np.nan, np.nan, np.nan]])
    np.testing.assert_allclose(candidate_shares(CANDIDATES[:2], confidence), [[0.5, 0.5, 0], [1 / 3] * 3])


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match=r"\(4, 3\) and confidence \(4, 2\)"):
        resolve(CANDIDATES, CONFIDENCE[:, :2])


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(2, 6))
def test_what_always_holds(seed: int, images: int, classes: int) -> None:
    random = np.random.default_rng(seed)
    candidates = random.random((images, classes)) < 0.5
    candidates[np.arange(images), random.integers(0, classes, images)] = True
    confidence = random.random((images, classes)).round(1)  # rounded, so that ties occur
    found = resolve(candidates, confidence)
    rows = np.arange(images)
    assert candidates[rows, found.label].all()
    several = candidates.sum(1) > 1
    assert (found.second[~several] == -1).all()
    assert candidates[rows[several], found.second[several]].all()
    assert (found.second != found.label).all()
    assert sorted(found.rank) == list(range(1, images + 1))
    assert (found.margin >= -1e-12).all()
    shares = candidate_shares(candidates, confidence)
    np.testing.assert_allclose(shares.sum(1), 1)
    assert not shares[~candidates].any()


@pytest.mark.parametrize("opinions", [True, False])
@pytest.mark.parametrize("widest", [9, 80])
def test_packed_confidence_is_read_as_the_whole_matrix(
    opinions: bool, widest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small sets together by size, large ones unfolded, and always a part of the rows at a time."""
    monkeypatch.setattr(packed_rows, "_AT_ONCE", 5_000)
    generator = np.random.default_rng(widest)
    sizes = generator.integers(1, widest, 300)
    candidates = generator.random((300, 100)).argsort(1) < sizes[:, None]
    confidence = np.where(candidates, generator.random(candidates.shape) ** 4, 0).astype(np.float32)
    confidence[:5] = 0  # says nothing
    confidence[5] = np.where(candidates[5], np.nan, 0)
    opinion = generator.random(300).astype(np.float32) if opinions else None
    whole = resolve(candidates, confidence, opinion)
    packed = resolve(candidates, PackedRows.of(confidence, candidates), opinion)
    for name in ("label", "second", "outside"):
        np.testing.assert_array_equal(getattr(packed, name), getattr(whole, name))
    for name in ("confidence", "margin", "entropy", "change"):
        np.testing.assert_allclose(getattr(packed, name), getattr(whole, name), atol=1e-9)
    assert (np.abs(packed.rank - whole.rank) > 0).mean() < 0.05  # ties may fall either way
