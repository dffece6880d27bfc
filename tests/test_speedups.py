"""Whole steps with and without each thing that makes them fast: each test says if results are bit-equal or rounded.

Operations on images are compared with Pillow's in `data/`, prototypes with a loop in `test_state.py`, all of it at once
with a plain step in `benchmarks/`.
"""

import copy
import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d, pixel_unshuffle

from papi.data.dataset import ViewRecipe
from papi.data.loader import Loader
from papi.data.views.images import ImageViews, NormaliseImages
from papi.methods.losses import candidate_prediction, kl_divergence, mixed_kl_divergence
from papi.methods.packed import PackedConfidence, packed
from papi.methods.papi import PaPi
from papi.methods.papi_settings import PaPiConfig
from papi.methods.prior import Prior, weighed
from papi.methods.set_prior import SetPrior
from papi.networks import Network, Output, build
from papi.networks.small import SmallResNet
from papi.randomness import draws
from papi.training.engine import train_step
from papi.training.evaluation import evaluate
from papi.types import Batch, Progress

MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)


class Training:
    """A few steps of PaPi; `state` afterwards is all that was learned and remembered.

    Steps amplify rounding. Where it differs, they are made in double precision: then a difference that is not rounding
    shows.
    """

    def __init__(self, double: bool = False) -> None:
        random = np.random.default_rng(0)
        self.images = torch.from_numpy(random.integers(0, 256, (48, 3, 16, 16), np.uint8))
        mask = torch.from_numpy(random.random((48, 6)) < 0.4)
        mask[torch.arange(48), torch.arange(48) % 6] = True
        torch.manual_seed(0)
        self.method = PaPi(
            build("small", (3, 16, 16), 6, project=True), mask, PaPiConfig(schedule="step", ramp_epochs=1)
        )
        self.method = self.method.double() if double else self.method
        self.dtype = torch.float64 if double else torch.float32
        self.layout, self.fused = torch.channels_last, True

    def run(self) -> "Training":
        views = ImageViews(ViewRecipe(policy="cifar10", cutout=6))
        loader = Loader(
            self.images,
            self.method.candidates,
            views,
            self.prepare,
            self.method.config.view_names,
            batch_size=16,
            seed=0,  # type: ignore[arg-type]
        )
        optimizer = torch.optim.SGD(self.method.parameters(), lr=0.05, momentum=0.9, nesterov=True, fused=self.fused)
        for epoch in range(2):
            for step, batch in enumerate(loader.epoch(epoch)):
                train_step(self.method, optimizer, 0.05, batch, Progress(epoch, 2, step, len(loader), 0))
        return self

    def prepare(self, images: Tensor) -> Tensor:
        normalised = NormaliseImages(MEAN, STD, torch.device("cpu"))(images)
        return normalised.to(self.dtype).contiguous(memory_format=self.layout)

    @property
    def state(self) -> dict[str, Tensor]:
        return self.method.state_dict()


def require_equal(first: Training, second: Training) -> None:
    for name, value in first.state.items():
        assert torch.equal(second.state[name], value), name


def require_close(first: Training, second: Training) -> None:
    for name, value in first.state.items():
        torch.testing.assert_close(second.state[name], value, rtol=1e-6, atol=1e-8)


def test_memory_layout_of_weights_and_images() -> None:
    """Rounding: convolutions sum in another order."""
    plain = Training(double=True)
    plain.method.network.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    plain.layout = torch.contiguous_format
    require_close(plain.run(), Training(double=True).run())


def test_fused_optimizer() -> None:
    """Rounding: it adds and multiplies in one go."""
    plain = Training(double=True)
    plain.fused = False
    require_close(plain.run(), Training(double=True).run())


def test_silent_set_prior_is_not_computed() -> None:
    """Bit-equal for sets of up to 40 labels: a prior of weight zero would weight each candidate by exactly one."""
    random = np.random.default_rng(0)
    sets = torch.zeros(200, 60, dtype=torch.bool)
    for row in sets:
        row[torch.from_numpy(random.choice(60, random.integers(1, 41), replace=False))] = True
    logits, prior = 10 * torch.randn(200, 60), Prior()
    prior.sets = SetPrior(60, "auto")
    batch, start = Batch(torch.arange(200), (), sets), Progress(0, 10, 0, 1, seed=0)
    computed = weighed(sets, prior.sets.log_weights(sets), sets)
    assert computed.dtype == torch.float32
    skipped = prior.weigh(batch, logits, sets, start)
    assert skipped is sets
    for one, other in zip(candidate_prediction(logits, computed), candidate_prediction(logits, skipped), strict=True):
        assert torch.equal(one, other)
    prior.sets.weight.fill_(0.5)
    assert prior.weigh(batch, logits, sets, start).dtype == torch.float32


class AllGraphs(PaPi):
    """Keeps the graph of every pass."""

    def further_passes(
        self, first: Output, views: Sequence[Tensor], mixed: Callable[..., list[Tensor]], learning: bool
    ) -> tuple[list[Output], list[Tensor]]:
        return [first, self.network(views[1])], [self.network.encode(view) for view in mixed(*views)]


