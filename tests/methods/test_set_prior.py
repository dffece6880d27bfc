"""What sets themselves say: the formula by hand, when it is silent, and a problem that only it solves."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from toy import R0, K, N, golden, make_candidates

from papi import train as run
from papi.config import RunConfig
from papi.data import candidates as generators
from papi.data.dataset import Dataset
from papi.errors import UserError
from papi.methods import METHODS, find_method, packed
from papi.methods.listening import Listening
from papi.methods.losses import candidate_softmax
from papi.methods.packed import uniform_confidence
from papi.methods.set_prior import SetPrior, class_dependence, may_be_balanced, standing_beside
from papi.runs.folder import RunFolder
from papi.training import engine
from papi.training.engine import EpochEnded
from papi.types import Batch, Progress
from toy_data import make_toy_dataset

START = Progress(epoch=0, epochs=12, step=0, steps=10, seed=0)
LISTENING = [name for name in METHODS if issubclass(find_method(name), Listening)]


def test_which_methods_listen() -> None:
    assert LISTENING == ["papi", "dpll", "pico", "proden", "rc"]


def estimated(sets: Tensor, believed: Tensor, strength: str = "auto", progress: Progress = START) -> SetPrior:
    """From sets `(N, K)` and what is believed of them."""
    confidence = uniform_confidence(sets)
    confidence.start_from(believed)
    prior = SetPrior(sets.shape[1], strength)
    prior.estimate(sets, confidence, progress)
    return prior


def literal_weights(sets: list[list[bool]], believed: list[list[float]], given: list[bool]) -> list[float]:
    """w of one set, label by label, as the derivation reads; not normalised, and nothing fades."""
    classes = len(given)
    totals = [sum(row[i] for row in believed) for i in range(classes)]
    found = []
    for i in range(classes):
        value = 1 / ((totals[i] + 1) / (sum(totals) + classes))
        for j in range(classes):
            if j == i:
                continue
            together = sum(row[i] for row, each in zip(believed, sets, strict=True) if each[j])
            m = min(max((together + 1) / (totals[i] + 2), 1e-3), 1 - 1e-3)
            value *= m if given[j] else 1 - m
        found.append(value)
    return found


class TestFormula:
    def test_literal(self) -> None:
        sets = make_candidates()
        believed = candidate_softmax(torch.randn(N, K, generator=torch.Generator().manual_seed(1)), sets)
        prior = estimated(sets, believed)
        prior.weight = torch.tensor(1.0)  # that of the evidence is tested below
        weights = prior.log_weights(sets).exp()
        for n in range(N):
            expected = torch.tensor(literal_weights(sets.tolist(), believed.tolist(), sets[n].tolist()))
            torch.testing.assert_close(weights[n] / weights[n].sum(), expected / expected.sum(), rtol=1e-4, atol=1e-6)

    def test_golden_values(self) -> None:
        """Four boots with sneakers beside them, four sneakers of which one has boots beside it."""
        sets = torch.tensor([[True, True]] * 4 + [[False, True]] * 3 + [[True, True]])
        truth = torch.tensor([0] * 4 + [1] * 4)
        together, totals = standing_beside(sets, _known(sets, truth))
        golden(together, [[4, 4], [1, 4]])
        golden(totals, [4, 4])
        shares = torch.nn.functional.one_hot(truth).numpy()
        golden((together + 1) / (totals[:, None] + 2), generators.stand_ins(sets.numpy(), shares))
        prior = estimated(sets, torch.nn.functional.one_hot(truth).float())
        prior.weight = torch.tensor(1.0)
        # M_01 = 5/6 and M_10 = 2/6: a set of both was a boot's five times out of seven.
        golden(candidate_softmax(prior.log_weights(sets[:1]), sets[:1])[0], [5 / 7, 2 / 7])

    def test_it_is_silent_after_half_of_the_run(self) -> None:
        sets, truth = covered()
        believed = torch.nn.functional.one_hot(truth).float()
        weights = [float(estimated(sets, believed, "2", replace(START, epoch=epoch)).weight) for epoch in range(12)]
        full = weights[0]
        assert weights == pytest.approx([full * max(0, 1 - epoch / 6) for epoch in range(12)])
        assert [SetPrior(3, "2").speaks(replace(START, epoch=epoch)) for epoch in (0, 5, 6, 11)] == [1, 1, 0, 0]
        assert not SetPrior(3, "0").speaks(START)

    def test_strength(self) -> None:
        sets, truth = covered()
        believed = torch.nn.functional.one_hot(truth).float()
        found = {text: float(estimated(sets, believed, text).weight) for text in ("auto", "1", "0.5")}
        assert found["auto"] == found["1"] == 2 * found["0.5"] > 0.4

    def test_packed_sets_are_bit_equal(self) -> None:
        sets = make_candidates()
        believed = candidate_softmax(torch.randn(N, K, generator=torch.Generator().manual_seed(1)), sets)
        sparse = packed.packed(sets)
        confidence = uniform_confidence(sparse)
        confidence.start_from(believed)
        dense = standing_beside(sets, _started(sets, believed))
        for mine, other in zip(dense, standing_beside(sparse, confidence), strict=True):
            assert torch.equal(mine, other)


def _started(sets: Tensor, believed: Tensor) -> Any:
    confidence = uniform_confidence(sets)
    confidence.start_from(believed)
    return confidence


def _known(sets: Tensor, truth: Tensor) -> Any:
    return _started(sets, torch.nn.functional.one_hot(truth, sets.shape[1]).float())


def covered(count: int = 600, classes: int = 3, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Label 1 stands beside every 0 and most 2; the others come in now and then."""
    random = np.random.default_rng(seed)
    truth = torch.arange(count) % classes
    matrix = np.array([[1, 1.0, 0.1], [0.2, 1, 0.2], [0.1, 0.9, 1]])
    return torch.from_numpy(random.random((count, classes)) < matrix[truth]), truth


