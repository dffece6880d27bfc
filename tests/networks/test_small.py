import pytest
import torch

from papi.networks import build


def test_it_is_small() -> None:
    network = build("small", (1, 28, 28), 10, project=True)
    assert sum(p.numel() for p in network.parameters()) < 300_000
    assert network(torch.zeros(2, 1, 28, 28)).logits.shape == (2, 10)


@pytest.mark.parametrize("size", [(1, 1), (4, 6), (7, 8), (33, 75)])
def test_images_of_any_size(size: tuple[int, int]) -> None:
    network = build("small", (3, *size), 5, project=False).train()
    logits = network(torch.rand(2, 3, *size)).logits
    assert logits.shape == (2, 5)
    logits.sum().backward()


def test_the_border_of_odd_images_is_repeated() -> None:
    network = build("small", (1, 11, 9), 5, project=False).eval()
    odd = torch.rand(2, 1, 11, 9)
    even = torch.cat([odd, odd[:, :, -1:]], 2)
    even = torch.cat([even, even[:, :, :, -1:]], 3)
    with torch.no_grad():
        assert network(odd).logits.equal(network(even).logits)


def test_every_pixel_counts() -> None:
    """Also those on the border and in the corners."""
    network = build("small", (1, 9, 9), 5, project=False).eval()
    image = torch.rand(1, 1, 9, 9, requires_grad=True)
    network(image).features.square().sum().backward()
    assert image.grad is not None
    assert image.grad.count_nonzero() > 60  # of 81: max-pooling leaves some out
