"""Lets timm and transformers import a torchvision that was built for CUDA beside a torch that was not.

Its compiled operators are missing. The two of which it registers more at import are declared; nothing calls them.
"""

import warnings

import pytest
import torch

_LIBRARY = torch.library.Library("torchvision", "FRAGMENT")


def require(package: str) -> None:
    """Skip the test if a package is not installed; else import it."""
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            _LIBRARY.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of their own parts that are deprecated
        pytest.importorskip(package)
