"""The views and the normalisation that suit a dataset: those of images, or those of features."""

import torch

from papi.data.dataset import Dataset
from papi.data.views.base import Normalise, Views
from papi.data.views.features import FeatureViews, NormaliseFeatures, noise_for
from papi.data.views.images import ImageViews, NormaliseImages


def views_of(dataset: Dataset) -> Views:
    """The views that suit a dataset."""
    if dataset.kind == "images":
        return ImageViews(dataset.recipe)
    return FeatureViews(dataset.mean, dataset.std, noise_for(*dataset.samples.shape))


def normaliser(
    shape: tuple[int, ...], mean: tuple[float, ...], std: tuple[float, ...], device: torch.device
) -> Normalise:
    """What turns samples of this shape, images `(C, H, W)` or features `(d,)`, into the network's input."""
    if len(shape) == 1:
        return NormaliseFeatures(mean, std, device)
    return NormaliseImages(mean, std, device, size=shape[1:])
