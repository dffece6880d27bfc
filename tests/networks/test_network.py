"""Encoder, classifier and projector together, for the package's own encoders and for those from outside."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

from outside_networks import NETWORK, WIDTH, Tied, of_table, plain, with_dropout
from papi.errors import UserError
from papi.networks import NETWORKS, Factory, Network, build, compile_encoders, folded, require_compiler
from papi.networks.linear import Linear
from papi.networks.mlp import MLP
from papi.networks.network import arranged
from papi.networks.resnet import ResNet18
from papi.networks.small import SmallResNet
from papi.networks.trial import feature_width
from papi.networks.wide_resnet import WideResNet

IMAGE = (3, 8, 8)
OWN: dict[str, Factory] = {
    "small": SmallResNet, "resnet18": ResNet18, "wide-resnet": WideResNet, "mlp": MLP, "linear": Linear,
}  # fmt: skip
OUTSIDE: list[tuple[Factory, tuple[int, ...]]] = [
    (plain, IMAGE),
    (with_dropout, IMAGE),
    (Tied, IMAGE),
    (of_table, (5,)),
]


def shape_for(name: str) -> tuple[int, ...]:
    return IMAGE if NETWORKS[name].takes == "images" else (5,)


def assert_equal_weights(one: nn.Module, other: nn.Module) -> None:
    first, second = one.state_dict(), other.state_dict()
    assert list(first) == list(second)
    assert all(value.equal(second[name]) for name, value in first.items())


class TestOwn:
    def test_the_table_is_complete(self) -> None:
        assert OWN.keys() == NETWORKS.keys()

    @pytest.mark.parametrize("name", NETWORKS)
    def test_the_table_says_how_wide_features_are(self, name: str) -> None:
        shape = shape_for(name)
        assert feature_width(OWN[name](shape), shape, name) == (NETWORKS[name].features or shape[0])

    @pytest.mark.parametrize("project", [True, False])
    @pytest.mark.parametrize("name", ["small", "resnet18", "mlp", "linear"])
    def test_weights_are_drawn_in_one_order(self, name: str, project: bool) -> None:
        """Encoder, classifier, projector: a seed means the same weights in every version."""
        shape = shape_for(name)
        width = NETWORKS[name].features or shape[0]
        torch.manual_seed(3)
        parts: dict[str, nn.Module] = {"encoder": OWN[name](shape), "classifier": nn.Linear(width, 7)}
        if project:
            last = nn.Linear(width, width), nn.ReLU(), nn.Linear(width, NETWORKS[name].projection)
            parts["projector"] = nn.Sequential(*last)
        state = torch.get_rng_state()
        torch.manual_seed(3)
        network = build(name, shape, 7, project=project)
        assert torch.get_rng_state().equal(state)
        assert_equal_weights(network, nn.ModuleDict(parts))

    @pytest.mark.parametrize("name", ["small", "resnet18"])
    @pytest.mark.parametrize("channels", [1, 3])
    def test_projection_is_on_the_unit_sphere(self, name: str, channels: int) -> None:
        network = build(name, (channels, 16, 16), 7, project=True)
        output = network(torch.randn(4, channels, 16, 16))
        projection = network.project(output.features)
        assert projection.shape == (4, network.projection)
        torch.testing.assert_close(projection.norm(dim=1), torch.ones(4))

    @pytest.mark.parametrize("name", ["small", "resnet18", "mlp"])
    def test_an_empty_batch_teaches_nothing(self, name: str) -> None:
        """A process has one where a batch has fewer images than there are processes."""
        shape = shape_for(name)
        network = build(name, shape, 7, project=True)
        before = {key: value.clone() for key, value in network.named_buffers() if "running" in key}
        output = network(torch.zeros(0, *shape))
        assert output.logits.shape == (0, 7)
        (output.logits.sum() + network.project(output.features).sum()).backward()
        assert not any(parameter.grad is None or parameter.grad.any() for parameter in network.parameters())
        assert [key for key, value in network.named_buffers() if key in before and not value.equal(before[key])] == []

    @pytest.mark.parametrize(("name", "shape"), [("small", (5,)), ("mlp", IMAGE)])
    def test_other_data_than_it_takes(self, name: str, shape: tuple[int, ...]) -> None:
        with pytest.raises(UserError, match=f"the network {name} takes"):
            build(name, shape, 7, project=False)

    def test_unknown(self) -> None:
        with pytest.raises(UserError, match="did you mean 'resnet18'"):
            build("resnet", IMAGE, 10, project=False)


class TestOutside:
    @pytest.mark.parametrize(("factory", "shape"), OUTSIDE)
    @pytest.mark.parametrize("project", [True, False])
    def test_it_is_completed(self, factory: Factory, shape: tuple[int, ...], project: bool) -> None:
        network = build(factory, shape, 7, project=project)
        output = network(torch.rand(4, *shape))
        assert output.features.shape == (4, WIDTH)
        assert output.logits.shape == (4, 7)
        projected = 128 if len(shape) == 3 else 64
        assert network.project(output.features).shape == (4, projected if project else WIDTH)
        assert network.projection == (projected if project else WIDTH)
        (output.logits.sum() + network.project(output.features).sum()).backward()
        assert all(parameter.grad is not None for parameter in network.parameters())

    @pytest.mark.parametrize("same", [NETWORK, plain, lambda shape: plain(shape)])
    def test_name_and_factory_give_the_same(self, same: str | Factory) -> None:
        torch.manual_seed(5)
        expected = build(plain, IMAGE, 4, project=True)
        torch.manual_seed(5)
        assert_equal_weights(build(same, IMAGE, 4, project=True), expected)

    def test_weights_are_drawn_in_the_same_order(self) -> None:
        torch.manual_seed(3)
        parts = {"encoder": plain(IMAGE), "classifier": nn.Linear(WIDTH, 7)}
        torch.manual_seed(3)
        assert_equal_weights(build(plain, IMAGE, 7, project=False), nn.ModuleDict(parts))

    def test_a_module_stays_untouched(self) -> None:
        encoder = plain(IMAGE)
        before = copy.deepcopy(encoder)
        network = build(encoder, IMAGE, 4, project=False)
        assert_equal_weights(network.encoder, before)
        network(torch.rand(2, *IMAGE)).logits.sum().backward()
        torch.optim.SGD(network.parameters(), lr=1.0).step()
        assert_equal_weights(encoder, before)
        assert all(parameter.grad is None for parameter in encoder.parameters())
        assert encoder[0].weight.is_contiguous()  # type: ignore[index, union-attr]

    def test_a_module_keeps_what_it_has_learned(self) -> None:
        encoder = plain(IMAGE)
        networks = [build(encoder, IMAGE, 4, project=False) for _ in range(2)]
        assert_equal_weights(networks[0].encoder, networks[1].encoder)

    def test_convolutions_lie_in_the_fast_layout(self) -> None:
        network = build(nn.Sequential(nn.LazyConv2d(4, 3), nn.Conv2d(4, 5, 3), nn.Flatten()), IMAGE, 4, project=False)
        weights = [parameter for parameter in network.parameters() if parameter.ndim == 4]
        assert len(weights) == 2
        assert all(weight.is_contiguous(memory_format=torch.channels_last) for weight in weights)

    def test_weights_with_five_axes(self) -> None:
        class Volume(nn.Module):
            def __init__(self, input_shape: tuple[int, ...]) -> None:
                super().__init__()
                self.layer = nn.Conv3d(1, 4, 3, padding=1)

            def forward(self, images: torch.Tensor) -> torch.Tensor:
                features: torch.Tensor = self.layer(images[:, None]).mean((2, 3, 4))
                return features

        assert build(Volume, IMAGE, 4, project=False)(torch.rand(2, *IMAGE)).features.shape == (2, 4)

    def test_a_view_that_the_layout_does_not_allow(self) -> None:
        """It would fail in the first step of training; it fails here, and torch says what to do."""

        class Viewing(nn.Module):
            def __init__(self, input_shape: tuple[int, ...]) -> None:
                super().__init__()
                self.layer = nn.Conv2d(3, 4, 3)

            def forward(self, images: torch.Tensor) -> torch.Tensor:
                features: torch.Tensor = self.layer(images)
                return features.view(len(images), -1)

        with pytest.raises(UserError, match=r"Use \.reshape"):
            build(Viewing, IMAGE, 4, project=False)

    @pytest.mark.parametrize(
        ("factory", "says"),
        [
            (lambda shape: None, "NoneType"),
            (lambda shape: nn.Conv2d(3, 4, 1), "pool them to one vector per image"),
            (lambda shape: nn.Linear(7, 4), "fails on a batch of"),
            (lambda shape: nn.Linear(1 // 0, 4), "ZeroDivisionError"),
        ],
    )
    def test_refusals(self, factory: Callable[[tuple[int, ...]], nn.Module], says: str) -> None:
        with pytest.raises(UserError, match=says) as raised:
            build(factory, IMAGE, 4, project=False)
        assert "<lambda>" in str(raised.value)

    @pytest.mark.parametrize(("factory", "shape"), OUTSIDE)
    def test_an_empty_batch(self, factory: Factory, shape: tuple[int, ...]) -> None:
        network = build(factory, shape, 7, project=True)
        output = network(torch.zeros(0, *shape))
        assert output.logits.shape == (0, 7)
        assert network.project(output.features).shape == (0, network.projection)


class TestNetwork:
    def test_features_alone(self) -> None:
        network = build("small", IMAGE, 4, project=False).eval()
        images = torch.rand(3, *IMAGE)
        with torch.no_grad():
            assert network.encode(images).equal(network(images).features)

    def test_without_projector_features_are_normalised(self) -> None:
        network = Network(nn.Flatten(), 4, 3, None)
        features = torch.randn(5, 4)
        torch.testing.assert_close(network.project(features), features / features.norm(dim=1, keepdim=True))

    def test_autocast_encodes_in_half_and_computes_heads_in_single(self) -> None:
        network = build("small", IMAGE, 4, project=True)
        network.autocast = torch.bfloat16
        output = network(torch.rand(3, *IMAGE))
        assert torch.equal(output.features, output.features.bfloat16().float())
        assert output.logits.dtype == torch.float32
        assert network.project(output.features).dtype == torch.float32


class TestArranged:
    def test_there_and_back(self) -> None:
        module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(4, 5))
        before = copy.deepcopy(module)
        assert arranged(module, torch.channels_last) is module
        assert not module[0].weight.is_contiguous()
        assert_equal_weights(module, before)
        arranged(module, torch.contiguous_format)
        assert module[0].weight.is_contiguous()
        assert_equal_weights(module, before)

    def test_an_optimizer_still_knows_the_weights(self) -> None:
        module = nn.Conv2d(3, 4, 3)
        weight = module.weight
        arranged(module, torch.channels_last)
        assert module.weight is weight


class TestCompiling:
    def test_a_missing_compiler(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CXX", "no-such-compiler")
        require_compiler(False, torch.device("cpu"))
        require_compiler(True, torch.device("cuda"))
        with pytest.raises(UserError, match="no-such-compiler"):
            require_compiler(True, torch.device("cpu"))

    def test_every_encoder_and_nothing_else(self, monkeypatch: pytest.MonkeyPatch) -> None:
        compiled: list[nn.Module] = []
        monkeypatch.setattr(nn.Module, "compile", lambda self: compiled.append(self))
        networks = nn.ModuleList(build("small", IMAGE, 4, project=True) for _ in range(2))
        compile_encoders(networks)
        assert compiled == [network.encoder for network in networks]


def test_fixed_statistics_stay_in_training() -> None:
    torch.manual_seed(0)
    network = build("mlp", (5,), 3, project=False)
    network.fixed_statistics = True
    before = {name: value.clone() for name, value in network.named_buffers()}
    network.train()(torch.randn(8, 5) + 3)
    assert all(value.equal(before[name]) for name, value in network.named_buffers())
    assert network.encoder.training  # dropout goes on
    network.fixed_statistics = False
    network.train()(torch.randn(8, 5) + 3)
    assert not all(value.equal(before[name]) for name, value in network.named_buffers())


class TestFolded:
    @torch.no_grad()
    def test_outputs_are_equal_and_the_network_stays_as_it_is(self) -> None:
        network = build("small", IMAGE, 5, project=True).train()
        images = torch.randn(16, *IMAGE)
        network(images)  # moves the statistics of batch-norm
        before = copy.deepcopy(network)
        smaller = folded(network)
        assert sum(isinstance(part, nn.BatchNorm2d) for part in smaller.modules()) == 0
        assert_equal_weights(network, before)
        assert network.training
        for mine, theirs in zip(smaller(images), network.eval()(images), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)

    def test_a_network_without_such_parts_is_returned_itself(self) -> None:
        network = build("resnet18", IMAGE, 5, project=False)
        assert folded(network) is network