class TestEvidence:
    @pytest.mark.parametrize("flip_rate", [0.1, 0.3, 0.5, 0.7])
    @pytest.mark.parametrize("known", [False, True])
    def test_uniform_sets_say_nothing(self, flip_rate: float, known: bool) -> None:
        """At the start, where all candidates are alike, and at the end, with the truth and classes of any size."""
        sizes = [1000] * 10 if not known else [40, 100, 200, 300, 500, 700, 900, 1200, 2000, 4060]
        labels = np.repeat(np.arange(10), sizes)
        sets = torch.from_numpy(generators.uniform(labels, 10, flip_rate, seed=0))
        truth = torch.nn.functional.one_hot(torch.from_numpy(labels), 10).float()
        prior = estimated(sets, truth if known else sets / sets.sum(1, keepdim=True))
        assert float(prior.weight) == 0
        assert (prior.log_weights(sets) == 0).all()

    @pytest.mark.parametrize("known", [False, True])
    def test_sets_that_depend_on_the_class_do(self, known: bool) -> None:
        sets, truth = covered()
        believed = torch.nn.functional.one_hot(truth).float() if known else sets / sets.sum(1, keepdim=True)
        assert float(estimated(sets, believed).weight) > 0.9

    def test_by_hand(self) -> None:
        """Two classes of 100: M_01 = 0.6, M_10 = 0.4. X² = 2 · 100 · 0.01 / 0.25 = 8 against 2 terms."""
        matrix = torch.tensor([[1, 0.6], [0.4, 1]])
        golden(class_dependence(matrix, torch.tensor([100.0, 100.0])), 1 - 2 * 2 / 8)


class TestBalance:
    def test_by_hand(self) -> None:
        """Of 400 images, 100 belong to each of four classes, give or take 3 · 10."""
        assert may_be_balanced(torch.tensor([70.0, 100, 120, 400]), 400)
        assert not may_be_balanced(torch.tensor([69.0, 100, 120, 400]), 400)

    def test_labels_of_one_scene_are_left_alone(self) -> None:
        """A hundred scenes with two of six people each, one of whom is in most: anyone in a scene may be the answer."""
        random = np.random.default_rng(0)
        sets = torch.zeros(1000, 6, dtype=torch.bool)
        sets[:, 0] = True
        other = torch.from_numpy(random.choice(5, 100, p=[0.6, 0.2, 0.1, 0.07, 0.03])).repeat_interleave(10)
        sets[torch.arange(1000), 1 + other] = True
        believed = sets / sets.sum(1, keepdim=True)
        assert float(estimated(sets, believed).weight) == 0
        assert float(estimated(sets, believed, "1").weight) > 0.5  # a number is a person's decision


