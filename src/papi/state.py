"""What a method remembers between steps. It is all persistent buffers, so checkpoints hold it without further code."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, one_hot


class Confidence(nn.Module):
    """How much each training sample believes in each of its candidates: `(N, K)`, rows sum to one, zero elsewhere."""

    value: Tensor

    def __init__(self, candidates: Tensor) -> None:
        super().__init__()
        self.register_buffer("value", candidates / candidates.sum(1, keepdim=True))

    def __getitem__(self, index: Tensor) -> Tensor:
        return self.value[index]

    @torch.no_grad()
    def replace(self, index: Tensor, guess: Tensor) -> None:
        """Believe the guess `(B, K)`."""
        self.value[index] = guess.to(self.value.dtype)

    @torch.no_grad()
    def average(self, index: Tensor, guess: Tensor, momentum: float) -> None:
        """Move towards the guess `(B, K)`: momentum · old + (1 - momentum) · guess."""
        self.replace(index, momentum * self.value[index] + (1 - momentum) * guess)


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

        The sequence c ← γ c + (1-γ) z has the closed form c ← γ^n c + (1-γ) Σ γ^(later ones of the class) z.
        """
        member = one_hot(labels, len(self.value)).to(self.value.dtype)
        later = member.flip(0).cumsum(0).flip(0) - member
        share = member * (1 - momentum) * momentum**later
        kept = momentum ** member.sum(0)
        # A new tensor, not an update in place: the loss of this step still refers to the old prototypes.
        self.value = normalize(kept[:, None] * self.value + share.T @ features.to(self.value.dtype))
