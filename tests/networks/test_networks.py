import pytest
import torch

from papi.errors import UserError
from papi.networks import build


def test_resnet18_has_the_papers_size() -> None:
    network = build("resnet18", 3, 10, project=False)
    assert sum(p.numel() for p in network.parameters()) == 11_173_962
    with_projector = build("resnet18", 3, 10, project=True)
    assert sum(p.numel() for p in with_projector.parameters()) == 11_173_962 + (512 * 512 + 512) + (512 * 128 + 128)


@pytest.mark.parametrize(("size", "last"), [(28, 4), (32, 4), (64, 8)])
def test_resnet18_strides(size: int, last: int) -> None:
    encoder = build("resnet18", 3, 10, project=False).encoder
    x = encoder.stem(torch.zeros(1, 3, size, size))
    assert x.shape == (1, 64, size, size)
    assert encoder.stages(x).shape == (1, 512, last, last)


def test_resnet18_replicates_grey() -> None:
    network = build("resnet18", 1, 10, project=False).eval()
    grey = torch.rand(2, 1, 28, 28)
    with torch.no_grad():
        torch.testing.assert_close(network(grey).logits, network(grey.repeat(1, 3, 1, 1)).logits)


def test_resnet18_initialisation() -> None:
    torch.manual_seed(0)
    weight = build("resnet18", 3, 10, project=False).encoder.stages[3][1].conv2.weight
    assert weight.std().item() == pytest.approx((2 / (512 * 9)) ** 0.5, rel=0.01)


def test_small_is_small() -> None:
    network = build("small", 1, 10, project=True)
    assert sum(p.numel() for p in network.parameters()) < 300_000
    assert network(torch.zeros(2, 1, 28, 28)).logits.shape == (2, 10)


@pytest.mark.parametrize("name", ["small", "resnet18"])
@pytest.mark.parametrize("size", [(1, 1), (4, 6), (7, 8), (33, 75)])
def test_images_of_any_size(name: str, size: tuple[int, int]) -> None:
    network = build(name, 3, 5, project=False).train()
    logits = network(torch.rand(2, 3, *size)).logits
    assert logits.shape == (2, 5)
    logits.sum().backward()


def test_small_repeats_the_border_of_odd_images() -> None:
    network = build("small", 1, 5, project=False).eval()
    odd = torch.rand(2, 1, 11, 9)
    even = torch.cat([odd, odd[:, :, -1:]], 2)
    even = torch.cat([even, even[:, :, :, -1:]], 3)
    with torch.no_grad():
        assert network(odd).logits.equal(network(even).logits)


@pytest.mark.parametrize("name", ["small", "resnet18"])
@pytest.mark.parametrize("channels", [1, 3])
def test_projection_is_on_the_unit_sphere(name: str, channels: int) -> None:
    network = build(name, channels, 7, project=True)
    output = network(torch.randn(4, channels, 16, 16))
    projection = network.project(output.features)
    assert projection.shape == (4, network.projection)
    torch.testing.assert_close(projection.norm(dim=1), torch.ones(4))


@pytest.mark.parametrize("name", ["small", "resnet18", "mlp"])
def test_an_empty_batch_teaches_nothing(name: str) -> None:
    """A process has one where a batch has fewer images than there are processes."""
    network = build(name, 3, 7, project=True)
    before = {key: value.clone() for key, value in network.named_buffers() if "running" in key}
    output = network(torch.zeros(0, 3) if name == "mlp" else torch.zeros(0, 3, 16, 16))
    assert output.logits.shape == (0, 7)
    (output.logits.sum() + network.project(output.features).sum()).backward()
    assert not any(parameter.grad is None or parameter.grad.any() for parameter in network.parameters())
    assert [key for key, value in network.named_buffers() if key in before and not value.equal(before[key])] == []


def test_unknown_network_suggests_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'resnet18'"):
        build("resnet", 3, 10, project=False)
