"""An exported model answers like the model it comes from, in the program it is meant for."""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import papi
from command import papi_exit_code
from model_files import CLASSES, write_model
from outside_networks import Branching, FixedBatch, Tied, of_table, plain, with_dropout
from papi.errors import UserError
from papi.export import formats as exporting
from papi.export.formats import FORMATS, export
from papi.inference import Model
from papi.networks import Factory, Network, build, reference
from papi.networks.wide_resnet import WideResNet
from papi.runs.model import ModelCard, save_model

Out = pytest.CaptureFixture[str]


def images(count: int, shape: tuple[int, ...] = (1, 8, 8)) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (count, *shape), np.uint8)


def in_batches(answer: Any, samples: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([answer(samples[k : k + size]) for k in range(0, len(samples), size)])


def session(file: Path) -> Any:
    import onnxruntime

    return onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])


def test_onnx_in_its_runtime(tmp_path: Path, capsys: Out) -> None:
    """1,000 images one by one, by 7 and by 64: the size of the batch is open, and the last one is smaller."""
    run = write_model(tmp_path / "run")
    assert papi_exit_code("export", run, "--format", "onnx") == 0
    said = capsys.readouterr()
    file = run / "exported" / "model.onnx"
    assert str(file) in said.out
    assert said.out.splitlines()[-1].startswith("Next: onnxruntime.InferenceSession(")
    assert said.err == ""
    assert [each.name for each in file.parent.iterdir()] == ["model.onnx"]
    opened = session(file)
    (given,), (gives,) = opened.get_inputs(), opened.get_outputs()
    assert (given.name, given.type, given.shape[1:]) == ("images", "tensor(uint8)", [1, 8, 8])
    assert (gives.name, gives.type, gives.shape[1:]) == ("probabilities", "tensor(float)", [4])
    samples = images(1000)
    expected = papi.load(run).predict_proba(samples)
    assert expected.std(0).min() > 0.01, "a model that says the same of everything would prove nothing"
    for size in (1, 7, 64):
        found = in_batches(lambda part: opened.run(None, {"images": part})[0], samples, size)
        np.testing.assert_allclose(found, expected, atol=1e-4, rtol=0)
    assert json.loads(opened.get_modelmeta().custom_metadata_map["papi"])["class_names"] == list(CLASSES)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_calibrated_model_stays_so(tmp_path: Path, kind: str) -> None:
    """By itself `export` only compares with the model, so that is looked at, too: alone, and a batch at a time."""
    plain, calibrated = (papi.load(write_model(tmp_path / str(t), temperature=t)) for t in (1.0, 2.5))
    samples = images(20)
    powers = plain.predict_proba(samples) ** (1 / 2.5)
    expected = powers / powers.sum(1, keepdims=True)
    assert np.abs(expected - plain.predict_proba(samples)).max() > 0.02
    np.testing.assert_allclose(calibrated.predict_proba(samples), expected, atol=1e-5)
    np.testing.assert_allclose(calibrated.probabilities(samples), expected, atol=1e-5)
    assert export(calibrated, kind, tmp_path / f"exported{FORMATS[kind].suffix}") < 1e-4


