"""What large images take: an estimate of the right size, and silence about small ones."""

import numpy as np
import pytest
import torch
from PIL import Image

from papi.data.dataset import Dataset
from papi.data.images.photos import Photos
from papi.methods.proden import PRODEN, PRODENConfig
from papi.networks import build
from papi.networks.preparation import Preparation
from papi.training.memory import large_image_notes, step_bytes

CPU = torch.device("cpu")


def method(side: int) -> PRODEN:
    network = build("small", (3, side, side), 4, project=False)
    return PRODEN(network, torch.ones(10, 4, dtype=torch.bool), PRODENConfig())


def test_an_estimate_of_what_autograd_keeps() -> None:
    """Against the tensors that a forward pass saves for its backward pass."""
    built, kept = method(128), {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        output = built.network(torch.zeros(8, 3, 128, 128))
    del output
    guess = step_bytes(built, (3, 128, 128), 8, CPU)
    assert 0.7 * sum(kept.values()) < guess < 3 * sum(kept.values())
    assert step_bytes(built, (3, 128, 128), 16, CPU) == pytest.approx(2 * guess)
    assert built.network.training


@pytest.mark.parametrize(("side", "told"), [(96, False), (128, True)])
def test_large_images_are_told(side: int, told: bool) -> None:
    images = np.zeros((10, 3, side, side), np.uint8)
    notes = large_image_notes(Dataset("images", ("a",) * 4, images, (), ()), method(side), 5, CPU)
    assert len(notes) == told
    photos = Photos([Image.new("RGB", (150, 140)) for _ in range(10)], Preparation(size=side))
    data = Dataset("photos", ("a",) * 4, np.arange(10), (), (), photos=photos)
    assert len(large_image_notes(data, method(side), 5, CPU)) == told


def test_features_are_not_large_images() -> None:
    table = np.zeros((10, 3, 1280), np.float16)
    assert large_image_notes(Dataset("table", ("a", "b"), table, (), ()), method(8), 5, CPU) == ()
