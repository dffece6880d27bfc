"""1×1 convolutions of single photos are computed by oneDNN, with the same results."""

import pytest
import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from papi.networks.pointwise import fast_pointwise


def network() -> nn.Sequential:
    torch.manual_seed(0)
    layers = (
        nn.Conv2d(3, 32, 3, stride=2, padding=1),
        nn.Conv2d(32, 48, 1, bias=False),
        nn.ReLU(),
        nn.Conv2d(48, 16, 1, stride=2),
        nn.Conv2d(16, 16, 3, padding="same", groups=16),
        nn.Conv2d(16, 64, 1, padding="same"),
    )
    return nn.Sequential(*layers).eval().to(memory_format=torch.channels_last)


@pytest.mark.parametrize("batch", [1, 9, 20])
@torch.inference_mode()
def test_outputs_are_equal_up_to_rounding(batch: int) -> None:
    plain, images = network(), torch.randn(batch, 3, 64, 64)
    expected = plain(images)
    with fast_pointwise(plain):
        found = plain(images)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert plain(images).equal(expected)


def test_the_network_is_as_before_even_after_an_error() -> None:
    plain = network()
    before = repr(plain)
    with fast_pointwise(plain):
        assert repr(plain) != before
    with pytest.raises(ZeroDivisionError), fast_pointwise(plain):
        raise ZeroDivisionError
    assert repr(plain) == before


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")
def test_one_thread_uses_onednn() -> None:
    plain, threads = network(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with fast_pointwise(plain):
            assert "aten::_slow_conv2d_forward" not in used(plain, torch.randn(9, 3, 64, 64))
    finally:
        torch.set_num_threads(threads)


@torch.inference_mode()
def used(module: nn.Module, images: Tensor) -> set[str]:
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        module(images)
    return {event.key for event in seen.key_averages()}
