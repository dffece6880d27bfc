"""DIRK against golden values and against a slow version that follows the specification line by line."""

import copy
import math
from collections.abc import Callable
from typing import Any, Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import cosine_similarity, one_hot
from toy import CHANNELS, R0, R1, SIZE, START, K, N, Y, extremes, make_candidates, scripted

from papi.errors import UserError
from papi.methods.dirk import DIRK, DIRKConfig
from papi.methods.losses import (
    Compared,
    candidate_argmax,
    info_nce,
    rectified,
    soft_cross_entropy,
    weighted_contrastive,
)
from papi.networks import Network, build
from papi.types import Batch, Progress

EPOCHS, STEPS = 3, 3
RECTIFIED = [
    [0.671942, 0.047906, 0.149931, 0.130221],
    [0.146398, 0.161795, 0.098134, 0.593673],
    [0.019079, 0.456734, 0.383211, 0.140976],
]


def close(actual: Tensor, expected: object, tolerance: float = 1e-6) -> None:
    torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=actual.dtype), atol=tolerance, rtol=0)


def angles(*degrees: float) -> Tensor:
    radians = torch.tensor(degrees, dtype=torch.float64) * math.pi / 180
    return torch.stack([radians.cos(), radians.sin()], 1)


def mask(*rows: set[int], classes: int) -> Tensor:
    return torch.tensor([[label in row for label in range(classes)] for row in rows])


class TestGoldenRectification:
    def test_mixed_full_and_single_sets(self) -> None:
        close(rectified(R0.double(), Y), RECTIFIED)

    def test_share_of_the_candidates(self) -> None:
        close((rectified(R0.double(), Y) * Y).sum(1), [0.821873, 1, 0.456734])

    @pytest.mark.parametrize(
        ("logits", "expected"),
        [
            pytest.param([0, 1, 3, 0, -1], [0.257994, 0.701301, 0.038110, 0.001897, 0.000698], id="best label outside"),
            pytest.param([0, 0, 0, 0, 0], [0.3125, 0.3125, 0.125, 0.125, 0.125], id="flat"),
            pytest.param(
                [2, 2, 2, 0, 0], [0.360100, 0.360100, 0.220199, 0.029801, 0.029801], id="tie across the border"
            ),
        ],
    )
    def test_two_candidates_of_five(self, logits: list[float], expected: list[float]) -> None:
        close(rectified(torch.tensor([logits], dtype=torch.float64), mask({0, 1}, classes=5))[0], expected)

    def test_a_sure_teacher_with_flat_others_makes_a_single_label_nearly_uniform(self) -> None:
        answer = rectified(torch.tensor([[9.0, 0, 0, 0, 0]], dtype=torch.float64), mask({0}, classes=5))
        close(answer[0], [0.200079, 0.199980, 0.199980, 0.199980, 0.199980])

    @pytest.mark.parametrize(
        ("logits", "candidates", "expected"),
        [
            ([300, 0, 0, -300], {1, 2}, [0, 0.5, 0.5, 0]),
            ([100, 100, 0, -5], {0, 1}, [0.332586, 0.332586, 0.332586, 0.002241]),
        ],
    )
    def test_single_precision(self, logits: list[float], candidates: set[int], expected: list[float]) -> None:
        """Where divided probabilities are undefined, or vanish."""
        answer = rectified(torch.tensor([logits]).float(), mask(candidates, classes=4))
        assert answer.dtype == torch.float32
        close(answer[0], expected)

    @pytest.mark.parametrize("gap", [40.0, 46.0, 50.0, 100.0, 103.0, 300.0])
    def test_rows_sum_to_one_however_little_is_left_outside(self, gap: float) -> None:
        answer = rectified(torch.tensor([[gap, gap, 0, -5]]).double(), mask({0, 1}, classes=4))
        close(answer[0], [0.332586, 0.332586, 0.332586, 0.002241])


