"""Shared by all tests: one thread, so that results do not depend on how many tests run at a time."""

import signal
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from papi.data.dataset import Dataset
from toy_data import make_toy_dataset, write_toy_npz

torch.set_num_threads(1)
# A shell that starts tests in the background ignores Ctrl-C for them, and tests of Ctrl-C would then wait forever.
signal.signal(signal.SIGINT, signal.default_int_handler)
# How long an example takes depends on what else is running. The same examples every time: what passed passes again.
settings.register_profile("same examples", deadline=None, derandomize=True)
settings.register_profile("new examples", deadline=None)  # pytest --hypothesis-profile "new examples"
settings.load_profile("same examples")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the cache of the person who runs it."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("PAPI_CACHE", str(folder))
    return folder


@pytest.fixture
def toy_dataset() -> Dataset:
    return make_toy_dataset()


@pytest.fixture
def toy_npz(tmp_path: Path) -> Path:
    """The toy data as a file of one's own, with true labels."""
    return write_toy_npz(tmp_path / "toy.npz")


@pytest.fixture(scope="session")
def lasting_toy_npz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for tests that share what they have trained; nobody changes it."""
    return write_toy_npz(tmp_path_factory.mktemp("toy") / "toy.npz")
