"""Photos with a frozen encoder, from a folder to answers: an encoder that is small enough to be quick."""

import json
import pickle
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import load_file

import papi
import tiny_encoder
from command import papi_exit_code
from papi.config import RunConfig, Tune
from papi.errors import UserError
from papi.export.formats import FORMATS, export
from papi.networks.pretrained import load_pretrained
from papi.runs.folder import RunFolder
from papi.runs.model import ENCODER, read_weights
from papi.setup.encoder import with_tuning
from papi.train import EpochEnded, Finished, Stopped, train

CLASSES, EACH, EPOCHS = ("blue", "green", "red"), 8, 4


def write_photos(folder: Path) -> Path:
    """Photos of different sizes, each mostly of the colour that its folder is named after."""
    random = np.random.default_rng(3)
    for number, name in enumerate(CLASSES):
        (folder / name).mkdir(parents=True)
        for each in range(EACH):
            height, width = random.integers(20, 50, 2)
            pixels = random.integers(0, 90, (height, width, 3))
            pixels[..., 2 - number] += 150
            Image.fromarray(pixels.astype(np.uint8)).save(folder / name / f"{each}.png")
    return folder


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_photos(tmp_path_factory.mktemp("data") / "photos")


def config(photos: Path) -> RunConfig:
    return RunConfig(data=str(photos), network=tiny_encoder.NAME, epochs=EPOCHS, threads=1, device="cpu")


def trained(settings: RunConfig, folder: Path, stop: Callable[[], bool] = lambda: False) -> list[object]:
    return list(train(settings, folder, stop))