class TestGoldenLosses:
    def test_classification(self) -> None:
        close(soft_cross_entropy(R1.double(), rectified(R0.double(), Y)), 1.585773)

    @pytest.mark.parametrize(("certain", "expected"), [("rectified", 1.585773), ("one-hot", 1.706891)])
    def test_step(self, certain: Literal["rectified", "one-hot"], expected: float) -> None:
        method, batch = scripted(DIRK, R1.double(), certain=certain, teacher_momentum=1.0)
        method.teacher.value.logits[0].copy_(R0.double())
        close(method.training_step(batch, START).loss.detach(), expected)

    # Queries, keys and a queue of two.
    winners = torch.tensor([0, 3, 1])
    queue = Compared(
        angles(45, 225), torch.tensor([1, 0]), torch.tensor([[0.1, 0.6, 0.2, 0.1], [0.7, 0.1, 0.1, 0.1]]).double()
    )

    def contrastive(self, rows: slice = slice(None)) -> Tensor:
        target = rectified(R0.double(), Y)
        queries = Compared(angles(10, 80, 200), self.winners, target)
        keys = Compared(angles(350, 120, 100), self.winners, target)
        others = Compared(*(torch.cat(pair) for pair in zip(keys, self.queue, strict=True)))
        return weighted_contrastive(queries, others, 0.07, 0.4, rows)

    def test_winners(self) -> None:
        assert candidate_argmax(rectified(R0, Y), Y).equal(self.winners)

    def test_contrastive(self) -> None:
        close(self.contrastive(), 11.833277)
        close(soft_cross_entropy(R1.double(), rectified(R0.double(), Y)) + self.contrastive(), 13.419050)

    @pytest.mark.parametrize(("row", "expected"), [(0, 12.626150), (1, 2.713853), (2, 20.159828)])
    def test_contrastive_of_one_row(self, row: int, expected: float) -> None:
        close(self.contrastive(slice(row, row + 1)), expected)

    def test_weights_of_the_positives(self) -> None:
        """Read off the gradients: a column a of row i has (softmax of the similarities - weight) z_i / τ."""
        target, tau = rectified(R0.double(), Y), 0.07
        z, keys = angles(10, 80, 200), angles(350, 120, 100)
        columns = torch.cat([keys, self.queue.features]).requires_grad_()
        others = Compared(
            columns, torch.cat([self.winners, self.queue.labels]), torch.cat([target, self.queue.beliefs])
        )
        found = []
        for i in range(3):
            loss = weighted_contrastive(Compared(z, self.winners, target), others, tau, 0.4, slice(i, i + 1))
            similar = torch.cat([z, columns.detach()]) @ z[i] / tau
            similar[i] = -torch.inf
            (gradient,) = torch.autograd.grad(loss, columns)
            found.append(similar.softmax(0)[3:] - tau * gradient @ z[i])
        expected = [[0.504044, 0, 0, 0, 0.495956], [0, 1, 0, 0, 0], [0, 0, 0.547907, 0.452093, 0]]
        close(torch.stack(found), expected)

    def test_info_nce(self) -> None:
        close(info_nce(angles(10, 80, 200), angles(350, 120, 100), self.queue.features, 0.07), 5.578378)


def slow_rectified(logits: list[float], inside: list[bool]) -> list[float]:
    """The form of the release, by divisions, in Python floats; full sets by their mask."""
    largest = max(logits)
    weights = [math.exp(r - largest) for r in logits]
    u = [weight / sum(weights) for weight in weights]
    if all(inside):
        return u
    S = sum(each for each, c in zip(u, inside, strict=True) if c)
    rest = sum(each for each, c in zip(u, inside, strict=True) if not c)
    p = [each / S if c else 0.0 for each, c in zip(u, inside, strict=True)]
    n = [0.0 if c else each / rest for each, c in zip(u, inside, strict=True)]
    b, c = min(each for each, c in zip(p, inside, strict=True) if c), max(n)
    a = c / S / (c / S + b)
    return [a * x + (1 - a) * y for x, y in zip(p, n, strict=True)]


@st.composite
def answers(draw: st.DrawFn, batch: int = 5) -> tuple[Tensor, Tensor]:
    """Logits in double precision, and sets of which one is full and one a single label."""
    classes = draw(st.integers(2, 12))
    scale = draw(st.floats(0.1, 8))
    random = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    logits = scale * torch.randn(batch, classes, generator=random, dtype=torch.float64)
    inside = torch.rand(batch, classes, generator=random) < draw(st.floats(0, 1))
    inside |= one_hot(torch.randint(classes, (batch,), generator=random), classes).bool()
    inside[0] = True
    inside[1] = torch.arange(classes) == classes - 1
    return logits, inside


