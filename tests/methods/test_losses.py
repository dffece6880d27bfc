"""Every loss against golden values and against a slow version with loops, up to logits where naive forms break."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.distributions import Dirichlet
from torch.nn.functional import normalize

from papi.methods import losses

R0 = torch.tensor([[2, -1, 0.5, 0], [0.1, 0.2, -0.3, 1.5], [-2, 3, 1, 0]])
R1 = torch.tensor([[1, 0, -1, 0.5], [0, 1, 0, -1], [0.5, 0.5, 2, -1]])
R2 = torch.tensor([[0, 0, 1, -1], [2, -0.5, 0.5, 0], [-1, 1, 0, 1]])
Y = torch.tensor([[1, 0, 1, 0], [1, 1, 1, 1], [0, 1, 0, 0]], dtype=torch.bool)
P0 = Y / Y.sum(1, keepdim=True)
PROTOTYPES = (0, 90, 180, 270)
WEAK, STRONG, QUEUE = (10, 80, 200), (350, 120, 100), (45, 225)


def angles(*degrees: float) -> Tensor:
    radians = torch.tensor(degrees, dtype=torch.float64) * math.pi / 180
    return torch.stack([radians.cos(), radians.sin()], 1).float()


def golden(actual: Tensor, expected: object) -> None:
    torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=actual.dtype), atol=2e-6, rtol=0)


class TestGoldenValues:
    def test_candidate_softmax(self) -> None:
        expected = [[0.817575, 0, 0.182426, 0], [0.146398, 0.161795, 0.098134, 0.593673], [0, 1, 0, 0]]
        golden(losses.candidate_softmax(R0, Y), expected)

    def test_cross_entropy_of_proden_rc_and_valen(self) -> None:
        golden(losses.soft_cross_entropy(R0, P0), 0.971430)

    def test_cc(self) -> None:
        golden(losses.candidate_likelihood_loss(R0, Y), 0.105484)

    def test_dpll(self) -> None:
        golden(losses.non_candidate_loss(R0, Y), 0.101967)
        for logits, expected in ((R0, 0.278283), (R1, 1.065492), (R2, 0.609894)):
            golden(losses.kl_divergence(P0, logits), expected)

    def test_dpll_opinion(self) -> None:
        expected = [[0.697059, 0, 0.302941, 0], [0.364358, 0.228485, 0.193408, 0.213749], [0, 1, 0, 0]]
        golden(losses.candidate_softmax((R0 + R1 + R2) / 3, Y), expected)

    def test_lws(self) -> None:
        weights = torch.full((3, 4), 0.25)
        golden(losses.leveraged_sigmoid(R0, Y, weights, 1), 0.362119)
        golden(losses.leveraged_sigmoid(R0, Y, weights, 2), 0.538719)
        golden(losses.leveraged_cross_entropy(R0, Y, weights, 1), 0.770985)

    def test_papi(self) -> None:
        target = 0.95 * P0 + 0.05 * losses.candidate_softmax(R0, Y)
        golden(target, [[0.515879, 0, 0.484121, 0], [0.244820, 0.245590, 0.242407, 0.267184], [0, 1, 0, 0]])
        golden(losses.soft_cross_entropy(R0, target), 0.954606)
        partner = target[torch.tensor([1, 2, 0])]
        scores = [angles(*view) @ angles(*PROTOTYPES).T / 0.3 for view in (WEAK, STRONG)]
        golden(sum(losses.mixed_kl_divergence(target, partner, 0.6, each) for each in scores), 3.996906)

    def test_contrastive_losses(self) -> None:
        query, key, queue = angles(*WEAK), angles(*STRONG), angles(*QUEUE)
        golden(losses.info_nce(query, key, queue, 0.07), 5.578378)
        labels, queue_labels = torch.tensor([0, 3, 1]), torch.tensor([1, 0])
        golden(losses.supervised_contrastive(query, key, queue, labels, queue_labels, 0.07), 12.034289)

    def test_dirichlet_kl(self) -> None:
        golden(losses.dirichlet_kl((R0 / 4).exp().clamp(0.01, 30)), 0.324990)


# The slow versions: Python floats, one number after another.


def softmax(row: list[float]) -> list[float]:
    exponentials = [math.exp(r - max(row)) for r in row]
    return [e / sum(exponentials) for e in exponentials]


def mean(terms: list[float]) -> float:
    return sum(terms) / len(terms)


def slow_cross_entropy(logits: list[list[float]], target: list[list[float]]) -> float:
    return mean(
        [
            -sum(t * math.log(p) for t, p in zip(wanted, softmax(row), strict=True))
            for row, wanted in zip(logits, target, strict=True)
        ]
    )


def slow_kl(target: list[list[float]], logits: list[list[float]]) -> float:
    entropy = mean([-sum(t * math.log(t) for t in wanted if t > 0) for wanted in target])
    return slow_cross_entropy(logits, target) - entropy


def slow_likelihood(logits: list[list[float]], candidates: list[list[bool]]) -> float:
    terms = []
    for row, inside in zip(logits, candidates, strict=True):
        terms.append(-math.log(sum(p for p, c in zip(softmax(row), inside, strict=True) if c)))
    return mean(terms)


def slow_log_complement(row: list[float], j: int) -> float:
    """The other classes' probabilities, summed: a small sum keeps its digits, 1 - p would not."""
    return math.log(sum(p for k, p in enumerate(softmax(row)) if k != j))


