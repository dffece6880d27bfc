"""Shared by all tests: one thread, so that results do not depend on how many tests run at a time."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings

from papi.data.dataset import Dataset, ViewRecipe

torch.set_num_threads(1)
settings.register_profile("any machine", deadline=None)  # how long an example takes depends on what else is running
settings.load_profile("any machine")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the cache of the person who runs it."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("PAPI_CACHE", str(folder))
    return folder


@pytest.fixture
def toy_dataset() -> Dataset:
    return make_toy_dataset()


def make_toy_dataset(classes: int = 4, train: int = 96, test: int = 40, seed: int = 0) -> Dataset:
    """Noisy 8x8 images with a bright bar whose place tells the class: learned in a few epochs."""
    random = np.random.default_rng(seed)

    def split(count: int) -> tuple[np.ndarray, np.ndarray]:
        labels = np.arange(count) % classes
        images = random.integers(0, 80, (count, 1, 8, 8))
        for image, label in zip(images, labels, strict=True):
            image[0, 2 * label : 2 * label + 2] += 150
        return images.astype(np.uint8), labels.astype(np.int64)

    images, labels = split(train)
    test_images, test_labels = split(test)
    return Dataset(
        name="toy",
        class_names=tuple(f"bar {k}" for k in range(classes)),
        images=images,
        labels=labels,
        test_images=test_images,
        test_labels=test_labels,
        mean=(0.25,),
        std=(0.25,),
        recipe=ViewRecipe(flip=True, crop_padding=0, cutout=2),
    )


@pytest.fixture
def toy_npz(tmp_path: Path) -> Path:
    """The toy data as a file of one's own, with true labels."""
    return write_toy_npz(tmp_path / "toy.npz")


@pytest.fixture(scope="session")
def lasting_toy_npz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for tests that share what they have trained; nobody changes it."""
    return write_toy_npz(tmp_path_factory.mktemp("toy") / "toy.npz")


def write_toy_npz(path: Path) -> Path:
    data = make_toy_dataset()
    np.savez(
        path,
        images=data.images,
        labels=data.labels,
        test_images=data.test_images,
        test_labels=data.test_labels,
        class_names=np.array(data.class_names),
    )
    return path