def with_answers(test: Callable[..., None]) -> Callable[..., None]:
    return settings(deadline=None, max_examples=60)(given(answer=answers())(test))


class TestRectification:
    @with_answers
    def test_equals_the_divided_form(self, answer: tuple[Tensor, Tensor]) -> None:
        logits, inside = answer
        expected = [slow_rectified(*row) for row in zip(logits.tolist(), inside.tolist(), strict=True)]
        close(rectified(logits, inside), expected, 1e-8)

    @with_answers
    def test_rows_are_distributions_with_the_proportions_of_the_teacher(self, answer: tuple[Tensor, Tensor]) -> None:
        logits, inside = answer
        u, q = logits.softmax(1), rectified(logits, inside)
        assert (q > 0).all()
        close(q.sum(1), torch.ones(len(q)), 1e-12)
        for side in (inside, ~inside):
            for mine, other, members in zip(q, u, side, strict=True):
                if members.any():
                    close(mine[members] / mine[members].sum(), other[members] / other[members].sum(), 1e-12)

    @with_answers
    def test_the_lowest_candidate_is_above_the_highest_other_by_the_mass_of_the_set(
        self, answer: tuple[Tensor, Tensor]
    ) -> None:
        logits, inside = answer
        q, mass = rectified(logits, inside), (logits.softmax(1) * inside).sum(1)
        for row, members, total in zip(q, inside, mass, strict=True):
            if not members.all():
                close(row[~members].max() / row[members].min(), total, 1e-12)
            assert float(row[members].sum()) >= int(members.sum()) / len(row) - 1e-12

    @with_answers
    def test_a_full_set_keeps_its_softmax(self, answer: tuple[Tensor, Tensor]) -> None:
        logits, inside = answer
        close(rectified(logits, inside)[0], logits.softmax(1)[0], 1e-15)

    @with_answers
    def test_a_single_label(self, answer: tuple[Tensor, Tensor]) -> None:
        """Literal: c / (c + u). By default: itself."""
        logits, inside = answer
        u = logits[1].softmax(0)
        c = u[:-1].max() / u[:-1].sum()
        close(rectified(logits, inside)[1, -1], c / (c + u[-1]), 1e-12)
        close(scripted(DIRK, certain="one-hot")[0].target(logits, inside)[1], inside[1].double())
        close(scripted(DIRK, certain="rectified")[0].target(logits, inside), rectified(logits, inside))

    @with_answers
    def test_shifted_logits_change_nothing_and_permuted_classes_permute(self, answer: tuple[Tensor, Tensor]) -> None:
        logits, inside = answer
        order = torch.randperm(logits.shape[1], generator=torch.Generator().manual_seed(0))
        close(rectified(logits + 50, inside), rectified(logits, inside), 1e-10)
        close(rectified(logits[:, order], inside[:, order]), rectified(logits, inside)[:, order], 1e-12)

    @with_answers
    def test_winners_are_candidates_also_where_nothing_is_left_outside(self, answer: tuple[Tensor, Tensor]) -> None:
        """In single precision a set can have all the mass; ties across its border are then exact."""
        logits, inside = answer
        sure = torch.where(inside, 17.0, 0.0) + 0.01 * logits.float()
        q = rectified(sure, inside)
        assert inside.gather(1, candidate_argmax(q, inside)[:, None]).all()
        assert q.isfinite().all()


def test_a_tie_across_the_border_has_a_winner_inside() -> None:
    q = rectified(torch.tensor([[0.0, 17, -30, -30]]), mask({1}, classes=4))
    close(q[0], [0.5, 0.5, 0, 0])
    assert int(candidate_argmax(q, mask({1}, classes=4))) == 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_widened(dtype: torch.dtype) -> None:
    answer = rectified(R0.to(dtype), Y)
    assert answer.dtype == torch.float32
    close(answer, RECTIFIED, 2e-2)