def slow_non_candidates(logits: list[list[float]], candidates: list[list[bool]]) -> float:
    return mean(
        [
            -sum(slow_log_complement(row, j) for j in range(len(row)) if not inside[j])
            for row, inside in zip(logits, candidates, strict=True)
        ]
    )


def slow_leveraged(
    logits: list[list[float]], candidates: list[list[bool]], weights: list[list[float]], beta: float, form: str
) -> float:
    terms = []
    for row, inside, w in zip(logits, candidates, weights, strict=True):
        total, probability = 0.0, softmax(row)
        for j, r in enumerate(row):
            if form == "sigmoid":
                total += w[j] / (1 + math.exp(r)) if inside[j] else beta * w[j] / (1 + math.exp(-r))
            else:
                total -= w[j] * math.log(probability[j]) if inside[j] else beta * w[j] * slow_log_complement(row, j)
        terms.append(total)
    return mean(terms)


SHAPES = [(1, 2), (3, 4), (5, 10), (2, 40)]
SETS = ["singleton", "full", "mixed"]
SIZES = [1.0, 20.0, 300.0]  # the largest logit


def make_sets(kind: str, count: int, classes: int) -> Tensor:
    torch.manual_seed(count + classes)
    truth = torch.eye(classes, dtype=torch.bool)[torch.randint(0, classes, (count,))]
    if kind == "singleton":
        return truth
    return torch.ones_like(truth) if kind == "full" else truth | (torch.rand(count, classes) < 0.5)


def make_logits(count: int, classes: int, size: float) -> Tensor:
    """Random, with one row that is as sharp as can be."""
    torch.manual_seed(classes)
    logits = torch.randn(count, classes) * size / 3
    logits[0], logits[0, -1] = -size, size
    return logits.clamp(-size, size)


def agree(actual: Tensor, expected: float) -> None:
    assert actual.item() == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize(("count", "classes"), SHAPES)
