"""Half precision and compiled encoders: what computes in what, what checkpoints hold, and that runs go on bit-equal."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import papi
from command import papi_exit_code
from papi import train as run
from papi.config import RunConfig, to_dict
from papi.data import candidates as generators
from papi.data.dataset import Dataset
from papi.data.loader import Loader
from papi.data.views.choose import normaliser, views_of
from papi.errors import UserError
from papi.methods import METHODS
from papi.methods.base import Method
from papi.methods.papi import PaPi
from papi.methods.papi_settings import PaPiConfig
from papi.networks import build
from papi.runs.folder import RunFolder
from papi.runs.identity import differences
from papi.setup.settings import complete
from papi.training import engine
from papi.training.engine import Snapshot
from papi.training.optim import build_optimizer, learning_rate

CONFIG = RunConfig(data="toy", epochs=2, batch_size=32, device="cpu", threads=1, precision="bf16")


def train(data: Dataset, config: RunConfig = CONFIG, folder: Path | None = None, stop_after: int = 10**9) -> list[Any]:
    assert data.labels is not None
    mask = generators.uniform(data.labels, len(data.class_names), 0.3, seed=0)
    asked = iter(range(10**9))
    target = None if folder is None else RunFolder(folder)
    return list(run.fit(data, mask, run.settings_for(config, data), target, lambda: next(asked) + 1 >= stop_after))


def small_papi(data: Dataset, half: torch.dtype | None) -> tuple[PaPi, Loader]:
    torch.manual_seed(0)
    network = build("small", data.input_shape, len(data.class_names), project=True)
    network.autocast = half
    assert data.labels is not None
    mask = torch.from_numpy(generators.uniform(data.labels, len(data.class_names), 0.3, seed=0))
    method = PaPi(network, mask, PaPiConfig(schedule="step", ramp_epochs=1))
    device = torch.device("cpu")
    loader = Loader(
        torch.from_numpy(data.samples),
        mask,
        views_of(data),
        normaliser(data.input_shape, data.mean, data.std, device),
        method.config.view_names,
        batch_size=32,
        seed=0,
    )
    return method, loader


def test_the_encoder_alone_computes_in_half_precision(toy_dataset: Dataset) -> None:
    method, loader = small_papi(toy_dataset, torch.bfloat16)
    batch = next(loader.epoch(0))
    output = method.network(batch.views[0])
    assert output.features.dtype == output.logits.dtype == torch.float32
    assert torch.equal(output.features, output.features.bfloat16().float())  # rounded by the encoder
    assert not torch.equal(output.logits, output.logits.bfloat16().float())
    assert method.network.project(output.features).dtype == torch.float32
    for event in fit(method, loader, None):
        assert isinstance(event, engine.Event)
    kept = {name: value.dtype for name, value in method.state_dict().items() if value.is_floating_point()}
    assert set(kept.values()) == {torch.float32}


@pytest.mark.parametrize("name", METHODS)
def test_losses_are_computed_in_float32(name: str, toy_dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    answers, losses, original = set(), set(), engine.train_step

    def watched(*arguments: Any) -> Any:
        output = original(*arguments)
        answers.add(output.logits.dtype)
        losses.update({output.loss.dtype, *(each.dtype for each in output.logs.values())})
        return output

    monkeypatch.setattr(engine, "train_step", watched)
    train(toy_dataset, replace(CONFIG, epochs=1, method=name, option=("queue=64",) if name == "pico" else ()))
    assert (answers, losses) == ({torch.float32}, {torch.float32})


@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_in_bf16(name: str, toy_dataset: Dataset) -> None:
    """Rounded to 8 bits, losses of a short run stay within a few percent of those in float32."""
    config = replace(CONFIG, method=name, option=("queue=64",) if name == "pico" else ())
    half, full = (
        train(toy_dataset, replace(config, precision=precision))[-1].trained.method for precision in ("bf16", "fp32")
    )
    assert isinstance(half, Method)
    weights = [torch.cat([p.detach().flatten() for p in each.network.parameters()]) for each in (half, full)]
    assert torch.isfinite(weights[0]).all()
    assert not torch.equal(*weights)
    assert (weights[0] - weights[1]).norm() < 0.2 * weights[1].norm()


def test_a_run_in_bf16_goes_on_bit_equal(toy_dataset: Dataset, tmp_path: Path) -> None:
    train(toy_dataset, folder=tmp_path / "whole")
    train(toy_dataset, folder=tmp_path / "parts", stop_after=2)
    train(toy_dataset, folder=tmp_path / "parts")
    whole, parts = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts"))
    assert whole == parts


def test_the_results_are_those_of_the_saved_model(toy_dataset: Dataset, tmp_path: Path) -> None:
    """Epochs are measured in bf16; the model is saved, and its results are measured, in float32."""
    *_, finished = train(toy_dataset, replace(CONFIG, epochs=3), tmp_path / "run")
    model = papi.load(tmp_path / "run")
    probabilities = model.predict_proba(toy_dataset.test_samples)
    np.testing.assert_array_equal(RunFolder(tmp_path / "run").read_arrays().test_probabilities, probabilities)
    assert finished.summary.test_accuracy == np.mean(probabilities.argmax(1) == toy_dataset.test_labels)
    assert finished.summary.test_accuracy_last == finished.summary.test_accuracy
    assert finished.trained.method.network.autocast is None


def fit(method: PaPi, loader: Loader, scaler: Any, resume: Any = None, stop_after: int = 10**9) -> list[engine.Event]:
    settings = complete(CONFIG, features=False, sets_given=False).optim
    asked = iter(range(10**9))
    return list(
        engine.fit(
            method,
            loader,
            build_optimizer(method, settings),
            learning_rate(settings),
            epochs=2,
            evaluate=lambda _: engine.Measured(),
            scaler=scaler,
            resume=resume,
            stop_requested=lambda: next(asked) + 1 >= stop_after,
        )
    )


def test_the_scaler_of_fp16_is_in_the_checkpoint(toy_dataset: Dataset) -> None:
    """On the CPU for want of a GPU: the first scale overflows, so it is halved, and a resumed run knows that."""

    def scaler() -> torch.amp.GradScaler:
        return torch.amp.GradScaler("cpu", init_scale=2.0**40, growth_interval=2)

    def last(events: list[engine.Event]) -> dict[str, Any]:
        return next(event.state for event in reversed(events) if isinstance(event, Snapshot))

    whole = last(fit(*small_papi(toy_dataset, torch.float16), scaler()))
    assert whole["scaler"]["scale"] < 2.0**40
    part = last(fit(*small_papi(toy_dataset, torch.float16), scaler(), stop_after=2))
    assert (part["epoch"], part["step"]) == (0, 2)
    end = last(fit(*small_papi(toy_dataset, torch.float16), scaler(), resume=part))
    assert end["scaler"] == whole["scaler"]
    for name, value in whole["method"].items():
        assert torch.equal(end["method"][name], value), name


def test_a_scaled_step_equals_a_plain_one(toy_dataset: Dataset) -> None:
    """In float32 a scale of a power of two changes no bit."""
    scaled, plain = small_papi(toy_dataset, None), small_papi(toy_dataset, None)
    fit(*scaled, torch.amp.GradScaler("cpu", init_scale=2.0**8, growth_interval=10**6))
    fit(*plain, None)
    for name, value in plain[0].state_dict().items():
        assert torch.equal(scaled[0].state_dict()[name], value), name


def test_fp16_on_a_cpu_is_refused(toy_npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--data", toy_npz, "--precision", "fp16", "--device", "cpu", "--out", tmp_path / "run")
    assert papi_exit_code("train", *arguments) == 2
    assert "--precision fp16 needs a GPU" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_precision_and_compiling_make_another_run() -> None:
    first, second = to_dict(CONFIG), to_dict(replace(CONFIG, precision="fp32", compile=True))
    assert set(differences(first, second)) == {"precision", "compile"}


def test_compiling_needs_a_compiler(toy_dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(UserError, match="needs the C\\+\\+ compiler no-such-compiler"):
        train(toy_dataset, replace(CONFIG, compile=True))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the compiler, about itself
def test_a_compiled_encoder_gives_the_same_up_to_rounding(toy_dataset: Dataset) -> None:
    config = replace(CONFIG, precision="fp32", epochs=1)
    compiled, plain = (
        train(toy_dataset, replace(config, compile=c))[-1].trained.method.state_dict() for c in (True, False)
    )
    assert list(compiled) == list(plain)
    for name, value in plain.items():
        torch.testing.assert_close(compiled[name], value, rtol=1e-3, atol=1e-4)
