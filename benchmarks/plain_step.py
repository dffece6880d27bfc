"""A training step of PaPi written from the paper and its specification, without optimisations.

Pillow transforms images one by one, all four passes keep their graph and run all heads, prototypes are updated sample
by sample, and memory layout and SGD are the defaults. It computes the same result as ours.
"""

import copy

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import kl_div, normalize, softmax

from benchmarks.prototypes import one_after_another
from benchmarks.views import PillowViews, draw, one_by_one
from papi.methods.papi import PaPi
from papi.networks import Network
from papi.randomness import draws
from papi.types import Progress


class PlainPaPi:
    """Starts from the weights, candidates and settings of our implementation; `step` trains on one batch."""

    def __init__(self, method: PaPi, pixels: np.ndarray, views: PillowViews, batch: int, lr: float) -> None:
        self.network: Network = copy.deepcopy(method.network).to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=lr, momentum=0.9, weight_decay=1e-3)
        self.candidates = method.candidates[:].float()
        self.confidence = self.candidates / self.candidates.sum(1, keepdim=True)
        self.prototypes = torch.zeros_like(method.prototypes.value)
        self.settings, self.momenta_and_weight = method.config, method.momenta_and_weight
        self.pixels, self.views, self.batch = pixels, views, batch

    def load(self, progress: Progress) -> tuple[Tensor, list[Tensor]]:
        """The images of a step and their two views."""
        order = draws(progress.seed, "shuffle", progress.epoch).permutation(len(self.pixels))
        index = order[progress.step * self.batch : (progress.step + 1) * self.batch]
        views = []
        for position in range(2):
            random = draws(progress.seed, f"view {position}", progress.epoch, progress.step)
            drawn = draw(len(index), self.views, position == 1, random)
            views.append(one_by_one(self.views, self.pixels[index], position == 1, drawn))
        return torch.from_numpy(index), views

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and unit vectors."""
        assert self.network.projector is not None
        features = self.network.encoder(images)
        return self.network.classifier(features), normalize(self.network.projector(features))

    def step(self, progress: Progress) -> float:
        index, (weak, strong) = self.load(progress)
        sets = self.candidates[index]
        confidence_momentum, prototype_momentum, weight = self.momenta_and_weight(progress)
        random = draws(progress.seed, "mixup", progress.epoch, progress.step)
        share = float(random.beta(self.settings.mixup_alpha, self.settings.mixup_alpha))
        partner = torch.from_numpy(random.permutation(len(index)))
        passes = [weak, strong, *(share * view + (1 - share) * view[partner] for view in (weak, strong))]
        (r_w, z_w), (r_s, z_s), (_, zm_w), (_, zm_s) = [self.forward(images) for images in passes]

        scores = [z @ self.prototypes.T for z in (zm_w, zm_s)]
        guesses = [softmax(r, 1).detach() * sets for r in (r_w, r_s)]
        features, labels = torch.cat([z_w, z_s]).detach(), torch.cat([guess.argmax(1) for guess in guesses])
        self.prototypes = one_after_another(self.prototypes, features, labels, prototype_momentum)
        guess = guesses[0] / guesses[0].sum(1, keepdim=True)
        target = confidence_momentum * self.confidence[index] + (1 - confidence_momentum) * guess
        self.confidence[index] = target

        loss = -(target * softmax(r_w, 1).log()).sum(1).mean()
        for score in scores:
            predicted = (score / self.settings.temperature).log_softmax(1)
            own, other = (kl_div(predicted, t, reduction="batchmean") for t in (target, target[partner]))
            loss = loss + weight * (share * own + (1 - share) * other)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.item()
