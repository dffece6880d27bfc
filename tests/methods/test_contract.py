"""What every method must keep to, run over all of METHODS: a new one is tested by being in the table."""

import dataclasses
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from papi import train as run
from papi.cli.methods import methods
from papi.config import OptimConfig, RunConfig, as_typed
from papi.data import candidates as generators
from papi.data.dataset import Dataset
from papi.methods import METHODS, find_method
from papi.methods.base import Method
from papi.methods.options import parse_options
from papi.methods.ranges import ranges_of, type_of
from papi.methods.state import Confidence, Prototypes
from papi.runs.folder import RunFolder
from papi.training import engine
from papi.training.engine import EpochEnded, Stepped
from papi.types import Batch, Progress, StepOutput

PAGES = Path(__file__).parents[2] / "docs" / "methods"

Watch = Callable[[Method, StepOutput, Batch, Progress], None]

# Forward and backward passes through an encoder in a step late in the run.
PASSES = {
    "papi": (4, 3),
    "pico": (2, 1),
    "dpll": (3, 3),
    "valen": (2, 2),
    "proden": (1, 1),
    "lws": (2, 1),
    "rc": (2, 1),
    "cc": (1, 1),
    "dirk": (2, 1),
    "em": (3, 3),
    "neighbours": (1, 1),
    "supervised": (1, 1),
}

# Forms of a method that go another way through its step: the name, and the option that chooses it.
FORMS = {"papi two": "passes=two", "papi one": "passes=one", "dirk refined": "refinement_weight=1"}
FORM_PASSES = {"papi two": (2, 2), "papi one": (1, 1), "dirk refined": (4, 2)}

every_method = pytest.mark.parametrize("name", METHODS)
every_form = pytest.mark.parametrize("name", [*METHODS, *FORMS])
every_learner = pytest.mark.parametrize(
    "name", [*(name for name in METHODS if not find_method(name).Config().needs_truth), *FORMS]
)


def settings(name: str, **changes: Any) -> RunConfig:
    plain = RunConfig(data="toy", method=name.split()[0], epochs=3, batch_size=20, device="cpu", threads=1)
    # The form without an option is the one of the paper, whatever a preset would choose.
    forms = FORMS | {"papi": "passes=paper"}
    return replace(plain, option=(forms[name],) if name in forms else (), **changes)


def some_of(data: Dataset, classes: int, images: int) -> Dataset:
    """The first images of the first classes."""
    assert data.labels is not None
    assert data.test_labels is not None
    assert data.test_samples is not None
    kept, tested = np.flatnonzero(data.labels < classes)[:images], data.test_labels < classes
    return replace(
        data,
        class_names=data.class_names[:classes],
        samples=data.samples[kept],
        labels=data.labels[kept],
        test_samples=data.test_samples[tested],
        test_labels=data.test_labels[tested],
    )


def candidate_sets(data: Dataset, flip_rate: float = 0.4) -> np.ndarray:
    assert data.labels is not None
    return generators.uniform(data.labels, len(data.class_names), flip_rate, seed=0)


def train(data: Dataset, config: RunConfig, sets: np.ndarray | None = None, folder: Path | None = None) -> Any:
    """A whole run; what it leaves, and its summary."""
    target = None if folder is None else RunFolder(folder)
    *_, last = run.fit(data, candidate_sets(data) if sets is None else sets, run.settings_for(config, data), target)
    assert isinstance(last, run.Finished)
    return last


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Callable[[Watch], None]:
    """`watch(look)` has `look` called after every training step."""

    def install(look: Watch) -> None:
        original = engine.train_step

        def watched(method: Method, optimizer: Any, rate: float, batch: Batch, *rest: Any) -> StepOutput:
            output = original(method, optimizer, rate, batch, *rest)
            look(method, output, batch, rest[0])
            return output

        monkeypatch.setattr(engine, "train_step", watched)

    return install


def check_state(method: Method) -> None:
    """Confidence rows are distributions over the candidates; prototypes are unit vectors, or zero while unseen."""
    for buffer in method.buffers():
        assert buffer.isfinite().all()
    for part in method.modules():
        if isinstance(part, Confidence):
            rows = part.all_rows
            assert (rows >= 0).all()
            torch.testing.assert_close(rows.sum(1), torch.ones(len(rows)))
            assert (rows[~method.candidates] == 0).all()
        if isinstance(part, Prototypes):
            norms = part.value.norm(dim=1)
            assert ((norms - 1).abs().lt(1e-5) | (norms == 0)).all()


