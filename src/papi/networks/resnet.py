"""ResNet-18 for small images (He et al., CVPR 2016), the encoder of the paper: 3x3 stem, no max-pooling."""

from torch import Tensor, nn
from torch.nn.functional import relu


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut, which is a 1x1 convolution if the shape changes."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels_out)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels_out, 1, stride, bias=False), nn.BatchNorm2d(channels_out)
            )

    def forward(self, x: Tensor) -> Tensor:
        """`(B, channels_in, H, W)` to `(B, channels_out, H / stride, W / stride)`."""
        # In place: nothing else needs the previous values.
        residual = self.norm2(self.conv2(relu(self.norm1(self.conv1(x)), inplace=True)))
        return relu(residual + self.shortcut(x), inplace=True)


class ResNet18(nn.Module):
    """Four stages of two blocks; global average pooling to 512 features. Takes 1 or 3 channels of any size."""

    def __init__(self, input_shape: tuple[int, ...] = (3, 32, 32)) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True))
        widths, strides = (64, 64, 128, 256, 512), (1, 2, 2, 2)
        self.stages = nn.Sequential(
            *(
                nn.Sequential(BasicBlock(w_in, w_out, stride), BasicBlock(w_out, w_out, 1))
                for w_in, w_out, stride in zip(widths[:-1], widths[1:], strides, strict=True)
            )
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """`(B, 1 or 3, H, W)` to `(B, 512)`."""
        if images.shape[1] == 1:  # the paper replicates grey images
            images = images.expand(-1, 3, -1, -1)
        features: Tensor = self.stages(self.stem(images)).mean((2, 3))
        return features
