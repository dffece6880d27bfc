"""Candidate sets made from true labels, as `(N, K) bool`, and their statistics."""

from collections.abc import Sequence

import numpy as np

from papi.errors import UserError, unknown
from papi.randomness import draws

_ROWS = 16_384
_PAIRED = 2_000  # labels whose pairs are counted

# The flip probabilities of the named cases by the distance from the true label, counted around ten classes
# (LWS, Wen et al., ICML 2021); `pair` is PRODEN's name for flips to the next class alone.
CASES: dict[str, dict[int, float]] = {
    "01": {1: 0.5},
    "02": {1: 0.3, 9: 0.3},
    "03": {1: 0.2, 2: 0.8, 3: 0.8, 4: 0.8, 5: 0.4, 6: 0.4, 7: 0.2, 8: 0.2, 9: 0.2},
    "04": {1: 0.5, 9: 0.5, 2: 0.3, 8: 0.3, 3: 0.1, 7: 0.1},
}


def uniform(labels: np.ndarray, classes: int, flip_rate: float, seed: int) -> np.ndarray:
    """Each wrong label joins with probability `flip_rate`, the true one always.

    The draw is that of the released code of PaPi and PiCO (NumPy's legacy generator, one uniform number for each
    sample and class in dataset order), so a seed gives the very same sets.
    """
    generator = np.random.RandomState(seed)
    drawn = np.empty((len(labels), classes), bool)
    for part in _parts(len(labels)):
        drawn[part] = generator.uniform(0, 1, drawn[part].shape) < flip_rate
    return _with_truth(drawn, labels)


def hierarchical(labels: np.ndarray, groups: np.ndarray, flip_rate: float, seed: int) -> np.ndarray:
    """As `uniform`, but only among the classes of the true label's group; `groups` `(K,)` numbers them."""
    drawn = uniform(labels, len(groups), flip_rate, seed)
    drawn &= groups[labels][:, None] == groups
    return drawn


def class_dependent(labels: np.ndarray, matrix: np.ndarray, seed: int) -> np.ndarray:
    """Label j joins a sample of class y with probability `matrix[y, j]`; the true label always."""
    generator = draws(seed, "candidates class-dependent")
    drawn = np.empty((len(labels), len(matrix)), bool)
    for part in _parts(len(labels)):
        drawn[part] = generator.random(drawn[part].shape) < matrix[labels[part]]
    return _with_truth(drawn, labels)


