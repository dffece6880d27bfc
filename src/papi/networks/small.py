"""A residual network of nine layers for training on a CPU: about 0.13 million parameters.

The first layer sees 2x2 blocks of pixels as channels (space-to-depth), so every convolution works on a quarter of the
positions. On a CPU, the number of positions determines the cost, not the number of parameters.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d, pad, pixel_unshuffle, relu
from torch.nn.utils.fusion import fuse_conv_bn_eval

_LEAST = 8  # smallest side in pixels: blocks of two, halved twice


class _ConvNormReLU(nn.Module):
    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False)
        self.norm: nn.BatchNorm2d | nn.Identity = nn.BatchNorm2d(channels_out)

    def fold(self) -> None:
        """Fold batch-norm into the convolution, for evaluation: this saves one pass over the values."""
        assert isinstance(self.norm, nn.BatchNorm2d)
        self.conv, self.norm = fuse_conv_bn_eval(self.conv, self.norm), nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return relu(self.norm(self.conv(x)), inplace=True)  # in place: nothing else needs the normalised values

    def pooled(self, x: Tensor) -> Tensor:
        """The output with the largest of 2x2 values. ReLU does not change which one it is, and then sees a quarter."""
        return relu(max_pool2d(self.norm(self.conv(x)), 2), inplace=True)


class SmallResNet(nn.Module):
    """Space-to-depth, two stages with a residual pair each, global max-pooling to `4 * width` features."""

    def __init__(self, input_shape: tuple[int, ...], width: int = 16) -> None:
        super().__init__()
        self.stem = _ConvNormReLU(4 * input_shape[0], width)
        self.widen1 = _ConvNormReLU(width, 2 * width)
        self.residual1 = nn.Sequential(_ConvNormReLU(2 * width, 2 * width), _ConvNormReLU(2 * width, 2 * width))
        self.widen2 = _ConvNormReLU(2 * width, 4 * width)
        self.residual2 = nn.Sequential(_ConvNormReLU(4 * width, 4 * width), _ConvNormReLU(4 * width, 4 * width))

    def forward(self, images: Tensor) -> Tensor:
        """`(B, C, H, W)` of any size to `(B, 4 * width)`."""
        images = _in_blocks(images)
        count, channels, height, width = images.shape
        # torch does not unshuffle an empty batch, which occurs if there are fewer images than processes. A trace for
        # export has no empty batch and must not depend on this check.
        filled = torch.jit.is_tracing() or count > 0  # type: ignore[attr-defined, no-untyped-call]
        blocks = pixel_unshuffle(images, 2) if filled else images.reshape(0, 4 * channels, height // 2, width // 2)
        x = self.stem(blocks)
        x = self.widen1.pooled(x)
        x = x + self.residual1(x)
        x = self.widen2.pooled(x)
        x = x + self.residual2(x)
        features: Tensor = x.amax((2, 3))
        return features


def _in_blocks(images: Tensor) -> Tensor:
    """Pad by repeating the right and lower border if a side is odd or shorter than `_LEAST`."""
    height, width = images.shape[2:]
    right, below = (max(_LEAST, side + side % 2) - side for side in (int(width), int(height)))
    return pad(images, (0, right, 0, below), mode="replicate") if right or below else images