class TestAgainstLoops:
    def test_candidate_softmax(self, count: int, classes: int, sets: str, size: float) -> None:
        logits, candidates = make_logits(count, classes, size), make_sets(sets, count, classes)
        actual = losses.candidate_softmax(logits, candidates)
        for row, inside, result in zip(logits.tolist(), candidates, actual, strict=True):
            best = max(r for r, c in zip(row, inside, strict=True) if c)
            share = [math.exp(r - best) if c else 0.0 for r, c in zip(row, inside, strict=True)]
            assert result.tolist() == pytest.approx([s / sum(share) for s in share], abs=1e-6)
        assert (actual[~candidates] == 0).all()

    def test_candidate_argmax(self, count: int, classes: int, sets: str, size: float) -> None:
        logits, candidates = make_logits(count, classes, size), make_sets(sets, count, classes)
        for row, inside, label in zip(
            logits.tolist(), candidates, losses.candidate_argmax(logits, candidates).tolist(), strict=True
        ):
            assert inside[label]
            assert row[label] == max(r for r, c in zip(row, inside, strict=True) if c)

    def test_cross_entropy_and_divergence(self, count: int, classes: int, sets: str, size: float) -> None:
        logits, candidates = make_logits(count, classes, size), make_sets(sets, count, classes)
        target = losses.candidate_softmax(make_logits(count, classes, 1.0).flip(0), candidates)
        partner = candidates / candidates.sum(1, keepdim=True)
        rows, first, second = logits.tolist(), target.tolist(), partner.tolist()
        agree(losses.soft_cross_entropy(logits, target), slow_cross_entropy(rows, first))
        agree(losses.kl_divergence(target, logits), slow_kl(first, rows))
        mixed = 0.3 * slow_kl(first, rows) + 0.7 * slow_kl(second, rows)
        agree(losses.mixed_kl_divergence(target, partner, 0.3, logits), mixed)

    def test_candidate_likelihood(self, count: int, classes: int, sets: str, size: float) -> None:
        logits, candidates = make_logits(count, classes, size), make_sets(sets, count, classes)
        expected = slow_likelihood(logits.tolist(), candidates.tolist())
        agree(losses.candidate_likelihood_loss(logits, candidates), expected)

    def test_non_candidates(self, count: int, classes: int, sets: str, size: float) -> None:
        logits, candidates = make_logits(count, classes, size), make_sets(sets, count, classes)
        expected = slow_non_candidates(logits.tolist(), candidates.tolist())
        agree(losses.non_candidate_loss(logits, candidates), expected)

    def test_leveraged(self, count: int, classes: int, sets: str, size: float) -> None:
        logits, candidates = make_logits(count, classes, size), make_sets(sets, count, classes)
        weights = torch.rand(count, classes)
        forms = {"sigmoid": losses.leveraged_sigmoid, "cross-entropy": losses.leveraged_cross_entropy}
        for form, loss in forms.items():
            for beta in (0.0, 1.0, 2.0):
                expected = slow_leveraged(logits.tolist(), candidates.tolist(), weights.tolist(), beta, form)
                agree(loss(logits, candidates, weights, beta), expected)

    def test_gradients_are_finite(self, count: int, classes: int, sets: str, size: float) -> None:
        candidates = make_sets(sets, count, classes)
        for name, loss in PARTIAL_LABEL_LOSSES.items():
            logits = make_logits(count, classes, size).requires_grad_()
            value = loss(logits, candidates)
            assert value.isfinite(), name
            value.backward()
            assert logits.grad is not None
            assert logits.grad.isfinite().all(), name


def _uniform(candidates: Tensor) -> Tensor:
    return candidates.double() / candidates.sum(1, keepdim=True)


PARTIAL_LABEL_LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cross-entropy": lambda r, y: losses.soft_cross_entropy(r, _uniform(y)),
    "divergence": lambda r, y: losses.kl_divergence(_uniform(y), r),
    "candidate likelihood": losses.candidate_likelihood_loss,
    "non-candidates": losses.non_candidate_loss,
    "leveraged sigmoid": lambda r, y: losses.leveraged_sigmoid(r, y, torch.ones_like(r), 2.0),
    "leveraged cross-entropy": lambda r, y: losses.leveraged_cross_entropy(r, y, torch.ones_like(r), 2.0),
}


@pytest.mark.parametrize("name", PARTIAL_LABEL_LOSSES)
def test_gradients_equal_finite_differences(name: str) -> None:
    torch.manual_seed(0)
    logits = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    candidates = make_sets("mixed", 4, 5)
    candidates[0] = True
    assert torch.autograd.gradcheck(lambda r: PARTIAL_LABEL_LOSSES[name](r, candidates), (logits,))


@pytest.mark.parametrize("name", PARTIAL_LABEL_LOSSES)
def test_half_precision_is_widened(name: str) -> None:
    logits, candidates = torch.tensor([[30.0, -30.0, 0.0]]), torch.tensor([[False, True, True]])
    wide = PARTIAL_LABEL_LOSSES[name](logits, candidates)
    half = PARTIAL_LABEL_LOSSES[name](logits.bfloat16(), candidates)
    torch.testing.assert_close(half, wide, check_dtype=False)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("count", "classes"), SHAPES)