def slow_contrastive(query: Compared, others: Compared, sets: list[Tensor], tau: float, tau_belief: float) -> Tensor:
    """A loop over the anchors, with the test for common candidates that the specification shows to be redundant."""
    columns = Compared(*(torch.cat(pair) for pair in zip(query, others, strict=True)))
    total = torch.zeros((), dtype=torch.float64)
    for i in range(len(query.labels)):
        rest = [a for a in range(len(columns.labels)) if a != i]
        positives = [
            a
            for a in rest
            if columns.labels[a] == query.labels[i] and sets[a] is not None and (sets[a] & sets[i]).any()
        ]
        s = {a: (query.features[i] * columns.features[a]).sum() / tau for a in rest}
        alike = {a: cosine_similarity(query.beliefs[i], columns.beliefs[a], dim=0) / tau_belief for a in positives}
        normaliser = sum(math.exp(value) for value in alike.values())
        denominator = torch.stack(list(s.values())).exp().sum()
        for a in positives:
            total = total - math.exp(alike[a]) / normaliser * (s[a].exp() / denominator).log()
    return total / len(query.labels)


class TestWeightedContrastive:
    def make(
        self, seed: int, batch: int = 5, queue: int = 7, classes: int = K, scale: float = 2.0
    ) -> tuple[Compared, Compared, list[Tensor]]:
        """Queries, their keys with the queue, and the sets of all; one set is full and one a single label."""
        random = torch.Generator().manual_seed(seed)

        def some(count: int) -> tuple[Compared, Tensor]:
            inside = torch.rand(count, classes, generator=random) < 0.5
            inside |= one_hot(torch.randint(classes, (count,), generator=random), classes).bool()
            inside[0], inside[1] = True, torch.arange(classes) == classes - 1
            beliefs = rectified(scale * torch.randn(count, classes, generator=random, dtype=torch.float64), inside)
            features = torch.randn(count, 3, generator=random, dtype=torch.float64)
            features = features / features.norm(dim=1, keepdim=True)
            return Compared(features, candidate_argmax(beliefs, inside), beliefs), inside

        (query, own), (others, later) = some(batch), some(queue)
        keys = query._replace(features=query.features.flip(0))
        everything = Compared(*(torch.cat(pair) for pair in zip(keys, others, strict=True)))
        return query._replace(features=query.features.requires_grad_()), everything, [*own, *own, *later]

    @settings(deadline=None, max_examples=40)
    @given(
        seed=st.integers(0, 2**31),
        classes=st.integers(2, 12),
        scale=st.floats(0.1, 8),
        temperatures=st.sampled_from([(0.2, 0.4), (1.0, 0.05), (0.5, 5.0)]),
    )
    def test_equals_the_loop(self, seed: int, classes: int, scale: float, temperatures: tuple[float, float]) -> None:
        query, others, sets = self.make(seed, classes=classes, scale=scale)
        values = [
            weighted_contrastive(query, others, *temperatures),
            slow_contrastive(query, others, sets, *temperatures),
        ]
        gradients = [torch.autograd.grad(value, query.features)[0] for value in values]
        torch.testing.assert_close(*values, atol=1e-9, rtol=1e-9)
        torch.testing.assert_close(*gradients, atol=1e-9, rtol=1e-8)

    def test_rows_without_a_label_are_never_positive(self) -> None:
        """They count as negatives, whatever is believed about them."""
        query, others, _ = self.make(0)
        values = []
        for label, belief in ((-1, 0.0), (-1, 1.0), (K + 1, 0.5)):
            labels, beliefs = others.labels.clone(), others.beliefs.clone()
            labels[-7:], beliefs[-7:] = label, belief
            values.append(weighted_contrastive(query, Compared(others.features, labels, beliefs), 0.2, 0.4))
        assert values[0] == values[1] == values[2]

    def test_the_mean_of_parts_is_the_whole(self) -> None:
        query, others, _ = self.make(1)
        parts = [weighted_contrastive(query, others, 0.2, 0.4, slice(i, i + 1)) for i in range(5)]
        close(torch.stack(parts).mean(), weighted_contrastive(query, others, 0.2, 0.4), 1e-12)

    def test_other_queries_learn_from_a_row(self) -> None:
        query, others, _ = self.make(2)
        weighted_contrastive(query, others, 0.2, 0.4, slice(0, 1)).backward()  # type: ignore[no-untyped-call]
        assert query.features.grad is not None
        assert (query.features.grad[1:] != 0).any()


