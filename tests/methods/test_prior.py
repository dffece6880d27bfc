"""What is known of candidates beforehand: the formula, how far it is trusted, and every method that uses it."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from toy import R0, Y, golden

from papi import train as run
from papi.config import OptimConfig, RunConfig
from papi.data import candidates as generators
from papi.data.dataset import Dataset
from papi.data.own.votes import vote_shares
from papi.methods import METHODS, find_method, packed
from papi.methods.losses import candidate_softmax
from papi.methods.noise import NoiseTolerance
from papi.methods.prior import Prior, fitted_strength
from papi.runs.folder import RunFolder
from papi.setup.data import load_dataset
from papi.training import engine
from papi.training.engine import EpochEnded
from papi.types import Batch, Progress
from toy_data import make_toy_dataset

SHARES = torch.tensor([[0.75, 0, 0.25, 0], [0.1, 0.2, 0.3, 0.4], [0, 1, 0, 0]])
BATCH = Batch(torch.arange(3), (), Y)
LATE = Progress(epoch=6, epochs=12, step=0, steps=10, seed=0)
LEARNERS = [name for name in METHODS if not find_method(name).Config().needs_truth]


def given(strength: str, shares: Tensor = SHARES, sets: Tensor = Y) -> Prior:
    prior = Prior()
    prior.give(sets, shares, strength)
    return prior


class TestFormula:
    @pytest.mark.parametrize("strength", [0.0, 0.5, 1.0, 3.0])
    @pytest.mark.parametrize("outside", [0.0, 0.1, 1.0])
    def test_a_guess_multiplies_it_in(self, strength: float, outside: float) -> None:
        """Against sums over labels; a label outside counts as it would beside candidates that are all alike."""
        admitted = torch.where(Y, 1.0, outside)
        guess = candidate_softmax(R0, given(str(strength)).weigh(BATCH, R0, admitted, LATE))
        for i, row in enumerate(R0.double().softmax(1).tolist()):
            powers = [p**strength if p else 0.0 for p in SHARES[i].tolist()]
            mean = sum(powers) / int(Y[i].sum())
            counted = [
                p * (power / mean if inside else outside)
                for p, power, inside in zip(row, powers, Y[i].tolist(), strict=True)
            ]
            golden(guess[i], [each / sum(counted) for each in counted])

    def test_golden_values(self) -> None:
        guess = candidate_softmax(R0, given("1").weigh(BATCH, R0, Y, LATE))
        golden(guess[0], [0.930773, 0, 0.069227, 0])
        golden(guess[2], [0, 1, 0, 0])

    def test_nothing_is_known_at_first(self) -> None:
        assert Prior().weigh(BATCH, R0, Y, LATE) is Y
        assert Prior().shares(slice(None), Y) is None
        assert not Prior().state_dict()

    def test_equal_shares_change_nothing(self) -> None:
        for strength in ("1", "7", "auto"):
            prior = given(strength, Y / Y.sum(1, keepdim=True))
            golden(candidate_softmax(R0, prior.weigh(BATCH, R0, Y, LATE)), candidate_softmax(R0, Y))

    def test_no_candidate_is_lost(self) -> None:
        """However strong it is, a candidate keeps a finite logit: the network can still say no."""
        shares = torch.tensor([[1 - 1e-6, 0, 1e-6, 0]])
        batch = Batch(torch.arange(1), (), Y[:1])
        weights = given("1000", shares, Y[:1]).weigh(batch, R0[:1], Y[:1], LATE)
        assert weights.isfinite().all()
        assert (weights[Y[:1]] > 0).all()

    def test_packed_sets_are_bit_equal(self) -> None:
        for strength in ("2", "auto"):
            dense, sparse = given(strength), Prior()
            sparse.give(packed.packed(Y), SHARES, strength)
            for prior in (dense, sparse):
                prior.weigh(BATCH, R0, Y, LATE)
                prior.estimate()
            assert torch.equal(dense.weigh(BATCH, R0, Y, LATE), sparse.weigh(BATCH, R0, Y, LATE))
            assert dense.state_dict().keys() == sparse.state_dict().keys()

    def test_what_was_given_is_not_in_checkpoints(self) -> None:
        assert not given("2").state_dict()
        assert set(given("auto").state_dict()) == {"given.strength", "given.answer", "given.certainty"}


class TestStrength:
    @pytest.mark.parametrize("right", [0.5, 0.7, 0.9, 0.97])
    def test_it_is_how_often_the_majority_is_right(self, right: float) -> None:
        """Two votes against one, right in so many of 1,000 cases: they are made to count as much."""
        shares = torch.tensor([[2.5 / 4, 1.5 / 4]]).repeat(1000, 1)
        answers = (torch.arange(1000) >= 1000 * right).long()
        strength = fitted_strength(shares, answers)
        counted = (shares[0] ** strength) / (shares[0] ** strength).sum()
        assert float(counted[0]) == pytest.approx(right, abs=0.02)

    def test_literal_search(self) -> None:
        random = torch.Generator().manual_seed(0)
        shares = torch.rand(60, 5, generator=random) * (torch.rand(60, 5, generator=random) < 0.6)
        shares[:, 0] += 0.2
        shares /= shares.sum(1, keepdim=True)
        answers = shares.pow(1.7).multinomial(1, generator=random)[:, 0]

        def likelihood(strength: float) -> float:
            value = math.log(strength) - strength
            for row, answer in zip(shares.tolist(), answers.tolist(), strict=True):
                value += strength * math.log(row[answer]) - math.log(sum(p**strength for p in row if p))
            return value

        best = max((k / 1000 for k in range(1, 8000)), key=likelihood)
        assert float(fitted_strength(shares, answers)) == pytest.approx(best, abs=0.001)

    def test_majorities_that_are_always_right_count_for_much(self) -> None:
        """More with more images, and never without end."""
        shares = torch.tensor([[2.5 / 4, 1.5 / 4]])
        found = [float(fitted_strength(shares.repeat(n, 1), torch.zeros(n, dtype=torch.long))) for n in (1, 30, 1000)]
        assert found == sorted(found)
        assert 1 < found[0] < 2
        assert 5 < found[-1] < 20

    def test_only_the_surest_are_asked(self) -> None:
        """A quarter of the images with a majority; those without have no say, however sure the network is."""
        shares = torch.tensor([[2 / 3, 1 / 3]] * 40 + [[0.5, 0.5]] * 40)
        sets = shares > 0
        surely_right, unsure_and_wrong, tied = [[9.0, 0]] * 10, [[0, 1.0]] * 30, [[0, 99.0]] * 40
        prior = given("auto", shares, sets)
        batch = Batch(torch.arange(80), (), sets)
        prior.weigh(batch, torch.tensor(surely_right + unsure_and_wrong + tied), sets, LATE)
        prior.estimate()
        expected = fitted_strength(shares[:10], torch.zeros(10, dtype=torch.long))
        assert float(prior.logs(LATE)["prior_strength"]) == pytest.approx(float(expected))

    def test_nothing_to_ask(self) -> None:
        prior = given("auto", Y / Y.sum(1, keepdim=True))
        prior.weigh(BATCH, R0, Y, LATE)
        prior.estimate()
        assert float(prior.logs(LATE)["prior_strength"]) == 1


def voted(data: Dataset, share: float = 0.6, seed: int = 0) -> Dataset:
    """Two votes for the truth and one for another label in a share of the images; in the others one for each of two."""
    assert data.labels is not None
    random, count, classes = np.random.default_rng(seed), len(data.labels), len(data.class_names)
    other = (data.labels + random.integers(1, classes, count)) % classes
    votes = np.zeros((count, classes), np.int64)
    votes[np.arange(count), data.labels] = np.where(random.random(count) < share, 2, 1)
    votes[np.arange(count), other] = 1
    return replace(data, candidates=votes > 0, prior=vote_shares(votes, votes > 0))


def settings(name: str, weigh: str | None, **changes: Any) -> RunConfig:
    config = RunConfig(data="toy", method=name, epochs=3, batch_size=20, device="cpu", threads=1)
    return replace(config, candidates=replace(config.candidates, weigh=weigh), **changes)


def train(data: Dataset, config: RunConfig, folder: Path | None = None) -> tuple[Any, list[dict[str, Any]]]:
    """A whole run: what it leaves, and its rows."""
    assert data.candidates is not None
    target = None if folder is None else RunFolder(folder)
    events = list(run.fit(data, data.candidates, run.settings_for(config, data), target))
    assert isinstance(events[-1], run.Finished)
    return events[-1].trained, [event.row.to_json() for event in events if isinstance(event, EpochEnded)]


@pytest.mark.parametrize("name", LEARNERS)
class TestInEveryMethod:
    def test_it_lasts(self, name: str) -> None:
        """Pictures that say nothing, and votes that are right: what people said is still there at the end."""
        data = voted(make_toy_dataset(train=60), share=1.0)
        random = np.random.default_rng(1)
        data = replace(data, samples=random.integers(0, 255, data.samples.shape).astype(np.uint8))
        trained, _ = train(data, settings(name, "20", optim=OptimConfig(lr=0.005)))
        assert (trained.arrays.confidence.argmax(1) == data.labels).mean() > 0.9

    def test_stopped_and_continued_equals_uninterrupted(self, name: str, tmp_path: Path) -> None:
        data, config = voted(make_toy_dataset()), settings(name, "auto")
        whole, rows = train(data, config)
        assert data.candidates is not None
        asked: list[Any] = []
        folder = RunFolder(tmp_path / "run")
        for event in run.fit(data, data.candidates, run.settings_for(config, data), folder, asked.__len__):
            if isinstance(event, engine.Stepped) and (event.progress.epoch, event.progress.step) == (1, 1):
                asked.append(event)
        assert isinstance(event, run.Stopped)
        parts, last_rows = train(data, config, folder.path)
        mine, other = whole.method.state_dict(), parts.method.state_dict()
        assert mine.keys() == other.keys()
        assert all(torch.equal(mine[each], other[each]) for each in mine)
        if name != "neighbours":  # which counts votes before the network has said anything
            assert last_rows[-1]["prior_strength"] == rows[-1]["prior_strength"] > 0


def test_sets_that_are_made_know_nothing_of_it() -> None:
    data = voted(make_toy_dataset())
    config = replace(RunConfig(data="toy", epochs=1, device="cpu", threads=1), method="proden")
    made = replace(config, candidates=replace(config.candidates, kind="uniform"))
    assert data.labels is not None
    sets = generators.uniform(data.labels, 4, 0.5, seed=0)
    *_, last = run.fit(data, sets, run.settings_for(made, data))
    assert isinstance(last, run.Finished)
    assert last.trained is not None
    assert last.trained.method.prior.given is None


def test_doubt_and_prior_together() -> None:
    """A label outside competes with the candidates, whose weights stay one in the mean."""
    tolerance = NoiseTolerance(Y, "0.25")
    weights = given("2").weigh(BATCH, R0, tolerance.admit(BATCH, R0, LATE), LATE)
    assert (weights[~Y] == 0.25).all()
    torch.testing.assert_close((weights * Y).sum(1), Y.sum(1).float())


def test_samples_that_are_held_out_keep_theirs() -> None:
    data = voted(make_toy_dataset(train=120), share=1.0)
    random = np.random.default_rng(1)
    data = replace(data, samples=random.integers(0, 255, data.samples.shape).astype(np.uint8))
    trained, _ = train(data, settings("proden", "20", data_holdout=0.3))
    assert trained.arrays.held_out is not None
    assert (trained.arrays.confidence.argmax(1) == data.labels).mean() > 0.95


@pytest.mark.slow
def test_votes_of_people_are_kept_and_help() -> None:
    """Majorities that are always right stay, and ties are resolved better than by tossing a coin."""
    data = voted(load_dataset(RunConfig()))
    assert data.labels is not None
    assert data.prior is not None
    majority = data.prior.max(1) > 0.55
    weighed, _ = train(data, RunConfig(data="fashion-mini", device="cpu", threads=1))
    right = weighed.arrays.confidence.argmax(1) == data.labels
    alone = majority.mean() + (1 - majority.mean()) / 2
    assert right[majority].mean() >= 0.97
    assert right.mean() > alone
