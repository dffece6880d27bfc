"""Candidate sets that may lack the truth: the formula, what is estimated, and every method that can doubt its sets."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from toy import R0, Y, golden

from papi import train as run
from papi.config import OptimConfig, RunConfig
from papi.data import candidates as generators
from papi.data.dataset import Dataset
from papi.errors import UserError
from papi.methods import METHODS, find_method, losses
from papi.methods.base import Method
from papi.methods.noise import NoiseTolerance, Tolerant, missing_share, outside_weight, signed_certainty
from papi.methods.state import Confidence
from papi.runs.folder import RunFolder
from papi.training import engine
from papi.training.engine import EpochEnded
from papi.types import Batch, Progress, StepOutput
from toy_data import make_toy_dataset

TOLERANT = [name for name in METHODS if issubclass(find_method(name), Tolerant)]
LATE = Progress(epoch=6, epochs=12, step=0, steps=10, seed=0)

every_tolerant_method = pytest.mark.parametrize("name", TOLERANT)


def test_which_methods_can_doubt() -> None:
    assert TOLERANT == ["papi", "dpll", "pico", "proden", "rc", "em"]


class TestWeightedCandidates:
    """S + λ(1 - S) in the losses, against sums over labels."""

    @pytest.mark.parametrize("weight", [0.0, 0.01, 0.3, 1.0])
    def test_formulas(self, weight: float) -> None:
        admitted = torch.where(Y, 1.0, weight)
        for i, row in enumerate(R0.double().softmax(1).tolist()):
            counted = [p * (1 if inside else weight) for p, inside in zip(row, Y[i].tolist(), strict=True)]
            expected = [each / sum(counted) for each in counted]
            golden(losses.candidate_softmax(R0, admitted)[i], expected)
            assert int(losses.candidate_argmax(R0, admitted)[i]) == max(range(4), key=lambda j: counted[j])
            one, mask = R0[i : i + 1], admitted[i : i + 1]
            excluded = [
                (0 if inside else 1 - weight) * -math.log(1 - p) for p, inside in zip(row, Y[i].tolist(), strict=True)
            ]
            golden(losses.non_candidate_loss(one, mask), sum(excluded))

    def test_weights_of_zero_and_one_are_the_mask(self) -> None:
        for function in (losses.candidate_softmax, losses.candidate_argmax):
            assert function(R0, Y.float()).equal(function(R0, Y))
        golden(losses.non_candidate_loss(R0, Y.float()), losses.non_candidate_loss(R0, Y))


def answers(
    labels: np.ndarray, strength: float, errors: float, random: np.random.Generator, classes: int = 10
) -> Tensor:
    """Logits of a classifier that is mostly right, and surer where it is: a share `errors` argues for another class."""
    meant = np.where(random.random(len(labels)) < errors, random.integers(0, classes, len(labels)), labels)
    logits = random.normal(0, 1, (len(labels), classes))
    # The wrong ones are unsure: an image that looks like several classes is hard.
    logits[np.arange(len(labels)), meant] += strength * np.where(
        meant == labels, random.uniform(0.2, 1, len(labels)), 0.3
    )
    return torch.from_numpy(logits).float()


def estimated(logits: Tensor, sets: np.ndarray, progress: Progress = LATE) -> NoiseTolerance:
    """After an epoch in batches of 100."""
    candidates = torch.from_numpy(sets)
    tolerance = NoiseTolerance(candidates, "auto")
    for index in torch.arange(len(sets)).split(100):
        tolerance.admit(Batch(index, (), candidates[index]), logits[index], progress)
    tolerance.estimate(candidates, progress)
    return tolerance


class TestEstimate:
    labels = np.arange(4000) % 10

    @pytest.mark.parametrize("noise", [0.0, 0.05, 0.2, 0.4])
    @pytest.mark.parametrize("flip_rate", [0.1, 0.5])
    @pytest.mark.parametrize("errors", [0.05, 0.3])
    def test_noise_rate(self, noise: float, flip_rate: float, errors: float) -> None:
        """Close to how often the truth is missing, also where three answers in ten are wrong."""
        sets = generators.noisy(self.labels, 10, flip_rate, noise, seed=0)
        missing = float(1 - sets[np.arange(4000), self.labels].mean())
        tolerance = estimated(answers(self.labels, 12.0, errors, np.random.default_rng(1)), sets)
        assert float(tolerance.noise_rate) == pytest.approx(missing, abs=0.03)
        if missing == 0:
            assert float(tolerance.noise_rate) < 0.003

    def test_noise_rate_of_a_few_images_by_hand(self) -> None:
        """Eight images, of which the two surest count: the answer to the first is outside."""
        sets = torch.tensor([[True, False, False]] * 8)
        logits = torch.tensor([[0, 1, 9.0], [7.0, 0, 2]] + [[4.0, 1, 0]] * 3 + [[0, 1, 4.0]] * 3)
        assert float(missing_share(signed_certainty(logits, sets), sets)) == 0.5

    @pytest.mark.parametrize("noise", [0.05, 0.2])
    @pytest.mark.parametrize(("classes", "size"), [(3, 1), (4, 2), (5, 3)])
    def test_weight_is_that_of_bayes_rule(self, noise: float, classes: int, size: int) -> None:
        """The slow version: all sets of a size, with the truth and without, are counted for every true label."""
        sets = [frozenset(each) for each in itertools.combinations(range(classes), size)]
        prior = np.random.default_rng(0).dirichlet(np.ones(classes))
        mask = torch.tensor([[label in each for label in range(classes)] for each in sets])
        weights = torch.where(mask, 1.0, outside_weight(torch.tensor(noise), mask))
        for each, row in zip(sets, weights, strict=True):
            joint = []
            for label in range(classes):
                alike = [other for other in sets if (label in other) == (label in each)]
                chance = 1 - noise if label in each else noise
                joint.append(prior[label] * chance / len(alike))
            actual = losses.candidate_softmax(torch.from_numpy(prior).log()[None], row[None])[0]
            torch.testing.assert_close(actual, torch.tensor(joint).double() / sum(joint), rtol=1e-5, atol=1e-7)

    def test_no_doubt_no_weight(self) -> None:
        sets = generators.uniform(self.labels, 10, 0.5, seed=0)
        logits = 20 * torch.nn.functional.one_hot(torch.from_numpy(self.labels), 10).float()
        tolerance = estimated(logits, sets)
        assert float(tolerance.noise_rate) == float(tolerance.weight) == 0
        batch = Batch(torch.arange(5), (), torch.from_numpy(sets[:5]))
        assert tolerance.admit(batch, logits[:5], LATE).equal(batch.candidates.float())

    def test_weight_is_one_at_most(self) -> None:
        sets = torch.tensor([[True, True, False, False]])
        assert outside_weight(torch.tensor(0.9), sets) == 1

    @pytest.mark.parametrize("classes", [3, 10, 100])
    def test_guesses_are_no_reason_to_doubt(self, classes: int) -> None:
        """A network that has learned nothing yet answers outside the sets most of the time."""
        labels = np.arange(4000) % classes
        sets = generators.uniform(labels, classes, 0.3, seed=0)
        guesses = torch.randn(4000, classes, generator=torch.Generator().manual_seed(0))
        tolerance = estimated(guesses, sets)
        assert (tolerance.certainty < 0).float().mean() > 0.4
        assert float(tolerance.noise_rate) == float(tolerance.weight) == 0

    def test_images_that_were_never_seen_have_no_say(self) -> None:
        """The last batch of an epoch may be dropped: here only 10 of 40 images were answered, half of them outside."""
        sets = torch.tensor([[True, False, False, False]] * 40)
        assert missing_share(torch.tensor([-9.0, 9.0] * 5 + [0.0] * 30), sets) == 0.5

    @pytest.mark.parametrize(("epoch", "asked"), [(0, False), (1, True), (7, True)])
    def test_sets_are_trusted_until_every_image_was_answered(self, epoch: int, asked: bool) -> None:
        progress = Progress(epoch, 12, 0, 10, 0)
        sets = np.array([[True, False]] * 12)
        logits = torch.tensor([[0, 9.0]] + [[9.0, 0]] * 2 + [[1.0, 0]] * 9)  # one of the three surest is outside
        batch = Batch(torch.arange(12), (), torch.from_numpy(sets))
        for tolerance in (estimated(logits, sets, progress), NoiseTolerance(batch.candidates, "0.5")):
            expected = 0.5 * asked  # odds of 1 to 2 that the truth is missing; half of the labels are candidates
            assert tolerance.admit(batch, logits, progress)[:, 1].tolist() == pytest.approx([expected] * 12)
            assert float(tolerance.logs(progress)["noise_tolerance"]) == pytest.approx(expected)


class Synchronised(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes operations that make the host wait for the device."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.waits: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        if func.__name__.partition(".")[0] in ("_local_scalar_dense", "nonzero", "masked_select", "equal"):
            self.waits.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_no_step_waits_for_the_host() -> None:
    tolerance = NoiseTolerance(Y, "auto")
    batch = Batch(torch.arange(3), (), Y)
    with Synchronised() as watched:
        tolerance.estimate(Y, LATE)
        losses.candidate_softmax(R0, tolerance.admit(batch, R0, LATE))
        tolerance.logs(LATE)
    assert watched.waits == []
    with Synchronised() as watched:
        bool(R0.any())
    assert watched.waits  # it does notice


@pytest.mark.parametrize("wrong", ["of", "1.5", "-0.1", "nan", "0,5", ""])
def test_wrong_values(wrong: str) -> None:
    with pytest.raises(UserError, match="off, auto or a number from 0 to 1"):
        find_method("papi").Config(noise_tolerance=wrong)


def settings(name: str, tolerance: str, **changes: Any) -> RunConfig:
    config = RunConfig(
        data="toy", method=name, epochs=3, batch_size=20, device="cpu", threads=1,
        option=(f"noise_tolerance={tolerance}",),
    )  # fmt: skip
    return replace(config, **changes)


def noisy_sets(data: Dataset, noise_rate: float = 0.3) -> np.ndarray:
    assert data.labels is not None
    return generators.noisy(data.labels, len(data.class_names), 0.4, noise_rate, seed=0)


def train(
    data: Dataset, config: RunConfig, sets: np.ndarray | None = None, folder: Path | None = None
) -> tuple[Any, list[dict[str, Any]]]:
    """A whole run, on noisy sets unless told otherwise: the trained method and its rows."""
    target = None if folder is None else RunFolder(folder)
    events = list(run.fit(data, noisy_sets(data) if sets is None else sets, run.settings_for(config, data), target))
    assert isinstance(events[-1], run.Finished)
    return events[-1].trained.method, [event.row.to_json() for event in events if isinstance(event, EpochEnded)]


def accuracy(rows: list[dict[str, Any]]) -> float:
    """Of the resolved labels at the end; of test labels for a method that believes nothing between steps."""
    value: float = rows[-1].get("disambiguation_accuracy", rows[-1]["test_accuracy"])
    return value


def same_state(mine: Method, other: Method) -> bool:
    a, b = mine.state_dict(), other.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[each], b[each]) for each in a)


@every_tolerant_method
class TestInEveryMethod:
    def test_it_finds_labels_that_are_missing(self, name: str) -> None:
        """Trusting its sets, a method could resolve at most the share of images whose set holds the truth."""
        data = make_toy_dataset(train=480)
        assert data.labels is not None
        sets = noisy_sets(data)
        present = sets[np.arange(len(sets)), data.labels].mean()
        assert present < 0.85
        _, rows = train(data, settings(name, "auto", epochs=8), sets)
        assert accuracy(rows) > 1 - 0.6 * (1 - present)
        assert rows[-1]["noise_rate"] == pytest.approx(1 - present, abs=0.1)

    def test_clean_sets_stay_trusted(self, name: str) -> None:
        data = make_toy_dataset(train=160)
        _, rows = train(data, settings(name, "auto", epochs=8), noisy_sets(data, noise_rate=0.0))
        assert rows[-1]["noise_tolerance"] == 0
        assert accuracy(rows) > 0.99

    def test_off_and_zero_are_one(self, name: str, toy_dataset: Dataset) -> None:
        """Bit for bit; nothing is remembered or logged."""
        off, rows = train(toy_dataset, settings(name, "off"))
        assert same_state(off, train(toy_dataset, settings(name, "0"))[0])
        assert same_state(off, train(toy_dataset, settings(name, "off", option=()))[0])
        assert not [each for each in off.state_dict() if "tolerance" in each]
        assert not [each for each in rows[-1] if "noise" in each]

    @pytest.mark.parametrize("tolerance", ["auto", "0.5"])
    @pytest.mark.parametrize("logit_size", [1.0, 1000.0])
    def test_state_stays_valid(
        self, name: str, tolerance: str, logit_size: float, toy_dataset: Dataset, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After every step; with logits blown up, too."""
        original: Callable[..., StepOutput] = engine.train_step
        outside = 0.0

        def watched(
            method: Method, optimizer: Any, rate: float, batch: Batch, progress: Progress, *rest: Any
        ) -> StepOutput:
            nonlocal outside
            if progress.epoch == progress.step == 0:
                with torch.no_grad():
                    method.network.classifier.weight.mul_(logit_size)
            output = original(method, optimizer, rate, batch, progress, *rest)
            assert output.loss.isfinite()
            assert all(p.grad is None or p.grad.isfinite().all() for p in method.parameters())
            assert all(buffer.isfinite().all() for buffer in method.buffers())
            for part in method.modules():
                if isinstance(part, Confidence):
                    assert (part.value >= 0).all()
                    torch.testing.assert_close(part.value.sum(1), torch.ones(len(part.value)))
                    outside = max(outside, float(part.value[~method.candidates].max()))
            return output

        monkeypatch.setattr(engine, "train_step", watched)
        optim = OptimConfig(lr=0.0) if logit_size > 1 else OptimConfig()
        method, rows = train(toy_dataset, settings(name, tolerance, optim=optim))
        assert all(0 <= row["noise_tolerance"] <= 1 for row in rows)
        assert tolerance == "auto" or method.confidence is None or outside > 0

    def test_stopped_and_continued_equals_uninterrupted(self, name: str, toy_dataset: Dataset, tmp_path: Path) -> None:
        config = settings(name, "auto")
        whole, rows = train(toy_dataset, config)
        assert (whole.tolerance.certainty != 0).all()  # every image was noted
        for place in ((1, 1), (1, 4)):
            asked: list[Any] = []
            folder = RunFolder(tmp_path / str(place))
            chosen = run.settings_for(config, toy_dataset)
            for event in run.fit(toy_dataset, noisy_sets(toy_dataset), chosen, folder, stop_requested=asked.__len__):
                if isinstance(event, engine.Stepped) and (event.progress.epoch, event.progress.step) == place:
                    asked.append(event)
            assert isinstance(event, run.Stopped)
            parts, last_rows = train(toy_dataset, config, folder=folder.path)
            assert same_state(whole, parts)
            for each in ("noise_rate", "noise_tolerance"):
                assert last_rows[-1][each] == rows[-1][each]