def plain(**options: Any) -> DIRK:
    return make_method(DIRKConfig(**options))


def make_method(config: DIRKConfig, seed: int = 0) -> DIRK:
    torch.manual_seed(seed)
    network = build("small", (CHANNELS, SIZE, SIZE), K, project=config.needs_projector)
    return DIRK(network, make_candidates(), config).double()


def make_batch(method: DIRK, epoch: int, step: int, size: int = 8) -> Batch:
    random = torch.Generator().manual_seed(100 * epoch + step)
    index = torch.randperm(N, generator=random)[:size]
    views = tuple(
        torch.randn(size, CHANNELS, SIZE, SIZE, generator=random, dtype=torch.float64) for _ in method.config.view_names
    )
    return Batch(index, views, method.candidates[index])


def at(epoch: int, step: int = 0) -> Progress:
    return Progress(epoch, EPOCHS, step, STEPS, seed=0)


def sgd(module: torch.nn.Module) -> torch.optim.SGD:
    learning = [p for p in module.parameters() if p.requires_grad]
    return torch.optim.SGD(learning, lr=0.05, momentum=0.9, weight_decay=1e-3)


def train(method: DIRK, optimizer: torch.optim.Optimizer, epoch: int, step: int, size: int = 8) -> Tensor:
    output = method.training_step(make_batch(method, epoch, step, size), at(epoch, step))
    optimizer.zero_grad()
    output.loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return output.loss.detach()