def uniform_sets(labels: np.ndarray, classes: int, seed: int) -> np.ndarray:
    """Every set that holds the true label, except the full one, is equally likely (RC and CC).

    Each wrong label joins with probability 1/2 and full sets are drawn again: exact, for any number of classes.
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
    """The true label is left out with probability `noise_rate`, each wrong one joins with `flip_rate` (PiCO+).

    Empty rows are drawn again as a whole, so the truth is missing a little less often than `noise_rate` says.
    """
    if flip_rate == 0 and noise_rate == 1:
        raise UserError("--candidates.noise-rate 1 with --candidates.flip-rate 0 leaves no label at all: change one.")
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
    """Probability that each wrong label joins, from the logits of an annotator network: `(N, K)`, 0 for the true label.

    With s its distribution over the wrong labels, `released` is min(1, rate · K · s), what the code of VALEN and PaPi
    computes; `paper` is s divided by its largest value, the formula in the paper.
    """
    rows = np.arange(len(labels))
    scores = logits.astype(np.float64)
    # Masking before the softmax keeps a network that is certain of the truth from leaving 0 / 0.
    scores[rows, labels] = -np.inf
    wrong: np.ndarray = np.exp(scores - scores.max(1, keepdims=True))
    if rule == "paper":
        return wrong
    if rule == "released":
        wrong *= rate * logits.shape[1] / wrong.sum(1, keepdims=True)
        return wrong.clip(max=1)
    raise unknown("rule", rule, ["released", "paper"])


def instance_dependent(labels: np.ndarray, probabilities: np.ndarray, seed: int) -> np.ndarray:
    """Label j joins sample i with probability `probabilities[i, j]`; the true label always."""
    drawn = draws(seed, "candidates instance-dependent").random(probabilities.shape) < probabilities
    return _with_truth(drawn, labels)


def case_matrix(name: str, classes: int, flip_rate: float) -> np.ndarray:
    """The matrix of a named case: `01` to `04` for ten classes, `pair` (the next class with `flip_rate`) for any."""
    if name != "pair" and name not in CASES:
        raise unknown("matrix", name, [*CASES, "pair", "a file with K rows of K numbers"])
    if name != "pair" and classes != 10:
        raise UserError(f"--candidates.matrix {name} is made for 10 classes; got {classes}: give a file, or pair.")
    distances = {1: flip_rate} if name == "pair" else CASES[name]
    matrix = np.eye(classes)
    for distance, probability in distances.items():
        matrix[np.arange(classes), (np.arange(classes) + distance) % classes] = probability
    return matrix


def statistics(candidates: np.ndarray, labels: np.ndarray | None) -> dict[str, float]:
    """What users want to know about candidate sets before training on them."""
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
    """The pairs of labels that occur together in the most sets, with the number of sets.

    Of very many labels, the most frequent count: the number of pairs grows with their square.
    """
    kept = np.sort(np.argsort(-candidates.sum(0), kind="stable")[:_PAIRED])
    member = candidates[:, kept].astype(np.float32)  # counts stay exact up to 2**24 sets
    together = np.triu(member.T @ member, 1)
    order = np.argsort(-together, axis=None, kind="stable")[:count]
    pairs = zip(*np.unravel_index(order, together.shape), strict=True)
    return [(names[kept[a]], names[kept[b]], int(together[a, b])) for a, b in pairs if together[a, b] > 0]


def stand_ins(candidates: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """How often label j is a candidate of samples of class i: `(K, K) float64`, M of `papi.methods.set_prior`.

    `shares` `(N, K)` say how far each sample belongs to each class: a confidence, or one for the true label. Each class
    gets a sample with every label and one with none in addition, so that few say little and none at all say 1/2.
    """
    member = candidates.astype(np.float64)
    together, totals = shares.T @ member, shares.sum(0, dtype=np.float64)
    matrix: np.ndarray = (together + 1) / (totals[:, None] + 2)
    return matrix


def covering_pairs(matrix: np.ndarray, names: Sequence[str], count: int) -> list[tuple[str, str, float, float]]:
    """Which labels stand in for which: class i, label j, M_ij and M_ji, by how far the first is above the second."""
    ahead = matrix - matrix.T
    order = np.argsort(-ahead, axis=None, kind="stable")[:count]
    pairs = zip(*np.unravel_index(order, matrix.shape), strict=True)
    return [(names[i], names[j], float(matrix[i, j]), float(matrix[j, i])) for i, j in pairs if ahead[i, j] > 0]


def require_useful(candidates: np.ndarray, where: str) -> None:
    """Refuse sets that nothing can be learned from: too few rows, a single class, or all labels in every set."""
    if len(candidates) < 2:
        rows = "one usable row only" if len(candidates) else "no usable rows"
        raise UserError(f"{where} has {rows}: there is nothing to train on.")
    if candidates.any(0).sum() < 2:
        raise UserError(f"{where} knows one class only: a classifier needs two or more.")
    if candidates.all():
        raise UserError(
            f"every candidate set of {where} holds all {candidates.shape[1]} labels: nothing can be learnt."
        )


def _parts(count: int) -> list[slice]:
    """Blocks of rows: the draws are the same, and random numbers take eight times the memory of the sets."""
    return [slice(start, start + _ROWS) for start in range(0, count, _ROWS)]


def _with_truth(drawn: np.ndarray, labels: np.ndarray) -> np.ndarray:
    drawn[np.arange(len(labels)), labels] = True
    return drawn