def test_log_complement_keeps_its_digits(count: int, classes: int, size: float) -> None:
    logits = make_logits(count, classes, size)
    actual = losses.log_complement(logits)
    for row, result in zip(logits.tolist(), actual.tolist(), strict=True):
        assert result == pytest.approx([slow_log_complement(row, j) for j in range(classes)], rel=1e-5, abs=1e-6)


def test_a_sure_mistake_has_a_full_gradient() -> None:
    """Where log(1.0000001 - p) is flat, the exact form still pushes the wrong class down, by p = 1."""
    logits = torch.tensor([[300.0, 0.0, -300.0]], requires_grad=True)
    losses.non_candidate_loss(logits, torch.tensor([[False, True, True]])).backward()
    torch.testing.assert_close(logits.grad, torch.tensor([[1.0, -1.0, 0.0]]))


def unit(count: int, seed: int) -> Tensor:
    return normalize(torch.randn(count, 6, generator=torch.Generator().manual_seed(seed)))


@pytest.mark.parametrize("temperature", [0.07, 1.0])
@pytest.mark.parametrize(("batch", "queue"), [(2, 1), (3, 2), (8, 20)])
class TestContrastiveAgainstLoops:
    def similarity(self, a: Tensor, b: Tensor, temperature: float) -> float:
        return sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True)) / temperature

    def test_info_nce(self, batch: int, queue: int, temperature: float) -> None:
        queries, keys, others = unit(batch, 0), unit(batch, 1), unit(queue, 2)
        terms = []
        for query, key in zip(queries, keys, strict=True):
            scores = [self.similarity(query, each, temperature) for each in (key, *others)]
            terms.append(-math.log(softmax(scores)[0]))
        agree(losses.info_nce(queries, keys, others, temperature), mean(terms))

    def test_supervised_contrastive(self, batch: int, queue: int, temperature: float) -> None:
        queries, keys, others = unit(batch, 0), unit(batch, 1), unit(queue, 2)
        torch.manual_seed(0)
        labels, queue_labels = torch.randint(0, 3, (batch,)), torch.randint(-1, 3, (queue,))
        everything = [*queries, *keys, *others]
        names = [*labels.tolist(), *labels.tolist(), *queue_labels.tolist()]
        terms = []
        for i, query in enumerate(queries):
            rest = [a for a in range(len(everything)) if a != i]
            shares = softmax([self.similarity(query, everything[a], temperature) for a in rest])
            logs = [math.log(share) for a, share in zip(rest, shares, strict=True) if names[a] == names[i]]
            terms.append(-mean(logs))
        actual = losses.supervised_contrastive(queries, keys, others, labels, queue_labels, temperature)
        agree(actual, mean(terms))
        some = slice(batch // 3, batch)
        actual = losses.supervised_contrastive(queries, keys, others, labels, queue_labels, temperature, some)
        agree(actual, mean(terms[some]))

    def test_gradients_are_finite(self, batch: int, queue: int, temperature: float) -> None:
        """Also for identical and opposite vectors, where similarities are at their limits."""
        query = unit(1, 0).expand(batch, -1).clone().requires_grad_()
        key, others = -query.detach(), query.detach()[:1].expand(queue, -1)
        labels, queue_labels = torch.arange(batch), torch.zeros(queue, dtype=torch.long)
        loss = losses.info_nce(query, key, others, temperature / 10)
        loss = loss + losses.supervised_contrastive(query, key, others, labels, queue_labels, temperature / 10)
        loss.backward()
        assert loss.isfinite()
        assert query.grad is not None
        assert query.grad.isfinite().all()


@pytest.mark.parametrize(("count", "classes"), SHAPES)
def test_dirichlet_kl_equals_that_of_the_distributions(count: int, classes: int) -> None:
    torch.manual_seed(0)
    alpha = (torch.rand(count, classes, dtype=torch.float64) * 8 - 4.6).exp().clamp(0.01, 30).requires_grad_()
    uniform = Dirichlet(torch.ones(count, classes, dtype=torch.float64))
    expected = torch.distributions.kl_divergence(Dirichlet(alpha), uniform).mean()
    torch.testing.assert_close(losses.dirichlet_kl(alpha), expected)
    losses.dirichlet_kl(alpha).backward()
    assert alpha.grad is not None
    assert alpha.grad.isfinite().all()
