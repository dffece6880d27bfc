"""An exported model answers like the model it comes from, in the program it is meant for."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import papi
from command import papi_exit_code
from model_files import CLASSES, write_model
from papi.errors import UserError
from papi.export import formats as exporting
from papi.export.formats import FORMATS, export
from papi.inference import Model
from papi.networks import Network
from papi.networks.wide_resnet import WideResNet
from papi.runs.model import ModelCard

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
        built = Network(WideResNet(3, depth=10, widen=1), 64, len(CLASSES), None)
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
    with pytest.raises(UserError, match=r"gives other probabilities, by up to .*nothing was written"):
        export(model, "torchscript", tmp_path / "old.pt")
    assert (tmp_path / "old.pt").read_text() == "the file of before"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["old.pt", "run"]


@pytest.mark.parametrize("kind", ["onnx", "safetensors"])
def test_hub_folder(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    from run_folders import write_run

    folder = write_run(tmp_path / "run").path
    write_model(folder)
    hub = tmp_path / "hub"
    assert papi_exit_code("export", folder, "--format", kind, "--hub-folder", hub) == 0
    exported = {"onnx/model.onnx"} if kind == "onnx" else set()
    assert "Next: add a licence to" in capsys.readouterr().out
    found = {str(each.relative_to(hub)) for each in hub.rglob("*") if each.is_file()}
    assert found == {"README.md", "config.json", "model.safetensors", ".gitattributes"} | exported
    config = json.loads((hub / "config.json").read_text())
    assert [config["id2label"][str(k)] for k in range(4)] == list(CLASSES)
    assert config["label2id"] == {name: k for k, name in enumerate(CLASSES)}
    assert (config["num_channels"], config["height"], config["width"]) == (1, 8, 8)
    card = (hub / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: papi-pll\npipeline_tag: image-classification\n")
    matter = card.split("---\n")[1]
    assert "value: 0.8000" in matter
    assert all(re.fullmatch(r"[ -]*([\w-]+:( (\"[^\"]*\"|[\w.-]+))?|[\w-]+)", line) for line in matter.splitlines())
    assert "- method: papi" in card
    assert "- accuracy on test samples: 0.8000" in card
    programs = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    assert len(programs) == (1 if kind == "safetensors" else 2)
    monkeypatch.chdir(hub)
    for program in programs:
        capsys.readouterr()
        exec(program, {})
        assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nowhere",), "nowhere/model.safetensors does not exist"),
        (("run", "--hub-folder", "full"), "full is not an empty folder"),
        (("run", "--hub-folder", "new", "--out", "x.onnx"), "exclude each other"),
        (("run", "--format", "torchscript", "--out", "full/file.txt/x.pt"), "cannot be written"),
        (
            ("run", "--format", "pt2", "--out", "m.onnx"),
            "--out m.onnx is not a name for --format pt2: let it end in .pt2",
        ),
        (("run", "--format", "pt2", "--out", "m.pt"), "let it end in .pt2"),
        (("run", "--format", "pt2", "--out", "m"), "let it end in .pt2"),
        (("run", "--format", "torchscript", "--out", "m.PT2"), "let it end in .torchscript.pt"),
        (("run", "--format", "safetensors", "--out", "m.pt"), "let it end in .safetensors"),
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
    assert capsys.readouterr().err == "papi: --format onnx needs onnxruntime: pip install 'papi-pll[onnx]'\n"
    assert not (run / "exported").exists()
