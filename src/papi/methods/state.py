"""What a method remembers between steps.

It is all persistent buffers and frozen weights, so checkpoints hold it without further code. Every update takes in what
all processes bring, so that it is equal in all of them.
"""

import copy
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from papi import distributed
from papi.types import Progress

M = TypeVar("M", bound=nn.Module)


class Confidence(nn.Module):
    """How much each training sample believes in each label: rows `(B, K)` that sum to one, zero outside the candidates.

    What methods rely on; `DenseConfidence` and `papi.methods.packed.PackedConfidence` keep it in their own ways.
    """

    @property
    def all_rows(self) -> Tensor:
        """The rows of all samples, `(N, K)`."""
        raise NotImplementedError

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        raise NotImplementedError

    def start_from(self, value: Tensor) -> None:
        """Begin with `(N, K)` instead of equal shares."""
        raise NotImplementedError

    def highest(self) -> tuple[Tensor, Tensor]:
        """For each sample the highest confidence and the label that has it, `(N,)` and `(N,)`."""
        raise NotImplementedError

    def replace(self, index: Tensor, guess: Tensor) -> None:
        """Believe the guess `(B, K)`."""
        raise NotImplementedError

    @torch.no_grad()
    def average(self, index: Tensor, guess: Tensor, momentum: float) -> None:
        """Move towards the guess `(B, K)`: momentum · old + (1 - momentum) · guess."""
        self.replace(index, momentum * self[index] + (1 - momentum) * guess)


class DenseConfidence(Confidence):
    """A number for each sample and class; it starts with equal shares for all candidates `(N, K) bool`."""

    value: Tensor

    def __init__(self, candidates: Tensor, *, learned: bool = True) -> None:
        super().__init__()
        self.register_buffer("value", candidates / candidates.sum(1, keepdim=True), persistent=learned)

    @property
    def all_rows(self) -> Tensor:
        return self.value

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        return self.value[index]

    def start_from(self, value: Tensor) -> None:
        self.value.copy_(value)

    def highest(self) -> tuple[Tensor, Tensor]:
        return self.value.amax(1), self.value.argmax(1)

    @torch.no_grad()
    def replace(self, index: Tensor, guess: Tensor) -> None:
        part = distributed.locate(len(index))
        self.value[part.gather(index)] = part.gather(guess.to(self.value.dtype))


class Prototypes(nn.Module):
    """One unit vector for each class, a moving average of the features assigned to it; zero until the class is seen."""

    value: Tensor

    def __init__(self, classes: int, dimensions: int) -> None:
        super().__init__()
        self.register_buffer("value", torch.zeros(classes, dimensions))

    def scores(self, features: Tensor) -> Tensor:
        """Cosine similarity of unit features `(B, d)` to each prototype: `(B, K)`."""
        return features @ self.value.to(features.dtype).T

    @torch.no_grad()
    def average(self, features: Tensor, labels: Tensor, momentum: float) -> None:
        """Take in features `(B, d)` with labels `(B,)` one after another, then normalise once.

        Of several views, `(V, B, d)` and `(V, B)`, the first is taken in before the second.
        The sequence c ← γ c + (1-γ) z has the closed form c ← γ^n c + (1-γ) Σ γ^(later ones of the class) z.
        """
        part = distributed.locate(labels.shape[-1])
        labels = part.gather(labels.movedim(-1, 0)).movedim(0, -1).flatten()
        features = part.gather(features.movedim(-2, 0)).movedim(0, -2).flatten(0, -2)
        own = labels[:, None]
        member = self.value.new_zeros(len(labels), len(self.value)).scatter_(1, own, 1)
        arrived = member.cumsum(0)
        count = arrived[-1]
        later = count[own] - arrived.gather(1, own)
        # Powers of one number a sample: taken for samples times classes they would need most of the time.
        share = member * ((1 - momentum) * momentum**later)
        kept = momentum**count
        # A new tensor, not an update in place: the loss of this step still refers to the old prototypes.
        self.value = normalize(kept[:, None] * self.value + share.T @ features.to(self.value.dtype))