@every_form
def test_it_learns_from_candidate_sets(name: str, toy_dataset: Dataset) -> None:
    summary = train(toy_dataset, settings(name, epochs=10, batch_size=12)).summary
    assert summary.test_accuracy > 0.6  # chance is 0.25
    assert summary.disambiguation_accuracy > 0.7  # chance is 0.5


@every_form
def test_after_every_step_the_loss_is_finite_and_the_state_valid(
    name: str, toy_dataset: Dataset, watch: Callable[[Watch], None]
) -> None:
    def look(method: Method, output: StepOutput, batch: Batch, progress: Progress) -> None:
        assert output.loss.isfinite()
        assert output.loss.shape == ()
        assert output.logits.shape == batch.candidates.shape
        assert all(value.isfinite() for value in output.logs.values())
        check_state(method)

    watch(look)
    train(toy_dataset, settings(name))


@every_form
@pytest.mark.parametrize(
    ("classes", "images", "batch_size"),
    [
        pytest.param(4, 8, 2, id="pairs"),
        pytest.param(2, 20, 8, id="two classes, partial last batch"),
        pytest.param(4, 9, 4, id="a single image left over"),
        pytest.param(4, 12, 64, id="fewer images than a batch"),
    ],
)
def test_small_sizes(
    name: str, classes: int, images: int, batch_size: int, toy_dataset: Dataset, watch: Callable[[Watch], None]
) -> None:
    watch(lambda method, output, batch, progress: check_state(method))
    train(some_of(toy_dataset, classes, images), settings(name, batch_size=batch_size))


@every_form
def test_extreme_logits(name: str, toy_dataset: Dataset, watch: Callable[[Watch], None]) -> None:
    """A classifier blown up beyond ±300: loss, gradients and state stay finite. The learning rate is zero."""
    largest = 0.0

    def look(method: Method, output: StepOutput, batch: Batch, progress: Progress) -> None:
        nonlocal largest
        size = float(output.logits.detach().abs().max())
        if progress.epoch == progress.step == 0:
            with torch.no_grad():
                method.network.classifier.weight.mul_(1000 / size)
            return
        largest = max(largest, size)
        assert output.loss.isfinite()
        assert all(p.grad is None or p.grad.isfinite().all() for p in method.parameters())
        check_state(method)

    watch(look)
    train(toy_dataset, settings(name, optim=OptimConfig(lr=0.0)))
    assert largest > 300


@every_learner
def test_a_single_candidate_stays_certain(name: str, toy_dataset: Dataset) -> None:
    sets = candidate_sets(toy_dataset, flip_rate=0.0)
    method = train(toy_dataset, settings(name), sets).trained.method
    for part in method.modules():
        if isinstance(part, Confidence):
            torch.testing.assert_close(part.all_rows, torch.from_numpy(sets).float())


@every_form
def test_every_parameter_learns(name: str, toy_dataset: Dataset, watch: Callable[[Watch], None]) -> None:
    """At some step of the run each has a gradient other than zero."""
    idle: dict[str, bool] = {}

    def look(method: Method, output: StepOutput, batch: Batch, progress: Progress) -> None:
        for each, parameter in method.named_parameters():
            if parameter.requires_grad:
                assert parameter.grad is not None
                idle[each] = idle.get(each, True) and not parameter.grad.any()

    watch(look)
    train(toy_dataset, settings(name))
    assert [each for each, always in idle.items() if always] == []


@every_form
def test_idle_settings_change_nothing(name: str, toy_dataset: Dataset) -> None:
    """Bit for bit, wherever in their ranges they are."""
    kind = find_method(settings(name).method).Config
    ranges, sets = ranges_of(kind), candidate_sets(toy_dataset)
    plain = run.settings_for(settings(name), toy_dataset)
    idle = kind(**plain.options).idle
    assert idle <= ranges.keys()
    if not idle:
        return
    random = np.random.default_rng(0)
    drawn = {each: ranges[each].draw(random, type_of(kind, each)) for each in idle}
    option = (*settings(name).option, *(f"{each}={as_typed(value)}" for each, value in drawn.items()))
    mine, other = (
        train(toy_dataset, config, sets).trained.method.state_dict()
        for config in (settings(name), replace(settings(name), option=option))
    )
    assert [each for each in mine if not torch.equal(mine[each], other[each])] == []