def test_clean_strong_view_without_graph() -> None:
    """Bit-equal: nothing learns from that pass; its graph would only take memory."""
    plain = Training()
    plain.method.__class__ = AllGraphs
    require_equal(plain.run(), Training().run())


def test_no_classifier_on_mixtures() -> None:
    """Bit-equal: its answers about mixtures were never used."""
    plain = Training()
    plain.method.network.encode = lambda images: plain.method.network(images).features  # type: ignore[method-assign]
    require_equal(plain.run(), Training().run())


class PlainSmall(nn.Module):
    """The small encoder with activations that leave their input as it is."""

    def __init__(self, source: SmallResNet) -> None:
        super().__init__()
        self.source = source

    def forward(self, images: Tensor) -> Tensor:
        def block(part: nn.Module, x: Tensor) -> Tensor:
            return torch.relu(part.norm(part.conv(x)))

        def pair(parts: nn.Sequential, x: Tensor) -> Tensor:
            return block(parts[1], block(parts[0], x))

        source = self.source
        x = block(source.stem, pixel_unshuffle(images, 2))
        x = max_pool2d(block(source.widen1, x), 2)
        x = x + pair(source.residual1, x)
        x = max_pool2d(block(source.widen2, x), 2)
        return (x + pair(source.residual2, x)).amax((2, 3))


def test_activations_in_place() -> None:
    """Bit-equal: the backward pass needs what they give, not what they get."""
    fast, plain = Training(), Training()
    encoder = plain.method.network.encoder
    assert isinstance(encoder, SmallResNet)
    plain.method.network.encoder = PlainSmall(encoder)
    plain.run()
    plain.method.network.encoder = encoder
    require_equal(fast.run(), plain)


def literal(images: Tensor) -> Tensor:
    """Rounding apart, what is fed to a network: (x / 255 - mean) / std."""
    mean, std = (torch.tensor(each)[:, None, None] for each in (MEAN, STD))
    return ((images.float() / 255 - mean) / std).contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("channels", [1, 3])
def test_normalisation(channels: int) -> None:
    """Rounding: one multiplication and one addition instead of two divisions and a subtraction; layout as asked."""
    images = torch.randint(256, (5, channels, 6, 7), dtype=torch.uint8)
    ours = NormaliseImages(MEAN[:channels], STD[:channels], torch.device("cpu"))(images)
    torch.testing.assert_close(ours, literal(images)[:, :channels], rtol=0, atol=2e-6)
    assert ours.is_contiguous(memory_format=torch.channels_last)


def test_packed_confidence() -> None:
    """Bit-equal: the same arithmetic on fewer entries."""
    dense, sparse = Training(), Training()
    sparse.method.confidence = PackedConfidence(packed(sparse.method.candidates))
    dense.run()
    sparse.run()
    assert torch.equal(sparse.method.confidence.all_rows, dense.method.confidence.all_rows)
    for mine, theirs in zip(sparse.method.network.parameters(), dense.method.network.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def plainly(network: Network, images: Tensor, prepare: Callable[[Tensor], Tensor]) -> Tensor:
    network.eval()
    return torch.cat([network(prepare(part)).logits.softmax(1) for part in torch.split(images, 16)]).detach()


def test_evaluation_in_large_batches_without_graph() -> None:
    """Rounding: the layout, and the size of the batches."""
    training = Training()
    plain = copy.deepcopy(training.method.network).to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    normalise = NormaliseImages(MEAN, STD, torch.device("cpu"))
    ours = evaluate(training.method.network, training.images, normalise).probabilities
    torch.testing.assert_close(ours, plainly(plain, training.images, lambda x: literal(x).contiguous()))


def test_one_divergence_without_mixture() -> None:
    """Bit-equal: the other one had no weight."""
    target, partner = (torch.rand(8, 5).softmax(1) for _ in range(2))
    ours, theirs = (torch.linspace(-3, 3, 40).view(8, 5).requires_grad_() for _ in range(2))
    mixed = mixed_kl_divergence(target, partner, 1.0, ours)
    both = 1.0 * kl_divergence(target, theirs) + 0.0 * kl_divergence(partner, theirs)
    assert torch.equal(mixed, both)
    assert torch.equal(*(torch.autograd.grad(loss, logits)[0] for loss, logits in ((mixed, ours), (both, theirs))))


@pytest.mark.parametrize("stream", [f"stream {number}" for number in range(10)])  # below and above 2**63
def test_key_without_a_seed_of_the_system(stream: str) -> None:
    """Bit-equal: numpy drew that seed, but did not use it."""
    name = int.from_bytes(hashlib.sha256(stream.encode()).digest()[:8], "little")
    plain = np.random.Generator(np.random.Philox(key=[7, name], counter=[0, 0, 3, 2]))
    assert np.array_equal(draws(7, stream, 2, 3).random(9), plain.random(9))
