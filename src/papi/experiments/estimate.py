"""Estimates the training time of cells on this machine, from a measured step, and on a GPU, from its speed."""

import time
from collections.abc import Iterable
from functools import cache

import numpy as np
import torch

from papi.config import RunConfig
from papi.data.dataset import Dataset
from papi.data.known.sources import SOURCES
from papi.experiments.cells import settings_of
from papi.experiments.compute import units, work
from papi.train import fit, settings_for
from papi.training.engine import Stepped

STEPS = 4  # the first is not counted
BATCH = {"small": 64, "resnet18": 8, "mlp": 128}
SIDE = 32  # image side in pixels for the measurement; time is proportional to the area
USED_AT = {"mini-imagenet": 64}  # the side to which images are resized
RESNET18_FLOP = 1.11e9  # of one forward pass at 32 x 32 pixels
GPU_FLOPS = 15e12  # per second: our assumption for a data-centre GPU on small images in mixed precision


@cache
def seconds_a_unit(network: str, channels: int = 3) -> float:
    """Seconds for one encoder unit of one image: PRODEN's steps on random images, divided by their units.

    For `mlp`, `channels` is the number of columns of a feature table. The result is CPU time divided by the number of
    threads, so other programs on the machine do not affect it.
    """
    batch = BATCH[network]
    random = np.random.default_rng(0)
    images: np.ndarray
    if network == "mlp":
        images = random.standard_normal((STEPS * batch, channels), np.float32)
    else:
        images = random.integers(0, 256, (STEPS * batch, channels, SIDE, SIDE), dtype=np.uint8)
    labels = np.arange(len(images)) % 10
    names = tuple(map(str, range(10)))
    dataset = Dataset(
        name="random",
        class_names=names,
        samples=images,
        labels=labels,
        mean=(0.5,) * channels,
        std=(0.25,) * channels,
        recipe=SOURCES["cifar10"].recipe,
    )
    config = RunConfig(method="proden", network=network, batch_size=batch, epochs=1, precision="fp32")
    times = []
    for event in fit(dataset, np.ones((len(images), 10), bool), settings_for(config, dataset)):
        if isinstance(event, Stepped):
            times.append(time.process_time())
    return float(np.diff(times).min()) / torch.get_num_threads() / (batch * units("proden", {}))


def area(data: str) -> float:
    """Pixels of an image relative to the size used in the measurement; 1 for a row of features."""
    if len(SOURCES[data].shape) == 1:
        return 1.0
    side = USED_AT.get(data, SOURCES[data].shape[-1])
    return (side / SIDE) ** 2


def seconds_here(configs: Iterable[RunConfig]) -> float:
    """Estimate the time to train configs one after another with the current number of torch threads."""
    total = 0.0
    for config in configs:
        network = settings_of(config).network
        total += work(config) * area(config.data) * seconds_a_unit(network, SOURCES[config.data].shape[0])
    return total


def gpu_hours(configs: Iterable[RunConfig]) -> float:
    """Estimate the GPU hours of ResNet-18 runs at the assumed speed."""
    return sum(work(config) * area(config.data) for config in configs) * RESNET18_FLOP / GPU_FLOPS / 3600