class LiteralDIRK:
    """The step of the specification, one line after another; the teacher moves after the optimizer's step."""

    def __init__(self, method: DIRK) -> None:
        self.config = method.config
        self.S: Network = copy.deepcopy(method.network)
        self.T: Network = copy.deepcopy(method.network)
        self.queue: list[tuple[Tensor, Tensor, int]] = []
        if method.queue is not None:
            self.queue = [(row, torch.zeros(K, dtype=torch.float64), -1) for row in method.queue.features]
        self.pointer = 0

    @staticmethod
    def embed(network: Network, images: Tensor) -> Tensor:
        assert network.projector is not None
        projected: Tensor = network.projector(network.encoder(images))
        return projected / projected.norm(dim=1, keepdim=True)

    def loss(self, batch: Batch, progress: Progress) -> Tensor:
        c, size = self.config, len(batch.index)
        x_d = batch.views[0]
        refine = c.refinement_weight > 0
        # 2. The teacher, without gradient: keys, then answers.
        with torch.no_grad():
            k = self.embed(self.T, batch.views[1]) if refine else None
            answer = self.T.classifier(self.T.encoder(x_d))
        # 3. Rectification and winners.
        rows = zip(answer.tolist(), batch.candidates.tolist(), strict=True)
        q = torch.tensor([slow_rectified(*row) for row in rows], dtype=torch.float64)
        for i in range(size):
            if c.certain == "one-hot" and int(batch.candidates[i].sum()) == 1:
                q[i] = batch.candidates[i].double()
        l = [max((j for j in range(K) if batch.candidates[i, j]), key=lambda j: float(q[i, j])) for i in range(size)]  # noqa: E741
        # 4. The student: queries, then answers.
        z = self.embed(self.S, batch.views[2]) if refine else None
        r = self.S.classifier(self.S.encoder(x_d))
        # 5. Classification.
        L: Tensor = -(q * r.softmax(1).log()).sum() / size
        if z is None or k is None:
            return L
        # 6. Contrast.
        if progress.epoch < c.warmup_epochs:
            for i in range(size):
                own = (z[i] * k[i]).sum() / c.temperature
                others = [(z[i] * a).sum() / c.temperature for a, _, _ in self.queue]
                L = L - c.refinement_weight * (own.exp() / torch.stack([own, *others]).exp().sum()).log() / size
        else:
            labels = torch.tensor(l)
            queries = Compared(z, labels, q)
            others_ = Compared(
                torch.stack([*k, *(a for a, _, _ in self.queue)]),
                torch.tensor([*l, *(label for _, _, label in self.queue)]),
                torch.stack([*q, *(belief for _, belief, _ in self.queue)]),
            )
            everything = torch.ones(K, dtype=torch.bool)
            sets = [everything] * (2 * size + len(self.queue))
            L = L + c.refinement_weight * slow_contrastive(queries, others_, sets, c.temperature, c.belief_temperature)
        # 7. The queue.
        for i in range(size):
            self.queue[self.pointer] = (k[i], q[i], l[i])
            self.pointer = (self.pointer + 1) % len(self.queue)
        return L

    @torch.no_grad()
    def after(self) -> None:
        """8. The teacher follows."""
        m = self.config.teacher_momentum
        for theta, other in zip(self.T.parameters(), self.S.parameters(), strict=True):
            theta.copy_(m * theta + (1 - m) * other)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"certain": "rectified", "teacher_momentum": 0.5},
        {"refinement_weight": 1.0, "queue": 20},
        {"refinement_weight": 0.3, "queue": 5, "belief_temperature": 0.1, "certain": "rectified"},
        {"refinement_weight": 2.0, "queue": 16, "warmup_epochs": 0.0, "teacher_momentum": 0.0},
    ],
    ids=["DIRK", "literal singletons", "REF", "queue smaller than a batch", "no warm-up"],
)
def test_trajectory_equals_the_literal_version(options: dict[str, Any]) -> None:
    """From the InfoNCE of the first epoch to the weighted loss of the others; 8 does not divide 20."""
    method = make_method(DIRKConfig(**{"temperature": 0.2, "teacher_momentum": 0.9} | options))
    literal = LiteralDIRK(method)
    ours, theirs = sgd(method), sgd(literal.S)
    for epoch in range(EPOCHS):
        for step in range(STEPS):
            expected = literal.loss(make_batch(method, epoch, step), at(epoch, step))
            theirs.zero_grad()
            expected.backward()  # type: ignore[no-untyped-call]
            torch.testing.assert_close(train(method, ours, epoch, step), expected.detach(), atol=1e-9, rtol=1e-9)
            for (name, mine), other in zip(method.network.named_parameters(), literal.S.parameters(), strict=True):
                torch.testing.assert_close(mine.grad, other.grad, atol=1e-8, rtol=1e-6, msg=name)
            theirs.step()
            for mine_value, other_value in zip(
                method.network.state_dict().values(), literal.S.state_dict().values(), strict=True
            ):
                torch.testing.assert_close(mine_value, other_value, atol=1e-9, rtol=0)
            # Ours moves at the start of the next step: here it is one move behind, and its batch-norm is not.
            for mine_buffer, other_buffer in zip(method.teacher.value.buffers(), literal.T.buffers(), strict=True):
                torch.testing.assert_close(mine_buffer, other_buffer, atol=1e-9, rtol=0)
            for own, other in zip(method.teacher.value.parameters(), literal.T.parameters(), strict=True):
                torch.testing.assert_close(own, other, atol=1e-9, rtol=0)
            literal.after()
            if method.queue is not None and method.queue.beliefs is not None:
                features, beliefs, labels = zip(*literal.queue, strict=True)
                torch.testing.assert_close(method.queue.features, torch.stack(features), atol=1e-9, rtol=0)
                torch.testing.assert_close(method.queue.beliefs, torch.stack(beliefs), atol=1e-9, rtol=0)
                assert method.queue.labels.tolist() == list(labels)


