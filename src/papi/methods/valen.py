"""VALEN: variational label enhancement for instance-dependent partial-label learning (Xu et al., NeurIPS 2021).

After a warm-up, a second network infers to what degree each label describes an image: a Dirichlet distribution whose
samples must explain the pixels, the candidate set and the nearest neighbours in feature space. The classifier is
trained on these distributions, and they are trained on the classifier's predictions.

Symbols: o the classifier's *confidence*, d inferred *distribution*, α, β, γ, θ the four weights below, A graph of
nearest neighbours. It stores N×k numbers for the neighbours of all samples; the N×N graph is never built.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.distributions import Dirichlet
from torch.nn.functional import binary_cross_entropy_with_logits, log_softmax, mse_loss

from papi import distributed
from papi.config import CandidateKind, Values
from papi.methods.config import Passes, Release
from papi.methods.losses import candidate_softmax, dirichlet_kl, soft_cross_entropy, wide
from papi.methods.one_view import OneView, OneViewConfig
from papi.methods.options import require_not_negative, require_share
from papi.methods.packed import uniform_confidence
from papi.methods.ranges import Between
from papi.methods.state import Confidence, Neighbours
from papi.networks import Network
from papi.randomness import seed_torch
from papi.types import Batch, Progress, StepOutput


@dataclass(frozen=True)
class VALENConfig(OneViewConfig):
    """The defaults are those of the released code for CIFAR-10 with instance-dependent candidates.

    The release treats labels with o > 0 as the candidates, so a candidate that underflows is lost; here the candidate
    sets are the mask. It copies the network to the encoder only for some datasets; here this is always done.
    """

    warmup_epochs: int = 10
    """Number of epochs in which only the classifier is trained, as in PRODEN."""
    neighbours: Annotated[int, Between(1, 10)] = 3
    """Number of nearest neighbours per image (k)."""
    reconstruction_weight: Annotated[float, Between(0.03, 3.0, log=True)] = 1.0
    """Weight α of the reconstruction of pixels, candidates and neighbours."""
    prior_weight: Annotated[float, Between(0.003, 0.3, log=True)] = 0.1
    """Weight β of the divergence from the uniform Dirichlet distribution."""
    distribution_weight: Annotated[float, Between(0.3, 30.0, log=True)] = 10.0
    """Weight γ of the second network's cross-entropy with the classifier's confidence."""
    prediction_weight: Annotated[float, Between(0.3, 3.0, log=True)] = 1.0
    """Weight θ of the classifier's cross-entropy with the inferred distributions."""
    correction: Annotated[float, Between(0.05, 1.0)] = 0.2
    """Fraction of the sampled distribution in the classifier's target; the rest is its previous confidence."""

    def __post_init__(self) -> None:
        require_not_negative(self, "warmup_epochs", "neighbours", "reconstruction_weight", "prior_weight")
        require_not_negative(self, "distribution_weight", "prediction_weight")
        require_share(self, "correction")

    @property
    def encoder_passes(self) -> Passes:
        return Passes(2, 2, warmup=Passes(1, 1))

    @property
    def needs_shape(self) -> bool:
        """Yes: the decoder reconstructs samples."""
        return True

    @property
    def packs_sets(self) -> bool:
        return True

    @classmethod
    def quick(cls, epochs: int, given: Mapping[str, Any]) -> Values:
        """The warm-up is the same fraction of the run as in the release, and the second network is slower.

        That network and the decoder share no gradient with the classifier: the weights only slow them down tenfold. At
        the learning rate shared by all methods here, the second network would predict the same for every image.
        """
        warmup = max(1, round(epochs / 50))  # 10 of 500 epochs in the release
        return {"warmup_epochs": warmup, "reconstruction_weight": 0.1, "prior_weight": 0.01, "distribution_weight": 1.0}

    @classmethod
    def released(cls, dataset: str, flip_rate: float, kind: CandidateKind | None, given: Mapping[str, Any]) -> Release:
        """500 epochs at a constant learning rate, without augmentation.

        Its commands for instance-dependent sets differ: γ = 5 on Fashion-MNIST, and a correction of 0.2 elsewhere.
        """
        fashion, by_image = dataset == "fashion-mnist", kind == "instance-dependent"
        options = {
            "view": "plain",
            "distribution_weight": 5.0 if fashion and by_image else 10.0,
            "correction": 0.2 if by_image and not fashion else 1.0,
        }
        lr, decay = {"fashion-mnist": (0.01, 1e-4), "cifar100": (0.01, 1e-3)}.get(dataset, (0.05, 1e-3))
        return Release(500, lr, decay, "constant", drop_last=False, options=options)


