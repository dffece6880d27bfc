import pytest
import torch

from papi.networks import build
from papi.networks.resnet import BasicBlock, ResNet18


def test_it_has_the_papers_size() -> None:
    network = build("resnet18", (3, 32, 32), 10, project=False)
    assert sum(p.numel() for p in network.parameters()) == 11_173_962
    with_projector = build("resnet18", (3, 32, 32), 10, project=True)
    assert sum(p.numel() for p in with_projector.parameters()) == 11_173_962 + (512 * 512 + 512) + (512 * 128 + 128)


@pytest.mark.parametrize(("size", "last"), [(28, 4), (32, 4), (64, 8)])
def test_strides(size: int, last: int) -> None:
    encoder = ResNet18((3, size, size))
    x = encoder.stem(torch.zeros(1, 3, size, size))
    assert x.shape == (1, 64, size, size)
    assert encoder.stages(x).shape == (1, 512, last, last)


@pytest.mark.parametrize("size", [(1, 1), (4, 6), (33, 75)])
def test_images_of_any_size(size: tuple[int, int]) -> None:
    network = build("resnet18", (3, *size), 5, project=False).train()
    logits = network(torch.rand(2, 3, *size)).logits
    assert logits.shape == (2, 5)
    logits.sum().backward()


def test_grey_images_are_replicated() -> None:
    network = build("resnet18", (1, 28, 28), 10, project=False).eval()
    grey = torch.rand(2, 1, 28, 28)
    with torch.no_grad():
        torch.testing.assert_close(network(grey).logits, network(grey.repeat(1, 3, 1, 1)).logits)


def test_initialisation() -> None:
    torch.manual_seed(0)
    block = ResNet18().stages[3][1]  # type: ignore[index]
    assert block.conv2.weight.std().item() == pytest.approx((2 / (512 * 9)) ** 0.5, rel=0.01)


@pytest.mark.parametrize(("channels", "stride"), [(4, 1), (4, 2), (8, 1), (8, 2)])
def test_a_block_by_hand(channels: int, stride: int) -> None:
    """ReLU of two convolutions plus the shortcut, which is the input itself where the shape stays."""
    torch.manual_seed(1)
    block = BasicBlock(4, channels, stride).eval()
    x = torch.randn(2, 4, 6, 6)
    with torch.no_grad():
        residual = block.norm2(block.conv2(torch.relu(block.norm1(block.conv1(x)))))
        same = channels == 4 and stride == 1
        expected = torch.relu(residual + (x if same else block.shortcut(x)))
        torch.testing.assert_close(block(x.clone()), expected)
    assert len(block.shortcut) == (0 if same else 2)
    assert expected.shape == (2, channels, 6 // stride, 6 // stride)