class TestTeacher:
    def test_starts_equal_to_the_student(self) -> None:
        method = plain()
        for own, other in zip(method.teacher.value.parameters(), method.network.parameters(), strict=True):
            assert own.equal(other)

    @pytest.mark.parametrize("momentum", [0.0, 0.7, 1.0])
    def test_keeps_a_power_of_its_start_beside_a_student_at_rest(self, momentum: float) -> None:
        method = plain(teacher_momentum=momentum)
        start = [p.clone() for p in method.teacher.value.parameters()]
        with torch.no_grad():
            for p in method.network.parameters():
                p.add_(1.0)
        for n in range(1, 4):
            method.training_step(make_batch(method, 0, n), at(0))
            for own, old, other in zip(
                method.teacher.value.parameters(), start, method.network.parameters(), strict=True
            ):
                torch.testing.assert_close(own, momentum**n * old + (1 - momentum**n) * other)

    def test_has_batch_norm_statistics_of_its_own_and_no_gradient(self) -> None:
        for options in ({}, {"refinement_weight": 1.0, "queue": 16}):
            method = plain(**options)
            optimizer = sgd(method)
            train(method, optimizer, 1, 0)
            statistics = dict(method.teacher.value.named_buffers())["encoder.stem.norm.running_mean"]
            assert (statistics != 0).any()
            assert all(weight.grad is None for weight in method.teacher.parameters())
            decayed = {id(p) for group in optimizer.param_groups for p in group["params"]}
            assert not decayed & {id(p) for p in method.teacher.parameters()}

    def test_sees_the_image_that_the_student_sees(self) -> None:
        """The same tensor: there is no weak view in the classification."""
        method = plain()
        seen: list[Tensor] = []
        for network in (method.teacher.value, method.network):
            network.encoder.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
        batch = make_batch(method, 0, 0)
        method.training_step(batch, START)
        assert [each is batch.views[0] for each in seen] == [True, True]


class TestForms:
    def test_what_each_asks_for(self) -> None:
        dirk, ref = DIRKConfig(), DIRKConfig(refinement_weight=1.0)
        assert (dirk.view_names, ref.view_names) == (("strong",), ("strong", "weak", "strong"))
        assert (dirk.needs_projector, ref.needs_projector) == (False, True)
        assert (dirk.encoder_passes.units, ref.encoder_passes.units) == (4, 8)
        assert dirk.packs_sets
        assert ref.packs_sets
        assert plain().queue is None
        assert not [name for name in plain().state_dict() if "queue" in name]

    def test_the_classifier_learns_the_same_in_both(self) -> None:
        """Gradients of the classifier come from the classification loss alone."""
        gradients = []
        for options in ({}, {"refinement_weight": 1.0, "queue": 16, "warmup_epochs": 0.0}):
            method = plain(**options)
            batch = make_batch(plain(refinement_weight=1.0, queue=16), 1, 0)
            method.training_step(batch, at(1)).loss.backward()  # type: ignore[no-untyped-call]
            gradients.append(method.network.classifier.weight.grad)
        torch.testing.assert_close(*gradients, atol=1e-12, rtol=0)

    def test_where_the_contrastive_loss_leads(self) -> None:
        """To the student's projector and encoder; keys and queue stay as they are."""
        method = plain(refinement_weight=1.0, queue=16, warmup_epochs=0.0)
        output = method.training_step(make_batch(method, 1, 0), at(1))
        output.logs["loss_contrastive"].backward()  # type: ignore[no-untyped-call]
        assert method.queue is not None
        assert method.network.projector is not None
        assert method.network.classifier.weight.grad is None
        assert all(p.grad is not None and p.grad.any() for p in method.network.projector.parameters())
        assert not any(buffer.requires_grad for buffer in method.queue.buffers())
        assert all(p.grad is None for p in method.teacher.parameters())

    @pytest.mark.parametrize(("given", "queue"), [((), 4096), (("refinement_weight",), 1024)])
    def test_short_runs_have_a_faster_teacher_and_refine_with_a_shorter_queue(
        self, given: tuple[str, ...], queue: int
    ) -> None:
        config = DIRKConfig(**DIRKConfig.quick(12, dict.fromkeys(given, 1.0)))
        assert (config.queue, config.teacher_momentum) == (queue, 0.9)

    @pytest.mark.parametrize("dataset", ["fashion-mnist", "cifar10", "cifar100"])
    def test_the_release_trains_all_datasets_alike(self, dataset: str) -> None:
        release = DIRKConfig.released(dataset, 0.5, "instance-dependent", {})
        assert (release.epochs, release.batch_size, release.lr, release.weight_decay) == (500, 64, 0.01, 1e-3)
        assert (release.schedule, release.drop_last, release.options) == ("cosine", True, {})


