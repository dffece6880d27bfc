"""Chooses the views and the normalisation for a dataset of images or features."""

import torch

from papi.data.dataset import Dataset
from papi.data.views.base import Normalise, Views
from papi.data.views.features import CachedViews, FeatureViews, NormaliseFeatures, noise_for
from papi.data.views.images import ImageViews, NormaliseImages
from papi.data.views.photos import NormalisePhotos, NumberedViews


def views_of(dataset: Dataset) -> Views:
    """The views for a dataset."""
    if dataset.kind == "images" and dataset.photos is not None:
        return NumberedViews(dataset.photos)
    if dataset.kind == "images":
        return ImageViews(dataset.recipe)
    if dataset.samples.ndim == 3:
        return CachedViews(dataset.samples.shape[1] // 2, dataset.mean)
    return FeatureViews(dataset.mean, dataset.std, noise_for(*dataset.samples.shape))


def normaliser_of(dataset: Dataset, device: torch.device) -> Normalise:
    """The function that converts samples of a dataset to the network's input."""
    if dataset.kind == "images" and dataset.photos is not None:
        return NormalisePhotos(dataset.photos, dataset.mean, dataset.std, device)
    return normaliser(dataset.input_shape, dataset.mean, dataset.std, device)


def normaliser(
    shape: tuple[int, ...], mean: tuple[float, ...], std: tuple[float, ...], device: torch.device
) -> Normalise:
    """The function that converts samples of this shape, images `(C, H, W)` or features `(d,)`, to network inputs."""
    if len(shape) == 1:
        return NormaliseFeatures(mean, std, device)
    return NormaliseImages(mean, std, device, size=shape[1:])
