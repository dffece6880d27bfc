"""The first pass through an encoder from outside: what it finds, what it refuses, and that it changes nothing."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from outside_networks import WIDTH, of_table, plain, with_dropout
from papi.errors import UserError
from papi.networks.trial import feature_width

SHAPE = (3, 8, 8)


class Giving(nn.Module):
    """Gives what a function makes of a batch."""

    def __init__(self, function: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.function = function

    def forward(self, batch: Tensor) -> object:
        return self.function(batch)


def complaint(function: Callable[[Tensor], object], input_shape: tuple[int, ...] = SHAPE) -> str:
    with pytest.raises(UserError) as raised:
        feature_width(Giving(function), input_shape, "mine:net")
    said = str(raised.value)
    assert "\n" not in said
    assert said.startswith("the network mine:net ")
    return said


class TestWidth:
    @given(st.integers(1, 40))
    def test_of_images(self, width: int) -> None:
        encoder = nn.Sequential(nn.Conv2d(3, width, 1), nn.AdaptiveMaxPool2d(1), nn.Flatten())
        assert feature_width(encoder, SHAPE, "mine") == width

    @given(st.integers(1, 40), st.integers(1, 40))
    def test_of_features(self, columns: int, width: int) -> None:
        assert feature_width(nn.Linear(columns, width), (columns,), "mine") == width

    @given(st.sampled_from([1, 3]), st.integers(1, 12), st.integers(1, 12))
    def test_of_pixels_as_they_are(self, channels: int, height: int, width: int) -> None:
        assert feature_width(nn.Flatten(), (channels, height, width), "mine") == channels * height * width

    @pytest.mark.parametrize(("factory", "shape"), [(plain, SHAPE), (with_dropout, SHAPE), (of_table, (5,))])
    def test_of_usual_networks(self, factory: Callable[[tuple[int, ...]], nn.Module], shape: tuple[int, ...]) -> None:
        assert feature_width(factory(shape), shape, "mine") == WIDTH

    def test_it_sees_float_zeros(self) -> None:
        seen: list[Tensor] = []

        def look(batch: Tensor) -> Tensor:
            seen.append(batch)
            return batch.flatten(1)

        feature_width(Giving(look), SHAPE, "mine")
        (batch,) = seen
        assert batch.shape == (2, *SHAPE)
        assert batch.dtype == torch.float32
        assert not batch.any()


class TestRefusals:
    @pytest.mark.parametrize("given", [None, 3, [1.0], (torch.zeros(2, 4), None), {"features": torch.zeros(2, 4)}])
    def test_no_tensor(self, given: object) -> None:
        said = complaint(lambda _: given)
        assert f"gives {type(given).__name__} instead of a tensor" in said

    @pytest.mark.parametrize("shape", [(2, 64, 7, 7), (2, 64, 1, 1), (2, 197, 384)])
    def test_features_that_are_not_pooled(self, shape: tuple[int, ...]) -> None:
        said = complaint(lambda _: torch.zeros(shape))
        assert f"to {shape}" in said
        assert "pool them to one vector per image" in said

    @pytest.mark.parametrize("shape", [(), (2,), (64,), (1, 64), (128, 64), (64, 2, 2)])
    def test_no_row_for_each_sample(self, shape: tuple[int, ...]) -> None:
        said = complaint(lambda _: torch.zeros(shape))
        assert f"to {shape}" in said
        assert "one vector per image" in said

    def test_rows_of_a_table(self) -> None:
        assert "one vector per row" in complaint(lambda _: torch.zeros(2, 5, 6), (5,))

    def test_no_feature(self) -> None:
        assert "no feature at all" in complaint(lambda _: torch.zeros(2, 0))

    @pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
    def test_other_numbers(self, dtype: torch.dtype) -> None:
        assert str(dtype) in complaint(lambda _: torch.zeros(2, 5, dtype=dtype))

    def test_a_network_for_other_shapes(self) -> None:
        """With the words of torch, and the line of the author's own code that led there."""
        linear = nn.Linear(10, 4)
        said = complaint(lambda batch: linear(batch.flatten(1)))
        assert "fails on a batch of (2, 3, 8, 8)" in said
        assert "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x192 and 10x4)" in said
        assert "of test_trial.py" in said
        assert "let it take images of this shape" in said

    def test_a_network_for_images_gets_features(self) -> None:
        convolution = nn.Conv2d(3, 4, 1)
        assert "let it take features of this shape" in complaint(lambda batch: convolution(batch), (5,))

    def test_a_mistake_in_the_code(self) -> None:
        assert "has no attribute 'pooled'" in complaint(lambda batch: batch.flatten(1).pooled)  # type: ignore[attr-defined]
        assert "KeyError: 'features'" in complaint(lambda batch: {}["features"])

    def test_a_sentence_of_its_own(self) -> None:
        def refuse(batch: Tensor) -> Tensor:
            raise UserError("give images of 224 pixels.")

        with pytest.raises(UserError, match=r"^give images of 224 pixels\.$"):
            feature_width(Giving(refuse), SHAPE, "mine")