@pytest.fixture(scope="module")
def run(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert isinstance(trained(config(photos), folder)[-1], Finished)
    return folder


@pytest.fixture
def model(run: Path) -> papi.Model:
    return papi.load(run)  # this process has imported the encoder's module


class TestTraining:
    def test_what_is_recorded(self, run: Path) -> None:
        record = RunFolder(run).read_record()
        assert record is not None
        assert record.config["tune"] == "head"
        assert record.preparation == load_pretrained(tiny_encoder.NAME).preparation
        assert record.identity["encoder"]["checksum"] == load_pretrained(tiny_encoder.NAME).checksum

    def test_the_same_once_more_is_bit_equal(self, run: Path, photos: Path, tmp_path: Path) -> None:
        trained(config(photos), tmp_path)
        assert (tmp_path / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()

    def test_stopped_and_continued_is_bit_equal(self, run: Path, photos: Path, tmp_path: Path) -> None:
        seen: list[object] = []
        events = train(config(photos), tmp_path, lambda: any(isinstance(each, EpochEnded) for each in seen))
        for event in events:
            seen.append(event)
        assert isinstance(seen[-1], Stopped)
        assert isinstance(trained(config(photos), tmp_path)[-1], Finished)
        assert (tmp_path / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()

    def test_stopped_while_embedding(self, photos: Path, tmp_path: Path) -> None:
        asked = replace(config(photos), data_size=20)  # nothing is known of photos at this size
        assert trained(asked, tmp_path / "run", lambda: True)[-1] == Stopped(0, 0)
        assert not (tmp_path / "run" / "config.json").exists()

    def test_images_in_an_array(self, toy_npz: Path, tmp_path: Path) -> None:
        done = trained(replace(config(toy_npz), epochs=1), tmp_path)[-1]
        assert isinstance(done, Finished)
        assert papi.load(tmp_path).predict(np.zeros((2, 30, 40, 3), np.uint8)).shape == (2,)

    def test_a_photo_that_cannot_be_read(
        self, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = write_photos(tmp_path / "photos")
        whole = (folder / "red" / "5.png").read_bytes()
        (folder / "red" / "5.png").write_bytes(whole[: len(whole) // 2])
        arguments = ("train", "--data", folder, "--network", tiny_encoder.NAME, "--out", tmp_path / "run")
        assert papi_exit_code(*arguments) == 2
        assert "5.png" in capsys.readouterr().err
        assert not (tmp_path / "run" / "config.json").exists()


class TestOptions:
    def test_a_head_is_what_is_trained(self) -> None:
        assert with_tuning(RunConfig(network="timm:resnet18")).tune == "head"
        assert with_tuning(RunConfig(network="timm:resnet18", tune="all")).tune == "all"
        assert with_tuning(RunConfig()).tune is None

    @pytest.mark.parametrize("option", [{"tune": "head"}, {"weights": "none"}, {"head": "mlp"}])
    def test_options_without_an_encoder(self, option: dict[str, str]) -> None:
        with pytest.raises(UserError, match="pretrained"):
            with_tuning(RunConfig(**option))

    def test_features_are_no_photos(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "f.npz", features=np.zeros((6, 4), np.float32), labels=np.arange(6) % 2)
        with pytest.raises(UserError, match="needs photos"):
            trained(config(tmp_path / "f.npz"), tmp_path / "run")


class TestModel:
    def test_photos_in_every_form(self, model: papi.Model, photos: Path) -> None:
        files = sorted(photos.rglob("*.png"))
        expected = model.predict_proba(files)
        assert expected.shape == (len(files), len(CLASSES))
        pictures = [Image.open(file) for file in files]
        np.testing.assert_array_equal(model.predict_proba(photos), expected)
        np.testing.assert_array_equal(model.predict_proba([str(file) for file in files]), expected)
        np.testing.assert_array_equal(model.predict_proba(pictures), expected)
        np.testing.assert_array_equal(model.predict_proba([np.asarray(each) for each in pictures]), expected)
        np.testing.assert_allclose(model.predict_proba(files[4])[0], expected[4], rtol=1e-5)
        np.testing.assert_allclose(model.predict_proba(np.asarray(pictures[4]))[0], expected[4], rtol=1e-5)
        np.testing.assert_allclose(model.predict_proba(model.prepare(files)), expected, rtol=1e-5)
        assert model.embed(files[:2]).shape[0] == 2

    def test_commands_agree_with_it(self, run: Path, model: papi.Model, photos: Path, tmp_path: Path) -> None:
        out = tmp_path / "answers.jsonl"
        assert papi_exit_code("predict", run, photos, "--out", out, "--network", tiny_encoder.NAME) == 0
        answers = [json.loads(line) for line in out.read_text().splitlines()]
        assert [each["label"] for each in answers] == model.predict([each["file"] for each in answers]).tolist()

    def test_evaluate_report_and_labels(self, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert papi_exit_code("evaluate", run, "--network", tiny_encoder.NAME) == 0
        summary = RunFolder(run).read_summary()
        assert summary is not None
        assert summary.test_accuracy is not None
        said = capsys.readouterr().out
        assert f"{summary.test_accuracy:.2%}" in said
        assert "may have changed" not in said
        assert papi_exit_code("report", run) == 0
        assert "data:image" in (run / "report.html").read_text()
        assert papi_exit_code("labels", run) == 0

    def test_a_person_decides_and_it_is_trained_on(self, run: Path, tmp_path: Path) -> None:
        (tmp_path / "decisions.csv").write_text("index,label\n0,red\n")
        arguments = ("--fix", tmp_path / "decisions.csv", "--out", tmp_path / "fixed")
        assert papi_exit_code("labels", run, *arguments, "--network", tiny_encoder.NAME) == 0
        assert papi.load(tmp_path / "fixed").preparation == papi.load(run).preparation

    def test_the_weights_are_in_the_file_once(self, run: Path) -> None:
        whole = load_file(run / "model.safetensors")
        own = {name for name in whole if name.startswith(ENCODER)}
        assert len(own) == len(tiny_encoder.encoder((3, 16, 16)).state_dict())
        assert read_weights(run)[0].keys() == whole.keys() - own

    def test_missing_and_hostile_photos(self, model: papi.Model, tmp_path: Path) -> None:
        (tmp_path / "bad.jpg").write_bytes(b"no photo")
        for given in (tmp_path / "bad.jpg", tmp_path / "missing.jpg", [], 3, np.zeros((2, 8, 8))):
            with pytest.raises(UserError):
                model.predict(given)


@pytest.mark.parametrize("kind", ["onnx", "safetensors"])
def test_exported_models_hold_the_encoder(kind: str, model: papi.Model, photos: Path, tmp_path: Path) -> None:
    file = tmp_path / f"model{FORMATS[kind].suffix}"
    export(model, kind, file)
    answer = FORMATS[kind].read(model, file)
    files = sorted(photos.rglob("*.png"))
    np.testing.assert_allclose(answer(model.prepare(files)), model.predict_proba(files), atol=1e-4)


@pytest.fixture(scope="module")
def files_and_sets(photos: Path) -> tuple[list[Path], list[set[str]]]:
    files = sorted(photos.rglob("*.png"))
    labels = [file.parent.name for file in files]
    return files, [{label, CLASSES[(CLASSES.index(label) + k) % 3]} for k, label in enumerate(labels)]


@pytest.mark.parametrize("tune", ["head", "all"])
def test_the_estimator_tunes_a_module_like_a_name(
    tune: Tune, files_and_sets: tuple[list[Path], list[set[str]]]
) -> None:
    files, sets = files_and_sets
    module = tiny_encoder.encoder((3, tiny_encoder.input_size, tiny_encoder.input_size))
    for name in ("input_size", "mean", "std", "interpolation"):
        setattr(module, name, getattr(tiny_encoder, name))
    before = deepcopy(module.state_dict())
    fitted = [
        papi.PartialLabelClassifier(network=network, tune=tune, epochs=2, device="cpu").fit(files, sets)
        for network in (tiny_encoder.NAME, module)
    ]
    named, given = (each.predict_proba(files) for each in fitted)
    np.testing.assert_array_equal(given, named)
    assert all(value.equal(before[name]) for name, value in module.state_dict().items())  # a copy was trained


@pytest.mark.parametrize(
    ("network", "tune", "said"),
    [
        (tiny_encoder.NAME, "whole", "tune must be"),
        (tiny_encoder.encoder, "head", "tune needs"),
        ("mlp", "head", "mlp"),
    ],
)
def test_the_estimator_refuses_what_it_cannot_tune(
    network: Any, tune: Any, said: str, files_and_sets: tuple[list[Path], list[set[str]]]
) -> None:
    with pytest.raises(ValueError, match=said):
        papi.PartialLabelClassifier(network=network, tune=tune).fit(*files_and_sets)


def test_the_estimator_takes_photos(files_and_sets: tuple[list[Path], list[set[str]]]) -> None:
    files, sets = files_and_sets
    estimator = papi.PartialLabelClassifier(network=tiny_encoder.NAME, epochs=EPOCHS, device="cpu").fit(files, sets)
    probabilities = estimator.predict_proba([Image.open(file) for file in files])
    assert probabilities.shape == (len(files), len(CLASSES))
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(again.predict_proba([str(file) for file in files]), probabilities)