class TestTruth:
    def test_a_batch_has_no_labels(self) -> None:
        assert [field.name for field in dataclasses.fields(Batch)] == ["index", "views", "candidates", "whole"]

    @every_learner
    def test_other_true_labels_change_nothing(self, name: str, toy_dataset: Dataset) -> None:
        """Bit for bit: no way leads from the labels that measure a run to what is learned."""
        sets = candidate_sets(toy_dataset)
        assert toy_dataset.labels is not None
        permuted = replace(toy_dataset, labels=np.random.default_rng(0).permutation(toy_dataset.labels))
        mine, other = (
            train(data, settings(name), sets).trained.method.state_dict() for data in (toy_dataset, permuted)
        )
        assert mine.keys() == other.keys()
        assert [each for each in mine if not torch.equal(mine[each], other[each])] == []

    def test_the_declared_oracle_needs_them(self, toy_dataset: Dataset) -> None:
        sets = candidate_sets(toy_dataset)
        with pytest.raises(ValueError, match="needs true labels"):
            train(replace(toy_dataset, labels=None), settings("supervised"), sets)


def in_the_second_epoch(event: Any) -> bool:
    return isinstance(event, Stepped) and (event.progress.epoch, event.progress.step) == (1, 1)


def at_the_end_of_the_first(event: Any) -> bool:
    return isinstance(event, EpochEnded) and event.row.epoch == 0


@every_form
def test_stopped_and_continued_equals_uninterrupted(name: str, toy_dataset: Dataset, tmp_path: Path) -> None:
    """Bit for bit, weights and memory alike."""
    sets = candidate_sets(toy_dataset)
    whole = train(toy_dataset, settings(name), sets).trained.method.state_dict()
    for reached in (in_the_second_epoch, at_the_end_of_the_first):
        asked: list[Any] = []
        folder = RunFolder(tmp_path / reached.__name__)
        chosen = run.settings_for(settings(name), toy_dataset)
        for event in run.fit(toy_dataset, sets, chosen, folder, stop_requested=asked.__len__):
            asked += [event] if reached(event) else []
        assert isinstance(event, run.Stopped)
        parts = train(toy_dataset, settings(name), sets, folder.path).trained.method.state_dict()
        assert whole.keys() == parts.keys()
        assert [each for each in whole if not torch.equal(whole[each], parts[each])] == []


@every_form
def test_encoder_passes(name: str, toy_dataset: Dataset, watch: Callable[[Watch], None]) -> None:
    """As many as its specification says, and as `papi methods` tells people."""
    counts: Counter[str] = Counter()
    seen: list[tuple[int, int]] = []
    hooked: set[nn.Module] = set()

    def count(module: nn.Module, inputs: Any, output: Tensor) -> None:
        counts["forward"] += 1
        if output.requires_grad:
            output.register_hook(lambda gradient: counts.update(["backward"]))

    def look(method: Method, output: StepOutput, batch: Batch, progress: Progress) -> None:
        seen.append((counts["forward"], counts["backward"]))
        counts.clear()
        for module in method.modules():
            if type(module) is type(method.network.encoder) and module not in hooked:
                module.register_forward_hook(count)
                hooked.add(module)

    watch(look)
    train(toy_dataset, settings(name))
    assert seen[-1] == (PASSES | FORM_PASSES)[name]
    forward, backward = seen[-1]
    config = settings(name)
    kind = find_method(config.method).Config
    told = kind(**parse_options(kind, config.given_options)).encoder_passes
    assert (told.forward, told.backward) == (forward, backward)


class TestWhatPeopleRead:
    @every_method
    def test_facts(self, name: str) -> None:
        kind = find_method(name)
        assert kind.memory
        assert bool(kind.paper) == bool(kind.year) == (name != "supervised")
        assert dataclasses.is_dataclass(kind.Config)

    def test_list(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "200")
        methods()
        listed = capsys.readouterr().out
        for name in METHODS:
            kind = find_method(name)
            (line,) = [line for line in listed.splitlines() if line.startswith(f"│ {name} ")]
            assert all(
                fact in line
                for fact in (kind.paper, str(kind.year or ""), str(kind.Config().encoder_passes), kind.memory)
            )
        assert "weak, strong, strong" in listed

    @every_method
    def test_page_in_the_terminal(
        self, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "200")
        methods(name)
        page = capsys.readouterr().out
        for field in dataclasses.fields(find_method(name).Config):
            (line,) = [line for line in page.splitlines() if line.startswith(f"│ {field.name} ")]
            explained = line.rstrip("│ ").rpartition("│")[2]
            assert len(explained) > 20, f"{field.name} is not explained"

    @pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
    def test_page_of_the_documentation(self, page: Path) -> None:
        """It names every option and none that does not exist, or says where they are listed."""
        options = [field.name for field in dataclasses.fields(find_method(page.stem).Config)]
        section = page.read_text().partition("## Options")[2].partition("## ")[0]
        named = re.findall(r"^\| `(\w+)`", section, re.MULTILINE)
        assert sorted(named) == sorted(options) or f"`papi methods {page.stem}`" in section
