"""A trained network in use: what it answers, and what it refuses."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import outside_networks
import papi
from model_files import CLASSES, write_model
from outside_networks import NETWORK, WIDTH, new_module, plain
from papi import train as run
from papi.config import RunConfig
from papi.data import candidates as generators
from papi.data.dataset import Dataset
from papi.errors import UserError
from papi.networks import build
from papi.runs.folder import RunFolder
from papi.runs.model import ModelCard, save_model
from papi.training.evaluation import evaluate


def images(count: int, shape: tuple[int, ...] = (1, 8, 8)) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (count, *shape), np.uint8)


def train_toy(dataset: Dataset, folder: Path, network: str | None = None) -> RunFolder:
    assert dataset.labels is not None
    mask = generators.uniform(dataset.labels, 4, 0.3, 0)
    settings = run.settings_for(RunConfig(data="toy", epochs=2, batch_size=20, network=network), dataset)
    list(run.fit(dataset, mask, settings, RunFolder(folder)))
    return RunFolder(folder)


@pytest.mark.parametrize("network", [None, NETWORK])
def test_the_model_file_alone_predicts(network: str | None, toy_dataset: Dataset, tmp_path: Path) -> None:
    """What training has measured at its end, bit for bit."""
    folder = train_toy(toy_dataset, tmp_path / "run", network)
    assert toy_dataset.test_samples is not None
    with np.load(folder.arrays_file) as arrays:
        stored = arrays["test_probabilities"]
    alone = tmp_path / "elsewhere.safetensors"
    shutil.copy(folder.model_file, alone)
    for place in (folder.path, alone, str(alone)):
        model = papi.load(place)
        np.testing.assert_array_equal(model.predict_proba(toy_dataset.test_samples), stored)
    names = model.predict(toy_dataset.test_samples)
    assert names.tolist() == [toy_dataset.class_names[k] for k in stored.argmax(1)]


class TestAnswers:
    def test_layouts_of_images(self, tmp_path: Path) -> None:
        model = papi.load(write_model(tmp_path))
        samples = images(10)
        expected = model.predict_proba(samples)
        np.testing.assert_array_equal(model.predict_proba(samples[:, 0]), expected)
        np.testing.assert_array_equal(model.predict_proba(samples.transpose(0, 2, 3, 1)), expected)
        fixed = samples[:, 0].copy()
        fixed.flags.writeable = False
        np.testing.assert_array_equal(model.predict_proba(fixed), expected)

    def test_probabilities_and_names(self, tmp_path: Path) -> None:
        model = papi.load(write_model(tmp_path))
        probabilities = model.predict_proba(images(10))
        assert probabilities.shape == (10, len(CLASSES))
        np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-6)
        assert model.class_names == CLASSES
        assert model.predict(images(10)).tolist() == [CLASSES[k] for k in probabilities.argmax(1)]

    def test_one_batch_without_checks(self, tmp_path: Path) -> None:
        model = papi.load(write_model(tmp_path, temperature=2.0))
        np.testing.assert_allclose(model.probabilities(images(10)), model.predict_proba(images(10)), atol=1e-6)

    def test_nothing_is_asked(self, tmp_path: Path) -> None:
        model = papi.load(write_model(tmp_path))
        assert model.predict(images(0)).shape == (0,)
        assert model.predict_proba(images(0)).shape == (0, len(CLASSES))

    def test_features(self, tmp_path: Path) -> None:
        model = papi.load(write_model(tmp_path, "mlp", (5,)))
        rows = np.random.default_rng(0).normal(0.5, 0.3, (10, 5))
        np.testing.assert_array_equal(model.predict_proba(rows), model.predict_proba(rows.astype(np.float32)))

    def test_embedding_is_on_the_unit_sphere(self, tmp_path: Path) -> None:
        embedding = papi.load(write_model(tmp_path)).embed(images(10))
        assert embedding.shape == (10, 64)
        np.testing.assert_allclose(np.linalg.norm(embedding, axis=1), 1, atol=1e-5)

    def test_evaluation_changes_nothing(self, tmp_path: Path) -> None:
        model = papi.load(write_model(tmp_path))
        model.network.train()
        before = {name: value.clone() for name, value in model.network.state_dict().items()}
        evaluate(model.network, torch.from_numpy(images(10)), model._normalise)
        assert model.network.training
        assert all(torch.equal(value, before[name]) for name, value in model.network.state_dict().items())


class TestMistakes:
    def test_wrong_images(self, tmp_path: Path) -> None:
        model = papi.load(write_model(tmp_path))
        with pytest.raises(UserError, match="float64: use uint8"):
            model.predict(np.zeros((2, 8, 8)))
        with pytest.raises(UserError, match="shape"):
            model.predict(np.zeros((2, 8), np.uint8))

    def test_wrong_features(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match=r"\(4,\) \(features\), but this model needs \(5,\)"):
            papi.load(write_model(tmp_path, "mlp", (5,))).predict(np.zeros((2, 4)))

    def test_wrong_files(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="does not exist"):
            papi.load(tmp_path / "nothing")
        (tmp_path / "model.safetensors").write_bytes(b"not a model at all")
        with pytest.raises(UserError, match="not a model of PaPi"):
            papi.load(tmp_path)


class TestNetworksFromOutside:
    def write(self, file: Path, network: str, shape: tuple[int, ...] = (1, 8, 8)) -> Path:
        torch.manual_seed(0)
        built = build(plain, shape, len(CLASSES), project=True)
        save_model(file, built, ModelCard(network, CLASSES, shape, (0.5,), (0.2,), projects=True))
        return file

    def test_answers(self, tmp_path: Path) -> None:
        model = papi.load(self.write(tmp_path / "model.safetensors", NETWORK))
        assert model.predict_proba(images(7)).shape == (7, len(CLASSES))
        assert model.embed(images(7)).shape == (7, 128)
        assert model.network.classifier.in_features == WIDTH
        assert set(model.predict(images(7))) <= set(CLASSES)

    def test_a_name_alone_imports_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        name = new_module(tmp_path, "from outside_networks import plain", monkeypatch)
        file = self.write(tmp_path / "model.safetensors", f"{name}:plain")
        with pytest.raises(UserError, match="code from outside PaPi") as raised:
            papi.load(file)
        assert f"{name}:plain" in str(raised.value)
        assert name not in sys.modules

    def test_named_again_it_is_imported(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        name = new_module(tmp_path, "from outside_networks import plain", monkeypatch)
        file = self.write(tmp_path / "model.safetensors", f"{name}:plain")
        model = papi.load(file, network=f"{name}:plain")
        assert name in sys.modules
        known = papi.load(self.write(tmp_path / "known.safetensors", NETWORK))
        np.testing.assert_array_equal(model.predict_proba(images(5)), known.predict_proba(images(5)))

    @pytest.mark.parametrize("network", [plain, lambda shape: plain(shape), plain((1, 8, 8))])
    def test_the_code_itself_may_be_given(self, network: nn.Module, tmp_path: Path) -> None:
        """Weights come from the file, whatever weights the given module has."""
        model = papi.load(self.write(tmp_path / "model.safetensors", "long.gone:plain"), network=network)
        known = papi.load(self.write(tmp_path / "known.safetensors", NETWORK))
        np.testing.assert_array_equal(model.predict_proba(images(5)), known.predict_proba(images(5)))

    def test_code_that_does_not_fit(self, tmp_path: Path) -> None:
        file = self.write(tmp_path / "model.safetensors", NETWORK)
        with pytest.raises(UserError, match="do not match the network outside_networks:Tied") as raised:
            papi.load(file, network=outside_networks.Tied)
        assert NETWORK in str(raised.value)
        with pytest.raises(UserError, match="do not match the network small"):
            papi.load(file, network="small")