class TestInvariants:
    @pytest.mark.parametrize("size", [2, 5, N])
    @pytest.mark.parametrize("queue", [3, 20, 64])
    def test_the_queue_holds_unit_vectors_winners_and_distributions(self, size: int, queue: int) -> None:
        method = plain(refinement_weight=1.0, queue=queue)
        optimizer = sgd(method)
        for epoch in range(EPOCHS):
            for step in range(STEPS):
                assert torch.isfinite(train(method, optimizer, epoch, step, size))
                assert method.queue is not None
                assert method.queue.beliefs is not None
                close(method.queue.features.norm(dim=1), torch.ones(queue))
                filled = method.queue.labels >= 0
                assert int(filled.sum()) == min(queue, size * (epoch * STEPS + step + 1))
                close(method.queue.beliefs[filled].sum(1), torch.ones(int(filled.sum())), 1e-12)
                assert method.queue.beliefs[filled].argmax(1).equal(method.queue.labels[filled])
                assert not method.queue.beliefs[~filled].any()

    def test_a_step_does_not_meet_its_own_batch_in_the_queue(self) -> None:
        first, second = (plain(refinement_weight=1.0, queue=8) for _ in range(2))
        assert second.queue is not None
        loss = first.training_step(make_batch(first, 1, 0), at(1)).loss
        second.queue.push = lambda *_: None  # type: ignore[method-assign]
        assert second.training_step(make_batch(second, 1, 0), at(1)).loss == loss

    @pytest.mark.parametrize("weight", [0.0, 1.0])
    @pytest.mark.parametrize("size", [300.0, 3000.0])
    def test_extreme_logits(self, weight: float, size: float) -> None:
        """In single precision; also where all candidates of an image are beyond underflow."""
        method = plain(refinement_weight=weight, queue=N).float()
        with torch.no_grad():
            for network in (method.network, method.teacher.value):
                network.classifier.weight.zero_()
                network.classifier.bias.copy_(torch.tensor([size, -size, -size, 0]))
        batch = make_batch(method, 0, 0, N)
        batch = Batch(batch.index, tuple(view.float() for view in batch.views), batch.candidates)
        for progress in (at(0), at(2)):
            method.zero_grad()
            output = method.training_step(batch, progress)
            output.loss.backward()  # type: ignore[no-untyped-call]
            assert torch.isfinite(output.loss)
            assert all(torch.isfinite(p.grad).all() for p in method.network.parameters() if p.grad is not None)
        if method.queue is not None:
            assert batch.candidates.gather(1, method.queue.labels[:, None]).all()

    def test_extreme_targets(self) -> None:
        logits, candidates = extremes()
        target = plain().target(logits, candidates)
        assert target.isfinite().all()
        close(target.sum(1), torch.ones(len(target)))

    def test_nothing_is_believed_about_a_sample_between_steps(self) -> None:
        assert plain().confidence is None


@pytest.mark.parametrize("pause", [(0, 1), (1, 2)], ids=["in the warm-up", "after it"])
@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_goes_on_bit_by_bit_after_a_save(pause: tuple[int, int], weight: float) -> None:
    config = DIRKConfig(refinement_weight=weight, queue=20)
    method = make_method(config)
    optimizer = sgd(method)
    places = [(epoch, step) for epoch in range(EPOCHS) for step in range(STEPS)]
    for place in places[: places.index(pause)]:
        train(method, optimizer, *place)
    other = make_method(config, seed=9)
    other_optimizer = sgd(other)
    other.load_state_dict(copy.deepcopy(method.state_dict()))
    other_optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for place in places[places.index(pause) :]:
        assert train(method, optimizer, *place).equal(train(other, other_optimizer, *place))
    for name, value in method.state_dict().items():
        assert value.equal(other.state_dict()[name]), name


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"refinement_weight": -1.0}, "refinement_weight must be 0 or more; got -1"),
        ({"teacher_momentum": 1.5}, "teacher_momentum must be between 0 and 1; got 1.5"),
        ({"belief_temperature": 0.0}, "belief_temperature must be above 0; got 0"),
        ({"queue": 0}, "queue must be above 0; got 0"),
    ],
)
def test_values_out_of_range(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        DIRKConfig(**options)
