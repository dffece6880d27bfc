"""Wide residual networks (Zagoruyko & Komodakis, BMVC 2016): annotators of instance-dependent candidates."""

from torch import Tensor, nn
from torch.nn.functional import relu


class _Block(nn.Module):
    """Normalise and activate before each of two 3x3 convolutions, with dropout between them."""

    def __init__(self, channels_in: int, channels_out: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(channels_in)
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels_out)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        same = stride == 1 and channels_in == channels_out
        self.shortcut = None if same else nn.Conv2d(channels_in, channels_out, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        active = relu(self.norm1(x))
        residual = self.conv2(self.dropout(relu(self.norm2(self.conv1(active)))))
        summed: Tensor = residual + (x if self.shortcut is None else self.shortcut(active))
        return summed


class WideResNet(nn.Module):
    """Three stages of (depth - 4) / 6 blocks with 16, 32 and 64 times `widen` channels; global average pooling."""

    def __init__(self, input_shape: tuple[int, ...], depth: int = 28, widen: int = 10, dropout: float = 0.3) -> None:
        super().__init__()
        self.stem = nn.Conv2d(input_shape[0], 16, 3, padding=1, bias=False)
        widths, blocks = (16, 16 * widen, 32 * widen, 64 * widen), (depth - 4) // 6
        self.stages = nn.Sequential(
            *(
                _Block(w_in if block == 0 else w_out, w_out, stride if block == 0 else 1, dropout)
                for w_in, w_out, stride in zip(widths[:-1], widths[1:], (1, 2, 2), strict=True)
                for block in range(blocks)
            )
        )
        self.norm = nn.BatchNorm2d(64 * widen)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """`(B, C, H, W)` to `(B, 64 * widen)`."""
        features: Tensor = relu(self.norm(self.stages(self.stem(images)))).mean((2, 3))
        return features
