"""The prototype update in closed form, against a loop over samples."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import normalize

from benchmarks.measure import Line, in_turns, repeated, speedup
from papi.methods.state import Prototypes


def one_after_another(prototypes: Tensor, features: Tensor, labels: Tensor, momentum: float) -> Tensor:
    """The released update: weak features in batch order, then strong ones, with one normalisation at the end."""
    prototypes = prototypes.clone()
    for feature, label in zip(features, labels, strict=True):
        prototypes[label] = momentum * prototypes[label] + (1 - momentum) * feature
    return normalize(prototypes)


def measure(quick: bool) -> Iterator[Line]:
    batch, dimensions, momentum = 256, 128, 0.9
    random = torch.Generator().manual_seed(0)
    for classes in (10, 100):
        ours = Prototypes(classes, dimensions)
        ours.value = normalize(torch.randn(classes, dimensions, generator=random))
        features = normalize(torch.randn(2 * batch, dimensions, generator=random))
        labels = torch.randint(classes, (2 * batch,), generator=random)
        start = ours.value

        def closed_form(ours: Prototypes = ours, start: Tensor = start, features: Tensor = features,
                        labels: Tensor = labels) -> Tensor:  # fmt: skip
            ours.value = start
            ours.average(features, labels, momentum)
            return ours.value

        def loop(start: Tensor = start, features: Tensor = features, labels: Tensor = labels) -> Tensor:
            return one_after_another(start, features, labels, momentum)

        torch.testing.assert_close(closed_form(), loop(), rtol=0, atol=1e-6)
        seconds = in_turns([loop, repeated(closed_form, 10)], 5 if quick else 20)
        yield speedup(f"prototype update, K={classes}, B={batch}, vs. loop", (seconds[0], seconds[1] / 10))
