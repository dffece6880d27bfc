"""Evaluation: large batches without a graph, against batches of 64 in the default layout with one."""

import copy
from collections.abc import Iterator

import torch
from torch import Tensor

from benchmarks.measure import Line, in_turns, speedup
from benchmarks.views import MEAN, STD, photographs
from papi.data.views import Normalise
from papi.engine import evaluate
from papi.networks import Network, build


def plainly(network: Network, images: Tensor, mean: Tensor, std: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities and unit vectors, as a script would compute them."""
    network.eval()
    probabilities, embeddings = [], []
    for part in torch.split(images, 64):
        features, logits = network((part.float() / 255 - mean) / std)
        probabilities.append(logits.softmax(1).detach())
        embeddings.append(network.project(features).detach())
    return torch.cat(probabilities), torch.cat(embeddings)


def measure(quick: bool) -> Iterator[Line]:
    for name, channels, size, count in (("small", 1, 28, 4000), ("resnet18", 3, 32, 500)):
        if quick and name != "small":
            return
        torch.manual_seed(0)
        network = build(name, channels, 10, project=True)
        plain = copy.deepcopy(network).to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        images = photographs(count, channels, size)
        mean, std = (torch.tensor(each[:channels])[:, None, None] for each in (MEAN, STD))
        normalise = Normalise(MEAN[:channels], STD[:channels], torch.device("cpu"))

        def reference(
            plain: Network = plain, images: Tensor = images, mean: Tensor = mean, std: Tensor = std
        ) -> tuple[Tensor, Tensor]:
            return plainly(plain, images, mean, std)

        def ours(network: Network = network, images: Tensor = images, normalise: Normalise = normalise) -> object:
            return evaluate(network, images, normalise)

        mine = evaluate(network, images, normalise)
        for a, b in zip((mine.probabilities, mine.embedding), reference(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
        seconds = in_turns([reference, ours], 3 if quick else 5)
        yield speedup(f"evaluation, {name}, {count:,} images : plain, B=64", seconds, 1.5)