class FeatureQueue(nn.Module):
    """The last `size` features `(size, d)` and their labels `(size,)`; new ones take the place of the oldest.

    It starts full of random unit vectors under the label -1, which no sample has: they are never anyone's positives.
    With a number of classes, it also keeps what was believed about each: a distribution over labels.
    """

    features: Tensor
    labels: Tensor
    beliefs: Tensor | None  # (size, K)
    pointer: Tensor

    def __init__(self, size: int, dimensions: int, classes: int | None = None) -> None:
        super().__init__()
        self.register_buffer("features", normalize(torch.randn(size, dimensions)))
        self.register_buffer("labels", torch.full((size,), -1))
        self.register_buffer("beliefs", None if classes is None else torch.zeros(size, classes))
        self.register_buffer("pointer", torch.tensor(0))

    @torch.no_grad()
    def push(self, features: Tensor, labels: Tensor, beliefs: Tensor | None = None) -> None:
        """Take in `(B, d)`, `(B,)` and `(B, K)`; of a batch larger than the queue, the last rows remain."""
        part = distributed.locate(len(labels))
        features, labels = part.gather(features), part.gather(labels)
        size = len(self.labels)
        arrived = torch.arange(len(labels), device=labels.device)[-size:]
        place = (self.pointer + arrived) % size
        # New tensors, not an update in place: the loss of this step still refers to the old queue.
        self.features = self.features.index_copy(0, place, features[arrived].to(self.features.dtype))
        self.labels = self.labels.index_copy(0, place, labels[arrived])
        if self.beliefs is not None:
            assert beliefs is not None, "a queue with beliefs takes in some with every feature"
            new = part.gather(beliefs)[arrived].to(self.beliefs.dtype)
            self.beliefs = self.beliefs.index_copy(0, place, new)
        self.pointer = (self.pointer + len(labels)) % size


class MomentumCopy(nn.Module, Generic[M]):
    """A second network whose weights follow those of the first slowly, without gradients.

    Its batch-norm statistics are its own: they come from what passes through it, not from the first network.
    """

    value: M

    def __init__(self, source: M) -> None:
        super().__init__()
        self.value = copy.deepcopy(source).requires_grad_(False)

    @torch.no_grad()
    def average(self, source: M, momentum: float) -> None:
        """Move every weight: momentum · own + (1 - momentum) · source."""
        for own, other in zip(self.value.parameters(), source.parameters(), strict=True):
            own.lerp_(other, 1 - momentum)


class AveragedNetwork(nn.Module, Generic[M]):
    """The mean of a network's recent weights and batch-norm statistics: what is measured and kept instead of the last.

    An exponential average over about a share of the run's steps. Until there are as many, it is the plain mean of all.
    """

    value: M

    def __init__(self, source: M, share: float) -> None:
        super().__init__()
        self.share = share
        self.value = copy.deepcopy(source).requires_grad_(False)

    @torch.no_grad()
    def follow(self, source: M, progress: Progress) -> None:
        """Take in the network after a step: own + (source - own) / n, with n steps in the average."""
        done = progress.epoch * progress.steps + progress.step + 1
        steps = min(done, max(1.0, self.share * progress.epochs * progress.steps))
        for own, other in zip(self.value.state_dict().values(), source.state_dict().values(), strict=True):
            if own.is_floating_point():
                own.lerp_(other, 1 / steps)
            else:  # a counter of batches
                own.copy_(other)


class Neighbours(nn.Module):
    """The nearest others of each training sample, `(N, count) int64`: N x count numbers, never a graph of N x N."""

    value: Tensor

    def __init__(self, samples: int, count: int) -> None:
        super().__init__()
        self.register_buffer("value", torch.full((samples, min(count, samples - 1)), -1))

    @torch.no_grad()
    def find(self, features: Tensor, chunk: int = 512) -> None:
        """Search by Euclidean distance between features `(N, D)`, with N x `chunk` distances in memory at a time."""
        features = features - features.mean(0)  # distances stay, and their expanded form below rounds less
        squares = features.square().sum(1)
        for start in range(0, len(features), chunk):
            part = features[start : start + chunk]
            # |a - b|² less |a|², which does not change which b are nearest.
            distances = torch.addmm(squares, part, features.T, alpha=-2)
            distances[:, start:].fill_diagonal_(torch.inf)  # oneself is no neighbour
            self.value[start : start + chunk] = distances.topk(self.value.shape[1], largest=False).indices

    def adjacency(self, index: Tensor) -> Tensor:
        """The `(B, B)` part of the graph that a batch sees: 1 / (count + 1) for oneself and each neighbour, else 0."""
        linked = (self.value[index][:, :, None] == index).any(1)
        return linked.fill_diagonal_(True) / (self.value.shape[1] + 1)
