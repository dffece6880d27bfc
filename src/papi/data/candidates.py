"""Synthesizes candidate sets `(N, K) bool` from true labels, and computes their statistics."""

from collections.abc import Sequence

import numpy as np

from papi.errors import UserError, unknown
from papi.randomness import draws

_ROWS = 16_384
_PAIRED = 2_000  # labels whose pairs are counted

# Flip probabilities of the built-in matrices by cyclic distance from the true label, for ten classes
# (LWS, Wen et al., ICML 2021). `pair` is PRODEN's name for flips to the next class only.
CASES: dict[str, dict[int, float]] = {
    "01": {1: 0.5},
    "02": {1: 0.3, 9: 0.3},
    "03": {1: 0.2, 2: 0.8, 3: 0.8, 4: 0.8, 5: 0.4, 6: 0.4, 7: 0.2, 8: 0.2, 9: 0.2},
    "04": {1: 0.5, 9: 0.5, 2: 0.3, 8: 0.3, 3: 0.1, 7: 0.1},
}


def uniform(labels: np.ndarray, classes: int, flip_rate: float, seed: int) -> np.ndarray:
    """Add each wrong label with probability `flip_rate`; the true label is always a candidate.

    The sampling is the same as in the released code of PaPi and PiCO (NumPy's legacy generator, one uniform number for
    each sample and class in dataset order), so a seed gives exactly the same sets.

    Examples
    --------
    >>> import numpy as np
    >>> from papi.data.candidates import uniform
    >>> uniform(np.array([0, 2]), classes=4, flip_rate=0.5, seed=0).astype(int).tolist()
    [[1, 0, 0, 0], [1, 0, 1, 0]]
    """
    generator = np.random.RandomState(seed)
    drawn = np.empty((len(labels), classes), bool)
    for part in _parts(len(labels)):
        drawn[part] = generator.uniform(0, 1, drawn[part].shape) < flip_rate
    return _with_truth(drawn, labels)


def hierarchical(labels: np.ndarray, groups: np.ndarray, flip_rate: float, seed: int) -> np.ndarray:
    """Like `uniform`, but only with classes of the true label's group; `groups` `(K,)` is the group of each class."""
    drawn = uniform(labels, len(groups), flip_rate, seed)
    drawn &= groups[labels][:, None] == groups
    return drawn


def class_dependent(labels: np.ndarray, matrix: np.ndarray, seed: int) -> np.ndarray:
    """Add label j to a sample of class y with probability `matrix[y, j]`; the true label is always a candidate."""
    generator = draws(seed, "candidates class-dependent")
    drawn = np.empty((len(labels), len(matrix)), bool)
    for part in _parts(len(labels)):
        drawn[part] = generator.random(drawn[part].shape) < matrix[labels[part]]
    return _with_truth(drawn, labels)


def uniform_sets(labels: np.ndarray, classes: int, seed: int) -> np.ndarray:
    """Sample uniformly from all sets that contain the true label, except the full set (RC and CC).

    Each wrong label is added with probability 1/2, and full sets are sampled again. This is exact for any number of
    classes.
    """
    generator = draws(seed, "candidates uniform-sets")
    drawn = np.ones((len(labels), classes), bool)
    full = np.arange(len(labels))
    while len(full):
        drawn[full] = generator.random((len(full), classes)) < 0.5
        drawn[full, labels[full]] = True
        full = full[drawn[full].all(1)]
    return drawn


def noisy(labels: np.ndarray, classes: int, flip_rate: float, noise_rate: float, seed: int) -> np.ndarray:
    """Drop the true label with probability `noise_rate` and add each wrong label with `flip_rate` (PiCO+).

    Empty sets are sampled again, so the true label is missing slightly less often than `noise_rate`.
    """
    if flip_rate == 0 and noise_rate == 1:
        raise UserError("--candidates.noise-rate 1 and --candidates.flip-rate 0 leave no candidates: change one.")
    generator = draws(seed, "candidates noisy")
    drawn = np.zeros((len(labels), classes), bool)
    empty = np.arange(len(labels))
    while len(empty):
        numbers = generator.random((len(empty), classes))
        keeps_truth = numbers[np.arange(len(empty)), labels[empty]] < 1 - noise_rate
        drawn[empty] = numbers < flip_rate
        drawn[empty, labels[empty]] = keeps_truth
        empty = empty[~drawn[empty].any(1)]
    return drawn


def instance_probabilities(logits: np.ndarray, labels: np.ndarray, rule: str, rate: float) -> np.ndarray:
    """Compute the probability of adding each wrong label from an annotator network's logits: `(N, K)`, 0 for the true
    label.

    With s the network's distribution over the wrong labels, `released` is min(1, rate · K · s), as in the code of VALEN
    and PaPi; `paper` is s divided by its largest value, as in the paper.
    """
    rows = np.arange(len(labels))
    scores = logits.astype(np.float64)
    # Mask before the softmax: a network that is certain of the true label would otherwise give 0 / 0.
    scores[rows, labels] = -np.inf
    wrong: np.ndarray = np.exp(scores - scores.max(1, keepdims=True))
    if rule == "paper":
        return wrong
    if rule == "released":
        wrong *= rate * logits.shape[1] / wrong.sum(1, keepdims=True)
        return wrong.clip(max=1)
    raise unknown("rule", rule, ["released", "paper"])