@pytest.mark.parametrize("kind", ["pt2", "torchscript", "safetensors"])
def test_other_formats(tmp_path: Path, kind: str, capsys: Out) -> None:
    """Also what it says of using the file, which is done here."""
    run = write_model(tmp_path / "run", shape=(3, 8, 8))
    file = tmp_path / "elsewhere" / f"mine{FORMATS[kind].suffix}"
    assert papi_exit_code("export", run / "model.safetensors", "--format", kind, "--out", file) == 0
    samples = images(130, (3, 8, 8))
    expected = papi.load(run).predict_proba(samples)
    said = capsys.readouterr()
    assert said.err == ""
    names = {"papi": papi, "torch": torch, "images": samples if kind == "safetensors" else torch.from_numpy(samples)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of TorchScript as such
        used = eval(said.out.splitlines()[-1].removeprefix("Next: "), names)
    np.testing.assert_allclose(np.asarray(used), expected, atol=1e-4, rtol=0)
    extra = {"papi": ""}
    if kind == "pt2":
        module = torch.export.load(file, extra_files=extra).module()
    elif kind == "torchscript":
        with pytest.warns(DeprecationWarning, match=r"torch\.jit\.load"):
            module = torch.jit.load(file, _extra_files=extra)
    else:
        np.testing.assert_array_equal(papi.load(file).predict_proba(samples), expected)
        return
    for size in (1, 7, 64):
        found = in_batches(lambda part: module(torch.from_numpy(part)).numpy(), samples, size)
        np.testing.assert_allclose(found, expected, atol=1e-4, rtol=0)
    card = extra["papi"]
    assert json.loads(card)["class_names"] == list(CLASSES)


_NETWORKS_AND_SHAPES = [("small", (1, 9, 7)), ("resnet18", (1, 8, 8)), ("mlp", (5,)), ("wide-resnet", (3, 8, 8))]


@pytest.mark.parametrize(("network", "shape"), _NETWORKS_AND_SHAPES)
def test_every_network(tmp_path: Path, network: str, shape: tuple[int, ...]) -> None:
    """The wide network has 36 million weights; its structure is the same in a small one."""
    if network == "wide-resnet":
        torch.manual_seed(0)
        built = Network(WideResNet(shape, depth=10, widen=1), 64, len(CLASSES), None)
        card = ModelCard(network, CLASSES, shape, (0.5, 0.4, 0.3), (0.2, 0.25, 0.3), projects=False)
        model = Model(built, card, torch.device("cpu"))
    else:
        model = papi.load(write_model(tmp_path / "run", network, shape))
    export(model, "onnx", tmp_path / "model.onnx")
    opened = session(tmp_path / "model.onnx")
    features = np.random.default_rng(0).normal(0.5, 0.3, (70, *shape)).astype(np.float32)
    samples = features if network == "mlp" else images(70, shape)
    name = "features" if network == "mlp" else "images"
    expected = model.predict_proba(samples)
    for size in (1, 7, 64):
        found = in_batches(lambda part: opened.run(None, {name: part})[0], samples, size)
        np.testing.assert_allclose(found, expected, atol=1e-4, rtol=0)


@pytest.mark.slow
def test_the_wide_network_itself(tmp_path: Path) -> None:
    run = write_model(tmp_path / "run", "wide-resnet", (3, 8, 8))
    assert papi_exit_code("export", run) == 0


def test_a_file_that_answers_otherwise_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The preprocessing is spoilt a little, as a fault in an exporter would."""
    model = papi.load(write_model(tmp_path / "run"))
    plain = exporting.Whole.forward
    monkeypatch.setattr(exporting.Whole, "forward", lambda self, samples: plain(self, samples + 3))
    (tmp_path / "old.pt").write_text("the file of before")
    with pytest.raises(UserError, match=r"torchscript export was not written.* from the model's by up to \d"):
        export(model, "torchscript", tmp_path / "old.pt")
    assert (tmp_path / "old.pt").read_text() == "the file of before"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["old.pt", "run"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nowhere",), "nowhere/model.safetensors does not exist"),
        (("run", "--hub-folder", "full"), "full is not an empty folder"),
        (("run", "--hub-folder", "new", "--out", "x.onnx"), "--out and --hub-folder cannot be used together"),
        (("run", "--format", "torchscript", "--out", "full/file.txt/x.pt"), "cannot be written"),
        (("run", "--format", "pt2", "--out", "m.onnx"), ".pt2"),
        (("run", "--format", "pt2", "--out", "m.pt"), ".pt2"),
        (("run", "--format", "pt2", "--out", "m"), ".pt2"),
        (("run", "--format", "torchscript", "--out", "m.PT2"), ".torchscript.pt"),
        (("run", "--format", "safetensors", "--out", "m.pt"), ".safetensors"),
    ],
)
def test_mistakes_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out, arguments: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(Path("run"))
    Path("full").mkdir()
    Path("full/file.txt").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    arguments = arguments if "--format" in arguments else (*arguments, "--format", "safetensors")
    if arguments[0] == "nowhere":
        Path("nowhere").mkdir()
        before = sorted(tmp_path.rglob("*"))
    assert papi_exit_code("export", *arguments) == 2
    said = capsys.readouterr().err
    assert says in said
    assert len(said.strip().splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    run = write_model(tmp_path / "run")
    monkeypatch.setattr(exporting, "find_spec", lambda name: None if name == "onnxruntime" else object())
    assert papi_exit_code("export", run, "--format", "onnx") == 2
    assert capsys.readouterr().err == "papi: --format onnx needs onnxruntime: run pip install 'papi-pll[onnx]'.\n"
    assert not (run / "exported").exists()


def outside(file: Path, factory: Factory, shape: tuple[int, ...] = (1, 8, 8)) -> Model:
    """A model with a network that is not PaPi's own, from a file."""
    torch.manual_seed(0)
    built = build(factory, shape, len(CLASSES), project=True)
    with torch.no_grad():
        built.classifier.weight.mul_(8)
    mean, std = (0.4,) * shape[0], (0.2,) * shape[0]
    save_model(file, built, ModelCard(reference(factory), CLASSES, shape, mean, std, projects=True))
    return papi.load(file)


class TestNetworksFromOutside:
    @pytest.mark.parametrize(
        ("factory", "shape", "kind"),
        [
            *((plain, (1, 8, 8), kind) for kind in FORMATS),
            *((with_dropout, (3, 8, 8), kind) for kind in FORMATS if kind != "onnx"),  # below, in its runtime
            *((Tied, (3, 8, 8), kind) for kind in ("pt2", "torchscript", "safetensors")),
            *((of_table, (5,), kind) for kind in FORMATS),
        ],
    )
    def test_every_format(self, tmp_path: Path, factory: Factory, shape: tuple[int, ...], kind: str) -> None:
        """Without batch-norm, with dropout, with lazy layers, with tied weights, for rows of features."""
        model = outside(tmp_path / "model.safetensors", factory, shape)
        file = tmp_path / f"exported{FORMATS[kind].suffix}"
        assert export(model, kind, file) < 1e-4
        assert file.exists()

    def test_onnx_in_its_runtime(self, tmp_path: Path) -> None:
        model = outside(tmp_path / "model.safetensors", with_dropout, (3, 8, 8))
        export(model, "onnx", tmp_path / "model.onnx")
        samples = images(70, (3, 8, 8))
        opened = session(tmp_path / "model.onnx")
        for size in (1, 7, 64):
            found = in_batches(lambda part: opened.run(None, {"images": part})[0], samples, size)
            np.testing.assert_allclose(found, model.predict_proba(samples), atol=1e-4, rtol=0)
        card = json.loads(opened.get_modelmeta().custom_metadata_map["papi"])
        assert card["network"] == "outside_networks:with_dropout"

    def test_weights_for_others(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also of code that was given as such and lies elsewhere than the file says."""
        outside(tmp_path / "first.safetensors", plain)
        moved = papi.load(tmp_path / "first.safetensors", network=lambda shape: plain(shape))
        monkeypatch.delitem(sys.modules, "outside_networks")
        export(moved, "safetensors", tmp_path / "second.safetensors")
        assert "outside_networks" not in sys.modules
        assert (tmp_path / "second.safetensors").read_bytes() == (tmp_path / "first.safetensors").read_bytes()

    @pytest.mark.parametrize(
        ("factory", "kind", "says"),
        [
            (Branching, "onnx", "Branching cannot be exported as onnx"),
            (Branching, "pt2", "Branching cannot be exported as pt2"),
            (Branching, "torchscript", "torchscript export was not written"),  # it traces, and answers otherwise
            (FixedBatch, "pt2", "FixedBatch cannot be exported as pt2"),
            (FixedBatch, "torchscript", "torchscript export was not written"),
        ],
    )
    def test_what_cannot_be_exported(self, factory: Factory, kind: str, says: str, tmp_path: Path, capfd: Out) -> None:
        """One sentence; the file of before stays, and nothing lies beside it."""
        model = outside(tmp_path / "model.safetensors", factory)
        file = tmp_path / f"old{FORMATS[kind].suffix}"
        file.write_text("the file of before")
        with pytest.raises(UserError, match=says) as raised:
            export(model, kind, file)
        assert "\n" not in str(raised.value)
        assert len(str(raised.value)) < 700
        assert file.read_text() == "the file of before"
        assert sorted(each.name for each in tmp_path.iterdir()) == ["model.safetensors", file.name]
        assert capfd.readouterr() == ("", "")

    def test_as_weights_it_can_be(self, tmp_path: Path) -> None:
        model = outside(tmp_path / "model.safetensors", Branching)
        assert export(model, "safetensors", tmp_path / "exported.safetensors") == 0

    def test_a_network_without_a_name(self, tmp_path: Path) -> None:
        """Its weights alone would be of no use; a format that holds the whole of it takes it."""
        built = build(lambda shape: plain(shape), (1, 8, 8), len(CLASSES), project=False)
        card = ModelCard(None, CLASSES, (1, 8, 8), (0.4,), (0.2,), projects=False)
        model = Model(built, card, torch.device("cpu"))
        with pytest.raises(UserError, match="no importable name"):
            export(model, "safetensors", tmp_path / "exported.safetensors")
        assert list(tmp_path.iterdir()) == []
        assert export(model, "torchscript", tmp_path / "exported.torchscript.pt") < 1e-4


def test_a_model_without_answers_is_not_exported(tmp_path: Path) -> None:
    """NaN equals nothing, not even itself."""
    model = papi.load(write_model(tmp_path / "run"))
    with torch.no_grad():
        model.network.classifier.bias.fill_(torch.nan)
    with pytest.raises(UserError, match="not finite"):
        export(model, "torchscript", tmp_path / "model.torchscript.pt")
    assert [each.name for each in tmp_path.iterdir()] == ["run"]