class VALEN(OneView):
    """Infers to what degree each label describes an image, and learns from that."""

    Config = VALENConfig
    paper = "Xu et al., NeurIPS"
    year = 2021
    memory = "2 N×K confidence, N×k neighbours, second network, decoder"
    config: VALENConfig
    confidence: Confidence

    def __init__(self, network: Network, candidates: Tensor, config: VALENConfig, shape: tuple[int, ...]) -> None:
        super().__init__(network, candidates, config)
        samples, classes = candidates.shape
        pixels = math.prod(shape)
        self.confidence = uniform_confidence(candidates)
        self.distribution = uniform_confidence(candidates)
        self.neighbours = Neighbours(samples, config.neighbours)
        self.encoder = copy.deepcopy(network)
        self.decoder = nn.Sequential(nn.Linear(classes, pixels), nn.ReLU(), nn.Linear(pixels, pixels))

    def start_epoch(self, progress: Progress, batches: Callable[[], Iterator[Batch]]) -> bool:
        """After the warm-up, find neighbours, and initialise encoder and distributions from the current network."""
        super().start_epoch(progress, batches)
        if progress.epoch != self.config.warmup_epochs:
            return False
        self.network.eval()  # the release stays in training mode, where the features of a sample depend on its batch
        with torch.no_grad():
            features = torch.cat([self.network(batch.views[0]).features for batch in batches()])
            self.neighbours.find(distributed.gather_rows(features))
        self.network.train()
        self.encoder.load_state_dict(self.network.state_dict())
        self.distribution.load_state_dict(self.confidence.state_dict())
        seed_torch(progress.seed, "decoder")
        for layer in self.decoder:  # reset, because weight decay changed it during the warm-up
            if isinstance(layer, nn.Linear):
                nn.init.xavier_normal_(layer.weight)
                nn.init.constant_(layer.bias, 0.01)
        return True

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        logits = self.network(batch.views[0]).logits
        believed = self.confidence[batch.index]
        # Used from the next epoch on, so it makes no difference that the release does this after the optimizer's step.
        # The prior is applied only here: the second network learns from this confidence and would count it twice.
        admitted = self.admit(batch, logits.detach(), progress)
        self.confidence.replace(batch.index, candidate_softmax(logits.detach(), admitted))
        if progress.epoch < self.config.warmup_epochs:
            return StepOutput(soft_cross_entropy(logits, believed), logits, logs=self.logs(progress))

        inferred = wide(self.encoder(batch.views[0]).logits)
        part = distributed.locate(len(batch.index))
        # Sampled for all rows in every process. Generators are reseeded, because dropout has made them differ.
        seed_torch(progress.seed, "step", progress.epoch, progress.step)
        index, candidates = part.gather_all(batch.index, batch.candidates)
        samples = self.sample(part.gather(inferred), candidates)
        sample = samples[part.own]
        reconstruction = self.reconstruction(samples, part, batch, index)
        # exp(logits / 4) within [0.01, 30]; clamped before the exponential, which could overflow.
        prior = dirichlet_kl((inferred / 4).clamp(math.log(0.01), math.log(30)).exp())
        distribution = soft_cross_entropy(inferred, believed)
        prediction = soft_cross_entropy(logits, self.distribution[batch.index])
        inside = sample.detach() * batch.candidates
        revised = inside / inside.sum(1, keepdim=True)
        self.distribution.replace(batch.index, believed.lerp(revised, self.config.correction))
        loss = (
            self.config.reconstruction_weight * reconstruction
            + self.config.prior_weight * prior
            + self.config.distribution_weight * distribution
            + self.config.prediction_weight * prediction
        )
        logs = {"loss_reconstruction": reconstruction, "loss_prior": prior}
        logs |= {"loss_distribution": distribution, "loss_prediction": prediction}
        return StepOutput(loss, logits, logs=logs | self.logs(progress))

    def sample(self, logits: Tensor, candidates: Tensor) -> Tensor:
        """A sample `(B, K)` of Dir(softmax over the candidates + 0.01), with gradient except for the normaliser."""
        inside = log_softmax(logits, 1).masked_fill(~candidates, -torch.inf)
        concentration = (inside - inside.detach().logsumexp(1, keepdim=True)).exp() + 0.01
        # Unchecked: the check would wait for the device, and the engine detects a loss that is not finite.
        drawn: Tensor = Dirichlet(concentration, validate_args=False).rsample()
        return drawn

    def reconstruction(self, samples: Tensor, part: distributed.Part, batch: Batch, index: Tensor) -> Tensor:
        """How badly the sampled distributions explain pixels, candidates and neighbours.

        `samples` `(B, K)` and `index` `(B,)` are of the whole batch; this process computes the loss of its own rows.
        """
        sample = samples[part.own]
        pixels = mse_loss(self.decoder(sample), batch.views[0].flatten(1))
        labels = binary_cross_entropy_with_logits(sample, batch.candidates.to(sample.dtype))
        adjacency = self.neighbours.adjacency(index)[part.own].to(sample.dtype)
        graph = mse_loss((sample @ samples.T).sigmoid().softmax(1), adjacency)
        return 0.01 * pixels + 0.01 * labels + graph
