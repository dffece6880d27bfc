"""The state of a method between steps.

It consists of persistent buffers and frozen weights, so checkpoints include it without further code. Every update
gathers the data of all processes, so the state is equal in all of them.
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
    """The confidence in each label of each training sample: rows that sum to one, with zero outside the candidates.

    Get one from `papi.methods.packed.uniform_confidence`, which chooses between a dense table (`DenseConfidence`) and a
    packed one (`PackedConfidence`) by its size. `confidence[index]` returns the rows of a batch, `(B, K)`.

    Examples
    --------
    >>> import torch
    >>> from papi.methods.packed import uniform_confidence
    >>> confidence = uniform_confidence(torch.tensor([[True, True, False], [True, True, True]]))
    >>> confidence[torch.tensor([0])].tolist()
    [[0.5, 0.5, 0.0]]
    >>> confidence.average(torch.tensor([0]), torch.tensor([[1.0, 0.0, 0.0]]), momentum=0.5)
    >>> confidence[torch.tensor([0])].tolist()
    [[0.75, 0.25, 0.0]]
    """

    @property
    def all_rows(self) -> Tensor:
        """The rows of all samples, `(N, K)`."""
        raise NotImplementedError

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        raise NotImplementedError

    def start_from(self, value: Tensor, rows: slice = slice(None)) -> None:
        """Set these rows to `(n, K)`, instead of equal shares."""
        raise NotImplementedError

    def highest(self) -> tuple[Tensor, Tensor]:
        """The highest confidence of each sample and its label, `(N,)` and `(N,)`."""
        raise NotImplementedError

    def write(self, index: Tensor, guess: Tensor) -> None:
        """Set rows that all processes know to the prediction `(B, K)`."""
        raise NotImplementedError

    @torch.no_grad()
    def replace(self, index: Tensor, guess: Tensor) -> None:
        """Set the rows of a batch to the prediction `(B, K)`."""
        self.write(*distributed.locate(len(index)).gather_all(index, guess))

    @torch.no_grad()
    def average(self, index: Tensor, guess: Tensor, momentum: float) -> None:
        """Move towards the prediction `(B, K)`: momentum · old + (1 - momentum) · guess."""
        self.replace(index, self.averaged(index, guess, momentum))

    def averaged(self, index: Tensor, guess: Tensor, momentum: float) -> Tensor:
        """The rows of a batch, moved towards the prediction `(B, K)`."""
        return momentum * self[index] + (1 - momentum) * guess


class DenseConfidence(Confidence):
    """One value per sample and class, initialised with equal shares for all candidates `(N, K) bool`."""

    value: Tensor

    def __init__(self, candidates: Tensor, *, learned: bool = True) -> None:
        super().__init__()
        self.register_buffer("value", candidates / candidates.sum(1, keepdim=True), persistent=learned)

    @property
    def all_rows(self) -> Tensor:
        return self.value

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        # `index_select` copies whole rows, which takes a third of the time of indexing.
        return self.value[index] if isinstance(index, slice) else self.value.index_select(0, index)

    def start_from(self, value: Tensor, rows: slice = slice(None)) -> None:
        self.value[rows].copy_(value)

    def highest(self) -> tuple[Tensor, Tensor]:
        highest, label = self.value.max(1)
        return highest, label

    def write(self, index: Tensor, guess: Tensor) -> None:
        self.value[index] = guess.to(self.value.dtype)


class Prototypes(nn.Module):
    """One unit vector for each class: a moving average of the features assigned to it, zero until the class is seen.

    Examples
    --------
    >>> import torch
    >>> from papi.methods.state import Prototypes
    >>> prototypes = Prototypes(classes=2, dimensions=2)
    >>> prototypes.average(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1]), momentum=0.9)
    >>> prototypes.scores(torch.tensor([[1.0, 0.0]])).tolist()
    [[1.0, 0.0]]
    """

    value: Tensor

    def __init__(self, classes: int, dimensions: int) -> None:
        super().__init__()
        self.register_buffer("value", torch.zeros(classes, dimensions))

    def scores(self, features: Tensor) -> Tensor:
        """Cosine similarity of unit features `(B, d)` to each prototype: `(B, K)`."""
        return features @ self.value.to(features.dtype).T

    @torch.no_grad()
    def average(self, features: Tensor, labels: Tensor, momentum: float) -> None:
        """Add features `(B, d)` with labels `(B,)` one after another, then normalise once.

        The sequence c ← γ c + (1-γ) z has the closed form c ← γ^n c + (1-γ) Σ γ^(later ones of the class) z.
        """
        features, labels = distributed.locate(len(labels)).gather_all(features, labels)
        self.add(features, labels, momentum)

    @torch.no_grad()
    def add(self, features: Tensor, labels: Tensor, momentum: float) -> None:
        """Like `average`, for rows that all processes know.

        With several views, `(B, V, d)` and `(B, V)`, the first view of all rows is added before the second.
        """
        labels, features = labels.movedim(0, -1).flatten(), features.movedim(0, -2).flatten(0, -2)
        own = labels[:, None]
        member = self.value.new_zeros(len(labels), len(self.value)).scatter_(1, own, 1)
        arrived = member.cumsum(0)
        count = arrived[-1]
        later = count[own] - arrived.gather(1, own)
        # One power per sample: powers for every sample and class would take most of the time.
        share = member * ((1 - momentum) * momentum**later)
        kept = momentum**count
        # A new tensor, not an in-place update: the loss of this step still refers to the old prototypes.
        self.value = normalize(kept[:, None] * self.value + share.T @ features.to(self.value.dtype))


class FeatureQueue(nn.Module):
    """The last `size` features `(size, d)` and their labels `(size,)`. New ones replace the oldest.

    It starts full of random unit vectors with the label -1, which no sample has, so they are never positives. If
    `classes` is given, it also keeps a distribution over labels for each feature.

    Examples
    --------
    >>> import torch
    >>> from papi.methods.state import FeatureQueue
    >>> queue = FeatureQueue(size=3, dimensions=2)
    >>> queue.push(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([5, 7]))
    >>> queue.labels.tolist()
    [5, 7, -1]
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
        """Add `(B, d)`, `(B,)` and `(B, K)`; of a batch larger than the queue, the last rows remain."""
        part = distributed.locate(len(labels))
        known = (features, labels) if beliefs is None else (features, labels, beliefs)
        features, labels, *rest = part.gather_all(*known)
        size = len(self.labels)
        arrived = torch.arange(len(labels), device=labels.device)[-size:]
        place = (self.pointer + arrived) % size
        # New tensors, not an in-place update: the loss of this step still refers to the old queue.
        self.features = self.features.index_copy(0, place, features[arrived].to(self.features.dtype))
        self.labels = self.labels.index_copy(0, place, labels[arrived])
        if self.beliefs is not None:
            assert rest, "a queue with beliefs needs one for every feature"
            self.beliefs = self.beliefs.index_copy(0, place, rest[0][arrived].to(self.beliefs.dtype))
        self.pointer = (self.pointer + len(labels)) % size