class TestBalanceLoss:
    def made(self, sets: Tensor, **options: Any) -> Any:
        method = find_method("papi")
        network = torch.nn.Module()
        network.projection = 4  # type: ignore[assignment]
        made = method(network, sets, method.Config(set_prior="auto", **options))  # type: ignore[arg-type, call-arg]
        made.start_epoch(START, lambda: iter(()))
        return made

    def test_by_hand(self) -> None:
        sets, _ = covered()
        method = self.made(sets, balance_weight=0.5)
        logits = R0[:, :3]
        mean = logits.softmax(1).mean(0)
        expected = 0.5 * method.prior.sets.evidence * -mean.log().mean()
        assert method.prior.sets.evidence > 0.9
        golden(method.balance(logits), expected)

    def test_a_batch_smaller_than_the_number_of_classes_is_left_alone(self) -> None:
        sets, _ = covered()
        assert self.made(sets, balance_weight=0.5).balance(R0[:2, :3]) == 0

    def test_uniform_sets_are_left_alone(self) -> None:
        labels = np.arange(1000) % 10
        sets = torch.from_numpy(generators.uniform(labels, 10, 0.5, seed=0))
        assert self.made(sets, balance_weight=0.5).balance(torch.randn(20, 10)) == 0


@pytest.mark.parametrize("wrong", ["of", "-1", "nan", "inf", ""])
def test_wrong_values(wrong: str) -> None:
    with pytest.raises(UserError, match="off, auto, or a number of 0 or more"):
        find_method("papi").Config(set_prior=wrong)


def settings(name: str, strength: str, **changes: Any) -> RunConfig:
    config = RunConfig(data="toy", method=name, epochs=3, batch_size=20, device="cpu", threads=1)
    return replace(config, option=(f"set_prior={strength}",), **changes)


def train(data: Dataset, config: RunConfig, sets: np.ndarray, folder: Path | None = None) -> Any:
    target = None if folder is None else RunFolder(folder)
    events = list(run.fit(data, sets, run.settings_for(config, data), target))
    assert isinstance(events[-1], run.Finished)
    return events[-1], [event.row.to_json() for event in events if isinstance(event, EpochEnded)]


def covering_sets(data: Dataset) -> np.ndarray:
    """The last label is a candidate of every image, and another one of a few."""
    assert data.labels is not None
    classes = len(data.class_names)
    chances = np.full((classes, classes), 0.1)
    chances[:, -1] = 1
    sets: np.ndarray = np.random.default_rng(0).random((len(data.labels), classes)) < chances[data.labels]
    sets[np.arange(len(sets)), data.labels] = True
    return sets


class TestInTraining:
    def test_it_solves_what_self_training_cannot(self) -> None:
        """A label that covers all others explains every set: without the prior, most images get it."""
        data = make_toy_dataset(train=240)
        sets = covering_sets(data)
        right = {
            strength: train(data, settings("proden", strength, epochs=12), sets)[0].summary.disambiguation_accuracy
            for strength in ("off", "auto")
        }
        assert right["off"] < 0.6
        assert right["auto"] > 0.9

    @pytest.mark.parametrize("name", LISTENING)
    def test_stopped_and_continued_equals_uninterrupted(self, name: str, tmp_path: Path) -> None:
        data, config = make_toy_dataset(), settings(name, "auto", epochs=4)
        sets = covering_sets(data)
        whole, rows = train(data, config, sets)
        asked: list[Any] = []
        folder = RunFolder(tmp_path / "run")
        for event in run.fit(data, sets, run.settings_for(config, data), folder, asked.__len__):
            if isinstance(event, engine.Stepped) and (event.progress.epoch, event.progress.step) == (1, 1):
                asked.append(event)
        parts, last_rows = train(data, config, sets, folder.path)
        mine, other = whole.trained.method.state_dict(), parts.trained.method.state_dict()
        assert all(torch.equal(mine[each], other[each]) for each in mine)
        assert [row["set_prior"] > 0 for row in rows] == [True, True, False, False]
        assert last_rows[-1]["set_prior"] == rows[-1]["set_prior"]

    def test_off_remembers_nothing(self) -> None:
        data = make_toy_dataset()
        finished, rows = train(data, settings("papi", "off"), covering_sets(data))
        assert not [each for each in finished.trained.method.state_dict() if "prior" in each]
        assert "set_prior" not in rows[-1]


def test_it_counts_in_a_guess() -> None:
    sets, _ = covered()
    method = find_method("proden")
    made = method(torch.nn.Identity(), sets, method.Config(set_prior="auto"))  # type: ignore[arg-type, call-arg]
    made.start_epoch(START, lambda: iter(()))
    assert made.prior.sets is not None
    batch = Batch(torch.arange(4), (), sets[:4])
    logits = R0.repeat(2, 1)[:4, :3]
    by_hand = logits.softmax(1) * made.prior.sets.log_weights(sets[:4]).exp() * sets[:4]
    golden(candidate_softmax(logits, made.admit(batch, logits, START)), by_hand / by_hand.sum(1, keepdim=True))
    late = replace(START, epoch=6)
    assert made.admit(batch, logits, late) is batch.candidates
    assert math.isfinite(float(made.logs(START)["set_prior"]))
