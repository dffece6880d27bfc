"""Folders for the Hugging Face Hub: read back by its own library, and used as their model cards say."""

import json
import re
import socket
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
from huggingface_hub import ModelCard
from hypothesis import given, settings
from hypothesis import strategies as st

import papi
from command import papi_exit_code
from model_files import CLASSES, write_model
from papi.config import RunConfig, to_dict
from papi.errors import UserError
from papi.export import hub
from papi.runs.folder import RunFolder
from papi.runs.schema import ParentRecord, Record, Summary

Out = pytest.CaptureFixture[str]
CONFIG = to_dict(RunConfig(method="papi", network="small", epochs=3, seed=5))
RECORD = Record(config=CONFIG, identity=CONFIG, candidates={"mean_candidates": 2.345})
SUMMARY = Summary(
    method="papi",
    dataset="data",
    seconds=9.0,
    epochs=3,
    test_accuracy=0.79996,
    disambiguation_accuracy=0.9,
    training_images=120,
)


def write_run(folder: Path) -> Path:
    """A run with a model, as far as an export looks at it."""
    write_model(folder)
    run = RunFolder(folder)
    run.write_record(RECORD)
    run.write_summary(SUMMARY)
    return folder


@pytest.fixture
def model(tmp_path: Path) -> papi.inference.Model:
    return papi.load(write_model(tmp_path / "run"))


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever calls home is found out."""

    def refuse(*_: object) -> NoReturn:
        raise AssertionError("something went to the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def files(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize("kind", ["onnx", "safetensors", "pt2", "torchscript"])
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # of TorchScript as such
@pytest.mark.usefixtures("offline")
def test_the_folder_of_a_run(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    """What the card says of using the files is done here."""
    run, folder = write_run(tmp_path / "run"), tmp_path / "hub"
    assert papi_exit_code("export", run, "--format", kind, "--hub-folder", folder) == 0
    said = capsys.readouterr()
    assert "Next: add a licence to" in said.out
    assert said.err == ""
    assert files(folder) == {"README.md", "config.json", "model.safetensors", ".gitattributes", hub.place(kind)}
    programs = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    assert len(programs) == (1 if kind == "safetensors" else 2)
    monkeypatch.chdir(folder)
    for program in programs:
        exec(program, {})
        assert capsys.readouterr().out


def test_what_the_hub_reads_of_the_card(model: papi.inference.Model, tmp_path: Path) -> None:
    hub.write_hub_folder(model, "safetensors", tmp_path / "hub", "mine", RECORD, SUMMARY)
    data = ModelCard.load(tmp_path / "hub" / "README.md").data
    assert (data.library_name, data.pipeline_tag, data.metrics) == ("papi-pll", "image-classification", ["accuracy"])
    assert "partial-label-learning" in data.tags
    assert data.model_name == "mine"
    (result,) = data.eval_results
    assert (result.task_type, result.dataset_name, result.metric_type) == ("image-classification", "data", "accuracy")
    assert result.metric_value == 0.8


def test_what_people_read_of_the_card(model: papi.inference.Model, tmp_path: Path) -> None:
    parent = ParentRecord(folder="/home/me/runs/first", model="0" * 64)
    record = replace(RECORD, parent=parent)
    hub.write_hub_folder(model, "safetensors", tmp_path / "hub", "mine", record, SUMMARY)
    text = ModelCard.load(tmp_path / "hub" / "README.md").text
    assert "# mine\n" in text
    known = (
        "method: papi",
        "network: small",
        "epochs: 3",
        "seed: 5",
        "training samples: 120",
        "candidate labels: 2.35",
    )
    for fact in (*known, "test accuracy: 0.8000", "the true label: 0.9000", "the run: first"):
        assert fact in text
    assert "/home/me" not in text, "where files lie is nobody's business"
    assert "None" not in text


def test_a_model_without_its_run(model: papi.inference.Model, tmp_path: Path) -> None:
    hub.write_hub_folder(model, "safetensors", tmp_path / "hub", "mine", None, None)
    card = ModelCard.load(tmp_path / "hub" / "README.md")
    assert "There is no information about the training." in card.text
    assert card.data.to_dict().keys() == {"library_name", "pipeline_tag", "tags"}


def test_a_run_without_true_labels(model: papi.inference.Model, tmp_path: Path) -> None:
    unknown = replace(SUMMARY, test_accuracy=None, disambiguation_accuracy=None)
    hub.write_hub_folder(model, "safetensors", tmp_path / "hub", "mine", RECORD, unknown)
    card = ModelCard.load(tmp_path / "hub" / "README.md")
    assert card.data.eval_results is None
    assert "accuracy" not in card.text


def test_settings_for_programs(model: papi.inference.Model, tmp_path: Path) -> None:
    hub.write_hub_folder(model, "safetensors", tmp_path / "hub", "mine", RECORD, SUMMARY)
    config = json.loads((tmp_path / "hub" / "config.json").read_text())
    assert [config["id2label"][str(k)] for k in range(4)] == list(CLASSES)
    assert config["label2id"] == {name: k for k, name in enumerate(CLASSES)}
    assert (config["num_channels"], config["height"], config["width"]) == (1, 8, 8)
    assert config["num_labels"] == 4
    assert config["library_version"] == papi.__version__


def test_a_model_of_features(tmp_path: Path) -> None:
    model = papi.load(write_model(tmp_path / "run", "mlp", (5,)))
    hub.write_hub_folder(model, "safetensors", tmp_path / "hub", "mine", RECORD, SUMMARY)
    card = ModelCard.load(tmp_path / "hub" / "README.md")
    assert card.data.pipeline_tag == "tabular-classification"
    assert "float32 features" in card.text
    assert json.loads((tmp_path / "hub" / "config.json").read_text())["num_features"] == 5


NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=30)


@settings(max_examples=10)
@given(name=NAMES, dataset=NAMES)
@pytest.mark.usefixtures("offline")
def test_awkward_names(lasting_model: papi.inference.Model, name: str, dataset: str) -> None:
    """Signs that mean something in YAML or Markdown are names here."""
    summary = replace(SUMMARY, dataset=dataset)
    with tempfile.TemporaryDirectory() as place:
        hub.write_hub_folder(lasting_model, "safetensors", Path(place, "hub"), name, RECORD, summary)
        card = ModelCard.load(Path(place, "hub", "README.md"))
    assert card.data.model_name == name
    assert card.data.eval_results[0].dataset_name == dataset
    assert len(re.findall(r"^#+ ", card.text, re.MULTILINE)) == 5, "no name begins a section of its own"


@pytest.fixture(scope="module")
def lasting_model(tmp_path_factory: pytest.TempPathFactory) -> papi.inference.Model:
    return papi.load(write_model(tmp_path_factory.mktemp("model")))


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    run = write_run(tmp_path / "run")
    monkeypatch.setattr(hub, "find_spec", lambda name: None if name == "huggingface_hub" else object())
    assert papi_exit_code("export", run, "--format", "safetensors", "--hub-folder", tmp_path / "hub") == 2
    assert capsys.readouterr().err == "papi: --hub-folder needs huggingface_hub: run pip install 'papi-pll[hub]'.\n"
    assert not (tmp_path / "hub").exists()


def test_an_empty_folder_is_filled(model: papi.inference.Model, tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    hub.write_hub_folder(model, "safetensors", tmp_path / "hub", "mine", None, None)
    assert "README.md" in files(tmp_path / "hub")


@pytest.mark.parametrize("place", ["full", "full/file.txt", "full/file.txt/new"])
def test_what_is_in_the_way_stays(model: papi.inference.Model, tmp_path: Path, place: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file.txt").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=r"Choose another with --hub-folder|choose another with --hub-folder"):
        hub.write_hub_folder(model, "safetensors", tmp_path / place, "mine", None, None)
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "full/file.txt").read_text() == "mine"


def test_a_failed_export_leaves_nothing(
    model: papi.inference.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoilt(*_: object) -> NoReturn:
        raise UserError("it answers otherwise")

    monkeypatch.setattr(hub, "export", spoilt)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match="it answers otherwise"):
        hub.write_hub_folder(model, "onnx", tmp_path / "hub", "mine", None, None)
    assert sorted(tmp_path.rglob("*")) == before