class TestNothingChanges:
    def encoder(self) -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5), nn.Flatten(), nn.Linear(144, 6), nn.BatchNorm1d(6)
        )

    def test_weights_and_statistics(self) -> None:
        encoder = self.encoder()
        before = {name: value.clone() for name, value in encoder.state_dict().items()}
        feature_width(encoder, SHAPE, "mine")
        after = encoder.state_dict()
        assert before.keys() == after.keys()
        assert all(value.equal(before[name]) for name, value in after.items())
        assert all(parameter.grad is None and parameter.requires_grad for parameter in encoder.parameters())

    def test_the_generator(self) -> None:
        encoder = nn.Sequential(self.encoder(), Giving(lambda batch: batch + torch.rand(())))
        before = torch.get_rng_state()
        feature_width(encoder, SHAPE, "mine")
        assert torch.get_rng_state().equal(before)

    def test_modes(self) -> None:
        """Of each part, because people freeze some."""
        encoder = self.encoder()
        encoder[1].eval()  # type: ignore[index]
        modes = [part.training for part in encoder.modules()]
        assert len(set(modes)) == 2
        feature_width(encoder, SHAPE, "mine")
        assert [part.training for part in encoder.modules()] == modes

    def test_also_after_a_refusal(self) -> None:
        encoder = nn.Sequential(nn.Dropout(0.5), Giving(lambda batch: {}["features"]))
        before = torch.get_rng_state()
        with pytest.raises(UserError):
            feature_width(encoder, SHAPE, "mine")
        assert all(part.training for part in encoder.modules())
        assert torch.get_rng_state().equal(before)

    def test_it_looks_in_evaluation_mode(self) -> None:
        modes: list[bool] = []
        encoder = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(192))
        encoder.register_forward_hook(lambda module, *_: modes.append(module.training))
        feature_width(encoder, SHAPE, "mine")
        assert modes == [False]


class TestLazyLayers:
    """They learn the size of their input in this pass, so they draw their weights in it."""

    def encoder(self) -> nn.Module:
        return nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(WIDTH))

    def test_they_are_ready_afterwards(self) -> None:
        encoder = self.encoder()
        assert feature_width(encoder, SHAPE, "mine") == WIDTH
        assert sum(parameter.numel() for parameter in encoder.parameters()) == 3 * 4 * 9 + 4 + 8 + 144 * WIDTH + WIDTH

    def test_what_is_built_next_draws_other_numbers(self) -> None:
        torch.manual_seed(0)
        lazy = nn.Sequential(nn.LazyLinear(6))
        feature_width(lazy, (6,), "mine")
        assert not nn.Linear(6, 6).weight.equal(lazy[0].weight)

    def test_the_same_seed_gives_the_same_weights(self) -> None:
        made = []
        for _ in range(2):
            torch.manual_seed(7)
            encoder = self.encoder()
            feature_width(encoder, SHAPE, "mine")
            made.append(encoder.state_dict())
        assert all(made[0][name].equal(value) for name, value in made[1].items())
