"""Sums of an epoch: equal to counting every step on its own, no matter how many steps are counted together."""

from collections.abc import Iterator

import pytest
import torch

from papi.training import tally
from papi.training.tally import Tally
from papi.types import Batch, StepOutput

CLASSES, SAMPLES, BATCH = 4, 600, 5  # 120 steps: counts are read twice before the end


def steps(scored_from: int = 0) -> Iterator[tuple[StepOutput, Batch]]:
    """Random outputs of an epoch; the second classifier takes part from step `scored_from` on."""
    random = torch.Generator().manual_seed(0)
    for number, index in enumerate(torch.randperm(SAMPLES, generator=random).split(BATCH)):
        candidates = torch.rand(len(index), CLASSES, generator=random) < 0.6
        logits, scores = torch.randn(2, len(index), CLASSES, generator=random)
        loss, part = torch.rand(2, generator=random)
        known = scores if number >= scored_from else None
        yield StepOutput(loss, logits, known, {"loss_part": part}), Batch(index, (), candidates, len(index))


def truth() -> torch.Tensor:
    return torch.arange(SAMPLES) % CLASSES


def slow_means(scored_from: int) -> dict[str, float]:
    """One image at a time."""
    losses, right, batches = {"loss": 0.0, "loss_part": 0.0}, 0, []
    names = [f"{which}_only_right{where}" for where in ("", "_in_candidates") for which in ("linear", "prototype")]
    for output, batch in steps(scored_from):
        losses["loss"] += float(output.loss) * len(batch.index)
        losses["loss_part"] += float(output.logs["loss_part"]) * len(batch.index)
        counts = dict.fromkeys(names, 0)
        for row, (index, candidates) in enumerate(zip(batch.index, batch.candidates, strict=True)):
            label = int(truth()[index])

            def correct(values: torch.Tensor, allowed: torch.Tensor, label: int = label) -> bool:
                best = max(range(CLASSES), key=lambda j: (float(values[j]) if allowed[j] else -float("inf"), -j))
                return best == label

            everything = torch.ones(CLASSES, dtype=torch.bool)
            right += correct(output.logits[row], candidates)
            if output.prototype_scores is None:
                continue
            for suffix, allowed in (("", everything), ("_in_candidates", candidates)):
                linear = correct(output.logits[row], allowed)
                prototype = correct(output.prototype_scores[row], allowed)
                counts[f"linear_only_right{suffix}"] += linear and not prototype
                counts[f"prototype_only_right{suffix}"] += prototype and not linear
        batches.append(counts)
    means = {name: value / SAMPLES for name, value in losses.items()} | {"train_accuracy": right / SAMPLES}
    for name in names:
        values = [counts[name] for counts in batches]
        mean = sum(values) / len(values)
        means[name] = mean
        means[f"{name}_std"] = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
    return means


@pytest.mark.parametrize("scored_from", [0, 30], ids=["from the start", "from the thirtieth step"])
@pytest.mark.parametrize("held", [1, 60, 2**20], ids=["step by step", "three steps", "all recent steps"])
def test_means_are_those_of_counting_image_by_image(
    held: int, scored_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tally, "HELD", held)
    found = Tally(truth())
    for output, batch in steps(scored_from):
        found.add(output, batch)
    assert found.means() == pytest.approx(slow_means(scored_from), abs=1e-6)


def test_an_interrupted_epoch_has_the_same_sums() -> None:
    whole, interrupted = Tally(truth()), Tally(truth())
    for number, (output, batch) in enumerate(steps()):
        whole.add(output, batch)
        if number in (3, 61):  # neither falls on a step at which counts are read anyway
            interrupted = Tally(truth(), interrupted.sums)
        interrupted.add(output, batch)
    assert interrupted.sums == whole.sums


def test_without_true_labels_there_are_only_losses() -> None:
    found = Tally(None)
    for output, batch in steps():
        found.add(output, batch)
    assert set(found.means()) == {"loss", "loss_part"}
