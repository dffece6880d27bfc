import pytest
import torch

from papi.networks.wide_resnet import WideResNet


def test_it_has_the_published_size() -> None:
    """WRN-28-10 has 36.5 million parameters."""
    encoder = WideResNet((3, 32, 32))
    assert sum(p.numel() for p in encoder.parameters()) == pytest.approx(36.5e6, rel=0.005)


@pytest.mark.parametrize(("depth", "widen"), [(10, 1), (16, 2)])
def test_depth_and_width(depth: int, widen: int) -> None:
    encoder = WideResNet((3, 16, 16), depth=depth, widen=widen)
    convolutions = [m for m in encoder.modules() if isinstance(m, torch.nn.Conv2d) and m.kernel_size == (3, 3)]
    assert len(convolutions) == depth - 3  # the classifier and two shortcuts are counted with the depth
    assert encoder(torch.rand(2, 3, 16, 16)).shape == (2, 64 * widen)


def test_dropout_counts_in_training_alone() -> None:
    torch.manual_seed(0)
    encoder = WideResNet((1, 8, 8), depth=10, widen=1, dropout=0.5)
    images = torch.rand(4, 1, 8, 8)
    with torch.no_grad():
        assert not encoder.train()(images).equal(encoder(images))
        assert encoder.eval()(images).equal(encoder(images))
