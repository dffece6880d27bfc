"""EM against golden values and against a slow version that follows its specification line by line."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot
from toy import R0, R1, R2, START, Y, extremes, make_candidates, make_network, scripted, walk_together
from toy import Literal as LiteralMethod

from papi import train as run
from papi.config import RunConfig
from papi.data import candidates as generators
from papi.data.dataset import Dataset
from papi.errors import UserError
from papi.methods.dpll import DPLL
from papi.methods.em import EM, EMConfig
from papi.methods.losses import (
    balance_loss,
    candidate_likelihood_loss,
    candidate_softmax,
    non_candidate_loss,
    soft_cross_entropy,
)
from papi.networks import Network
from papi.setup.settings import complete
from papi.types import Batch, Progress

LOGITS = (R0.double(), R1.double(), R2.double())
LATE = Progress(epoch=5, epochs=10, step=0, steps=1, seed=0)


def close(actual: Tensor, expected: object, tolerance: float = 1e-6) -> None:
    torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=actual.dtype), atol=tolerance, rtol=0)


class TestGoldenValues:
    def step(self, **options: Any) -> Any:
        method, batch = scripted(EM, *LOGITS, **options)
        output = method.training_step(batch, START)
        output.loss.backward()
        return method, output

    def test_target(self) -> None:
        expected = [[0.817574, 0, 0.182426, 0], [0.146398, 0.161795, 0.098134, 0.593673], [0, 1, 0, 0]]
        close(candidate_softmax(LOGITS[0], Y), expected)

    def test_cross_entropy_of_each_view(self) -> None:
        target = candidate_softmax(LOGITS[0], Y)
        close(torch.stack([soft_cross_entropy(each, target) for each in LOGITS]), [0.634953, 1.690882, 1.488578])
        rows = [soft_cross_entropy(LOGITS[0][i : i + 1], target[i : i + 1]) for i in range(3)]
        close(torch.stack(rows), [0.615988, 1.113357, 0.175515])

    def test_terms(self) -> None:
        _, output = self.step()
        close(output.logs["loss_classification"].detach(), 1.271471)
        close(output.logs["loss_exclusion"].detach(), 0.101967)
        close(output.logs["loss_balance"].detach(), 1.453435)

    def test_mean_prediction(self) -> None:
        close(LOGITS[0].softmax(1).mean(0), [0.287384, 0.345391, 0.123376, 0.243849])

    def test_loss_and_gradients(self) -> None:
        method, output = self.step()
        close(output.loss.detach(), 1.518782)
        close(
            method.network.logits[0].grad,
            [
                [-0.041214, 0.014859, -0.015304, 0.041658],
                [0.000888, 0.001770, -0.003187, 0.000529],
                [0.002192, -0.062982, 0.044282, 0.016508],
            ],
        )
        close(
            method.network.logits[1].grad,
            [
                [-0.038176, 0.019375, -0.013142, 0.031943],
                [0.005579, 0.041406, 0.010942, -0.057927],
                [0.016572, -0.094539, 0.074270, 0.003698],
            ],
        )

    def test_likelihood_of_the_set(self) -> None:
        """What CC minimises."""
        close(self.step(set_loss="likelihood")[1].logs["loss_exclusion"].detach(), 0.105484)

    def test_without_balance(self) -> None:
        close(self.step(balance_weight=0.0)[1].loss.detach(), 1.271471 + 0.101967)


class LiteralEM(LiteralMethod):
    """One step, three loops over rows and labels."""

    def __init__(self, network: Network, candidates: Tensor, config: EMConfig) -> None:
        super().__init__(network, candidates)
        self.config = config

    def loss(self, batch: Batch, progress: Progress) -> Tensor:
        views = [self.network.classifier(self.network.encoder(view)).softmax(1) for view in batch.views]
        size, classes = views[0].shape
        L_em, L_sup = (torch.zeros((), dtype=torch.float64) for _ in range(2))
        for i in range(size):
            inside = [j for j in range(classes) if batch.candidates[i, j]]
            S = sum(float(views[0][i, j].detach()) for j in inside)
            for j in inside:
                t = float(views[0][i, j].detach()) / S
                for p in views:
                    L_em = L_em - t * p[i, j].log() / (3 * size)
            if self.config.set_loss == "complement":
                for j in range(classes):
                    if j not in inside:
                        L_sup = L_sup - (1 - views[0][i, j]).log() / size
            else:
                L_sup = L_sup - torch.stack([views[0][i, j] for j in inside]).sum().log() / size
        pbar = [sum(views[0][i, k] for i in range(size)) / size for k in range(classes)]
        L_bal = -sum((each.clamp(min=1e-6).log() for each in pbar), torch.zeros(())) / classes
        loss: Tensor = L_sup + L_em + self.config.balance_weight * L_bal
        return loss


@pytest.mark.parametrize(
    "options",
    [{}, {"set_loss": "likelihood", "balance_weight": 0.0}, {"balance_weight": 2.0}],
    ids=["as released", "likelihood without balance", "more balance"],
)
def test_trajectory_equals_the_literal_version(options: dict[str, Any]) -> None:
    method = EM(make_network(), make_candidates(), EMConfig(**options)).double()
    walk_together(method, lambda: None, LiteralEM(method.network, make_candidates(), method.config))


@st.composite
def answers(draw: st.DrawFn, batch: int = 6) -> tuple[Tensor, Tensor]:
    """Logits in double precision, and sets of which one is full and one a single label."""
    classes = draw(st.integers(2, 12))
    random = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    logits = draw(st.floats(0.1, 8)) * torch.randn(batch, classes, generator=random, dtype=torch.float64)
    inside = torch.rand(batch, classes, generator=random) < draw(st.floats(0, 1))
    inside |= one_hot(torch.randint(classes, (batch,), generator=random), classes).bool()
    inside[0], inside[1] = True, torch.arange(classes) == classes - 1
    return logits, inside


def with_answers(test: Callable[..., None]) -> Callable[..., None]:
    return settings(deadline=None, max_examples=50)(given(answer=answers())(test))


def gradient(loss: Callable[[Tensor], Tensor], logits: Tensor) -> Tensor:
    leaf = logits.clone().requires_grad_()
    return torch.autograd.grad(loss(leaf), leaf)[0]


def loops(views: list[Tensor], candidates: Tensor, config: EMConfig) -> Tensor:
    """The loss of logits, with the loops of the literal version in the place of the network."""
    network: Any = SimpleNamespace(classifier=lambda features: features, encoder=lambda logits: logits)
    batch = Batch(torch.arange(len(candidates)), tuple(views), candidates)
    return LiteralEM(network, candidates, config).loss(batch, LATE)


class TestProperties:
    @settings(deadline=None, max_examples=30)
    @given(
        answer=answers(),
        set_loss=st.sampled_from(["complement", "likelihood"]),
        balance=st.sampled_from([0.0, 0.1, 1.0]),
    )
    def test_the_step_equals_the_loops(
        self, answer: tuple[Tensor, Tensor], set_loss: Literal["complement", "likelihood"], balance: float
    ) -> None:
        logits, candidates = answer
        views = [logits, logits.flip(0), 0.5 * logits]
        config = EMConfig(set_loss=set_loss, balance_weight=balance)
        method, batch = scripted(EM, *views, candidates=candidates, set_loss=set_loss, balance_weight=balance)
        torch.testing.assert_close(
            method.training_step(batch, LATE).loss, loops(views, candidates, config), atol=1e-8, rtol=1e-8
        )

    @with_answers
    def test_the_weak_view_learns_what_cc_learns(self, answer: tuple[Tensor, Tensor]) -> None:
        """The target is constant, so the gradient of its cross-entropy is that of the likelihood of the set."""
        logits, inside = answer
        target = candidate_softmax(logits, inside)
        mine = gradient(lambda r: soft_cross_entropy(r, target), logits)
        close(mine, gradient(lambda r: candidate_likelihood_loss(r, inside), logits), 1e-12)

    @with_answers
    def test_cross_entropy_is_entropy_and_likelihood(self, answer: tuple[Tensor, Tensor]) -> None:
        logits, inside = answer
        target = candidate_softmax(logits, inside)
        entropy = -torch.xlogy(target, target).sum(1).mean()
        close(soft_cross_entropy(logits, target), entropy + candidate_likelihood_loss(logits, inside), 1e-10)

    @with_answers
    def test_full_sets_teach_the_weak_view_nothing(self, answer: tuple[Tensor, Tensor]) -> None:
        logits, _ = answer
        full = torch.ones_like(logits, dtype=torch.bool)
        target = candidate_softmax(logits, full)
        close(gradient(lambda r: soft_cross_entropy(r, target), logits), torch.zeros_like(logits), 1e-12)
        assert non_candidate_loss(logits, full) == 0

    @with_answers
    def test_the_complement_is_at_most_the_likelihood(self, answer: tuple[Tensor, Tensor]) -> None:
        """And equal where one label at most is outside."""
        logits, inside = answer
        assert non_candidate_loss(logits, inside) <= candidate_likelihood_loss(logits, inside) + 1e-12
        all_but_one = torch.arange(logits.shape[1]).expand_as(logits) > 0
        close(non_candidate_loss(logits, all_but_one), candidate_likelihood_loss(logits, all_but_one), 1e-9)

    @with_answers
    def test_labels_outside_are_pushed_down_as_in_dpll(self, answer: tuple[Tensor, Tensor]) -> None:
        logits, inside = answer
        losses = []
        for kind in (EM, DPLL):
            method, batch = scripted(kind, logits, logits.flip(0), -logits, candidates=inside)
            losses.append(method.training_step(batch, START).logs["loss_exclusion"].detach())
        close(losses[0], losses[1], 1e-12)

    @with_answers
    def test_balance_is_least_where_classes_are_equally_frequent(self, answer: tuple[Tensor, Tensor]) -> None:
        logits, _ = answer
        classes = logits.shape[1]
        assert balance_loss(logits.softmax(1)) >= math.log(classes) - 1e-12
        close(balance_loss(torch.eye(classes).double()), math.log(classes), 1e-12)
        close(balance_loss(torch.full((3, classes), 1 / classes, dtype=torch.float64)), math.log(classes), 1e-12)

    @with_answers
    def test_single_labels_are_three_cross_entropies(self, answer: tuple[Tensor, Tensor]) -> None:
        logits, _ = answer
        labels = torch.arange(len(logits)) % logits.shape[1]
        views = (logits, logits.flip(0), -logits)
        method, batch = scripted(EM, *views, candidates=one_hot(labels, logits.shape[1]).bool())
        expected = sum(cross_entropy(each, labels) for each in views) / 3
        close(method.training_step(batch, START).logs["loss_classification"].detach(), expected, 1e-10)


class TestBalance:
    @pytest.mark.parametrize(
        ("classes", "rows", "expected"), [(100, 64, 0.911), (100, 256, 0.536), (10, 64, 0.239)], ids=str
    )
    def test_small_batches_miss_classes(self, classes: int, rows: int, expected: float) -> None:
        """Perfect predictions of labels drawn at random, at the weight of the release: far above the least value."""
        random = torch.Generator().manual_seed(0)
        drawn = [torch.randint(classes, (rows,), generator=random) for _ in range(200)]
        costs = torch.stack([0.1 * balance_loss(one_hot(labels, classes).float()) for labels in drawn])
        assert float(costs.mean()) == pytest.approx(expected, abs=0.01)
        assert float(costs.mean()) > 0.1 * math.log(classes)

    @pytest.mark.parametrize(("rows", "weight", "said"), [(3, 0.1, 1), (4, 0.1, 0), (3, 0.0, 0)])
    def test_a_run_with_fewer_rows_than_classes_says_so(
        self, rows: int, weight: float, said: int, toy_dataset: Dataset
    ) -> None:
        option = (f"balance_weight={weight}",)
        config = RunConfig(data="toy", method="em", epochs=1, batch_size=rows, device="cpu", threads=1, option=option)
        assert toy_dataset.labels is not None
        sets = generators.uniform(toy_dataset.labels, 4, 0.4, seed=0)
        started = next(run.fit(toy_dataset, sets, run.settings_for(config, toy_dataset)))
        assert isinstance(started, run.Started)
        assert sum("balance_weight=0" in problem for problem in started.problems) == said

    def test_an_absent_class_has_no_gradient(self) -> None:
        probabilities = torch.tensor([[0.5, 0.5, 0.0]]).requires_grad_()
        balance_loss(probabilities).backward()  # type: ignore[no-untyped-call]
        assert probabilities.grad is not None
        assert probabilities.grad[0, 2] == 0
        assert (probabilities.grad[0, :2] < 0).all()


class TestExtremes:
    @pytest.mark.parametrize("set_loss", ["complement", "likelihood"])
    @pytest.mark.parametrize("tolerance", ["off", "0.2"])
    def test_logits(self, set_loss: Literal["complement", "likelihood"], tolerance: str) -> None:
        """In single precision; also where all candidates are beyond underflow."""
        logits, candidates = extremes()
        views = (logits, -logits, logits.flip(0))
        method, batch = scripted(EM, *views, candidates=candidates, set_loss=set_loss, noise_tolerance=tolerance)
        output = method.training_step(batch, LATE)
        output.loss.backward()
        assert output.loss.dtype == torch.float32
        assert output.loss.isfinite()
        for each in method.network.logits:
            assert each.grad.isfinite().all()

    def test_a_sure_mistake_keeps_its_gradient(self) -> None:
        """The release caps its loss there."""
        logits, inside = torch.tensor([[60.0, 0, 0, 0]]), torch.tensor([[False, True, True, True]])
        assert non_candidate_loss(logits, inside) > 50
        assert gradient(lambda r: non_candidate_loss(r, inside), logits)[0, 0] > 0.9


class TestTolerance:
    @pytest.mark.parametrize("weight", [0.01, 0.3])
    def test_labels_outside_count_in_both_losses(self, weight: float) -> None:
        """S + λ(1 - S), summed label by label."""
        p = LOGITS[0].softmax(1)
        counted = torch.where(Y, 1.0, weight).double()
        t = p * counted / (p * counted).sum(1, keepdim=True)
        L_em = sum(-(t * each.log_softmax(1)).sum() / 3 for each in LOGITS) / 3
        complement = -((1 - counted) * (1 - p).log()).sum() / 3
        likelihood = -(p * counted).sum(1).log().mean()
        options: list[tuple[Literal["complement", "likelihood"], Tensor]] = [
            ("complement", complement),
            ("likelihood", likelihood),
        ]
        for set_loss, expected in options:
            method, batch = scripted(EM, *LOGITS, set_loss=set_loss, noise_tolerance=str(weight))
            logs = method.training_step(batch, LATE).logs
            close(logs["loss_classification"].detach(), L_em)
            close(logs["loss_exclusion"].detach(), expected)

    def test_sets_are_trusted_in_the_first_epoch(self) -> None:
        losses = [
            method.training_step(batch, START).loss
            for method, batch in (scripted(EM, *LOGITS, noise_tolerance=each) for each in ("off", "0.3"))
        ]
        assert losses[0] == losses[1]


def test_nothing_is_remembered() -> None:
    method = EM(make_network(), make_candidates(), EMConfig())
    assert method.confidence is None
    assert {name.partition(".")[0] for name in method.state_dict()} == {"network"}


def test_config() -> None:
    assert EMConfig().view_names == ("weak", "strong", "strong")
    assert EMConfig().encoder_passes.units == 9
    assert EMConfig().packs_sets
    assert not EMConfig(noise_tolerance="auto").packs_sets
    assert EMConfig.released("fashion-mnist", 0.5, None, {}).schedule == "cosine"
    assert EMConfig.released("cifar10", 0.5, None, {}).schedule == "multistep"
    settings = complete(RunConfig(data="cifar10", method="em", preset="paper"), features=False, sets_given=False).optim
    assert (settings.decay, settings.clip_norm) == ("matrices", 1.0)
    with pytest.raises(UserError, match="balance_weight must be 0 or more; got -1"):
        EMConfig(balance_weight=-1.0)