class MomentumCopy(nn.Module, Generic[M]):
    """A second network whose weights slowly follow those of the first, without gradients.

    It has its own batch-norm statistics, from the data that pass through it, not from the first network.

    Examples
    --------
    >>> import torch
    >>> from papi.methods.state import MomentumCopy
    >>> source = torch.nn.Linear(1, 1, bias=False)
    >>> slow = MomentumCopy(source)
    >>> before = slow.value.weight.item()
    >>> with torch.no_grad():
    ...     _ = source.weight.add_(1)
    >>> slow.average(source, momentum=0.9)
    >>> round(slow.value.weight.item() - before, 3)
    0.1
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
    """The mean of a network's recent weights and batch-norm statistics, evaluated and saved instead of the last ones.

    This is an exponential average over about `share` of the run's steps. Before that, it is the mean of all steps.
    """

    value: M

    def __init__(self, source: M, share: float) -> None:
        super().__init__()
        self.share = share
        self.value = copy.deepcopy(source).requires_grad_(False)

    @torch.no_grad()
    def follow(self, source: M, progress: Progress) -> None:
        """Update the average after a step: own + (source - own) / n, with n steps in the average."""
        done = progress.epoch * progress.steps + progress.step + 1
        steps = min(done, max(1.0, self.share * progress.epochs * progress.steps))
        for own, other in zip(self.value.state_dict().values(), source.state_dict().values(), strict=True):
            if own.is_floating_point():
                own.lerp_(other, 1 / steps)
            else:  # a counter of batches
                own.copy_(other)


class Neighbours(nn.Module):
    """The nearest neighbours of each training sample, `(N, count) int64`, without an N x N graph."""

    value: Tensor

    def __init__(self, samples: int, count: int) -> None:
        super().__init__()
        self.register_buffer("value", torch.full((samples, min(count, samples - 1)), -1))

    @torch.no_grad()
    def find(self, features: Tensor, chunk: int = 512) -> None:
        """Search by Euclidean distance between features `(N, D)`, with N x `chunk` distances in memory at a time."""
        features = features - features.mean(0)  # leaves distances unchanged and reduces rounding errors below
        squares = features.square().sum(1)
        for start in range(0, len(features), chunk):
            part = features[start : start + chunk]
            # |a - b|² - |a|²: dropping |a|² does not change which b are nearest.
            distances = torch.addmm(squares, part, features.T, alpha=-2)
            distances[:, start:].fill_diagonal_(torch.inf)  # a sample is not its own neighbour
            self.value[start : start + chunk] = distances.topk(self.value.shape[1], largest=False).indices

    def adjacency(self, index: Tensor) -> Tensor:
        """The `(B, B)` graph within a batch: 1 / (count + 1) for the sample itself and each neighbour, else 0."""
        linked = (self.value[index][:, :, None] == index).any(1)
        return linked.fill_diagonal_(True) / (self.value.shape[1] + 1)
