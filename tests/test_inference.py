import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import papi
from papi import train as run
from papi.config import RunConfig
from papi.data import candidates as generators
from papi.data.dataset import Dataset
from papi.errors import UserError
from papi.runs.folder import RunFolder
from papi.training.engine import evaluate


@pytest.fixture
def trained(toy_dataset: Dataset, tmp_path: Path) -> tuple[Path, Dataset]:
    assert toy_dataset.labels is not None
    mask = generators.uniform(toy_dataset.labels, 4, 0.3, 0)
    list(run.fit(toy_dataset, mask, RunConfig(data="toy", epochs=2, batch_size=20), RunFolder(tmp_path / "run")))
    return tmp_path / "run", toy_dataset


def test_the_model_file_alone_predicts(trained: tuple[Path, Dataset], tmp_path: Path) -> None:
    folder, data = trained
    assert data.test_samples is not None
    stored = RunFolder(folder).read_arrays(folder / "arrays.npz")["test_probabilities"]
    alone = tmp_path / "elsewhere.safetensors"
    shutil.copy(folder / "model.safetensors", alone)
    for place in (folder, alone, str(alone)):
        model = papi.load(place)
        np.testing.assert_array_equal(model.predict_proba(data.test_samples), stored)
    names = model.predict(data.test_samples)
    assert names.tolist() == [data.class_names[k] for k in stored.argmax(1)]


def test_layouts_of_images(trained: tuple[Path, Dataset]) -> None:
    folder, data = trained
    model = papi.load(folder)
    assert data.test_samples is not None
    expected = model.predict_proba(data.test_samples)
    np.testing.assert_array_equal(model.predict_proba(data.test_samples[:, 0]), expected)
    np.testing.assert_array_equal(model.predict_proba(data.test_samples.transpose(0, 2, 3, 1)), expected)
    fixed = data.test_samples[:, 0].copy()
    fixed.flags.writeable = False
    np.testing.assert_array_equal(model.predict_proba(fixed), expected)
    assert model.predict(data.test_samples[:0]).shape == (0,)


def test_embedding_is_on_the_unit_sphere(trained: tuple[Path, Dataset]) -> None:
    folder, data = trained
    assert data.test_samples is not None
    embedding = papi.load(folder).embed(data.test_samples)
    np.testing.assert_allclose(np.linalg.norm(embedding, axis=1), 1, atol=1e-5)


def test_evaluation_changes_nothing(trained: tuple[Path, Dataset]) -> None:
    folder, data = trained
    model = papi.load(folder)
    model.network.train()
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    evaluate(model.network, torch.from_numpy(data.samples), model._normalise)
    assert model.network.training
    assert all(torch.equal(value, before[name]) for name, value in model.network.state_dict().items())


def test_wrong_images_are_explained(trained: tuple[Path, Dataset]) -> None:
    model = papi.load(trained[0])
    with pytest.raises(UserError, match="float64: give uint8"):
        model.predict(np.zeros((2, 8, 8)))
    with pytest.raises(UserError, match=r"\(1, 9, 9\).*takes \(1, 8, 8\)"):
        model.predict(np.zeros((2, 9, 9), np.uint8))
    with pytest.raises(UserError, match="shape"):
        model.predict(np.zeros((2, 8), np.uint8))


def test_wrong_files_are_explained(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        papi.load(tmp_path / "nothing")
    (tmp_path / "model.safetensors").write_bytes(b"not a model at all")
    with pytest.raises(UserError, match="not a model of PaPi"):
        papi.load(tmp_path)