def instance_dependent(labels: np.ndarray, probabilities: np.ndarray, seed: int) -> np.ndarray:
    """Add label j to sample i with probability `probabilities[i, j]`; the true label is always a candidate."""
    drawn = draws(seed, "candidates instance-dependent").random(probabilities.shape) < probabilities
    return _with_truth(drawn, labels)


def case_matrix(name: str, classes: int, flip_rate: float) -> np.ndarray:
    """Return a built-in matrix: `01` to `04` for ten classes, or `pair` (flips to the next class) for any number."""
    if name != "pair" and name not in CASES:
        raise unknown("matrix", name, [*CASES, "pair", "a csv or npy file with K rows of K numbers"])
    if name != "pair" and classes != 10:
        raise UserError(f"--candidates.matrix {name} needs 10 classes; got {classes}: use a file, or pair.")
    distances = {1: flip_rate} if name == "pair" else CASES[name]
    matrix = np.eye(classes)
    for distance, probability in distances.items():
        matrix[np.arange(classes), (np.arange(classes) + distance) % classes] = probability
    return matrix


def statistics(candidates: np.ndarray, labels: np.ndarray | None) -> dict[str, float]:
    """Compute the statistics of candidate sets that are shown before training."""
    sizes = candidates.sum(1)
    result = {
        "mean_candidates": float(sizes.mean()),
        "singletons": float((sizes == 1).mean()),
        "full_sets": float((sizes == candidates.shape[1]).mean()),
    }
    if labels is not None:
        result["true_label_present"] = float(candidates[np.arange(len(labels)), labels].mean())
    return result


def frequent_pairs(candidates: np.ndarray, names: Sequence[str], count: int) -> list[tuple[str, str, int]]:
    """Return the pairs of labels that occur together in the most sets, with the number of sets.

    Only the most frequent labels are considered, because the number of pairs grows quadratically.
    """
    kept = np.sort(np.argsort(-candidates.sum(0), kind="stable")[:_PAIRED])
    together = np.zeros((len(kept), len(kept)), np.float32)  # counts stay exact up to 2**24 sets
    for part in _parts(len(candidates)):
        member = candidates[part, kept].astype(np.float32)
        together += member.T @ member
    together = np.triu(together, 1)
    order = np.argsort(-together, axis=None, kind="stable")[:count]
    pairs = zip(*np.unravel_index(order, together.shape), strict=True)
    return [(names[kept[a]], names[kept[b]], int(together[a, b])) for a, b in pairs if together[a, b] > 0]


def stand_ins(candidates: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Estimate how often label j is a candidate of samples of class i: `(K, K) float64`, M of `papi.methods.set_prior`.

    `shares` `(N, K)` is the degree to which each sample belongs to each class: a confidence, or one-hot true labels.
    For smoothing, each class gets one additional sample with all labels and one with none, so that a class without
    samples gets 1/2.
    """
    member = candidates.astype(np.float64)
    together, totals = shares.T @ member, shares.sum(0, dtype=np.float64)
    matrix: np.ndarray = (together + 1) / (totals[:, None] + 2)
    return matrix


def covering_pairs(matrix: np.ndarray, names: Sequence[str], count: int) -> list[tuple[str, str, float, float]]:
    """Return class i, label j, M_ij and M_ji for the pairs with the largest difference M_ij - M_ji."""
    ahead = matrix - matrix.T
    order = np.argsort(-ahead, axis=None, kind="stable")[:count]
    pairs = zip(*np.unravel_index(order, matrix.shape), strict=True)
    return [(names[i], names[j], float(matrix[i, j]), float(matrix[j, i])) for i, j in pairs if ahead[i, j] > 0]


def require_useful(candidates: np.ndarray, where: str) -> None:
    """Reject candidate sets without information: fewer than two rows, a single class, or all labels in every set."""
    if len(candidates) < 2:
        rows = "only one usable row" if len(candidates) else "no usable rows"
        raise UserError(f"{where} has {rows}: training needs at least two.")
    if candidates.any(0).sum() < 2:
        raise UserError(f"{where} has only one class: a classifier needs two or more.")
    if candidates.all():
        raise UserError(
            f"every candidate set of {where} contains all {candidates.shape[1]} labels: exclude wrong labels for some."
        )


def _parts(count: int) -> list[slice]:
    """Return blocks of rows, to save memory: the random numbers take eight times the memory of the sets."""
    return [slice(start, start + _ROWS) for start in range(0, count, _ROWS)]


def _with_truth(drawn: np.ndarray, labels: np.ndarray) -> np.ndarray:
    drawn[np.arange(len(labels)), labels] = True
    return drawn
