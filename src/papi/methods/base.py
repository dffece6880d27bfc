"""The base class of all methods."""

from collections.abc import Callable, Iterator
from typing import ClassVar

from torch import Tensor, nn

from papi.methods.config import MethodConfig
from papi.methods.packed import Candidates, PackedSets
from papi.methods.prior import Prior
from papi.methods.state import AveragedNetwork, Confidence, Prototypes
from papi.networks import Network
from papi.types import Batch, Progress, StepOutput


class Method(nn.Module):
    """The base class of all methods: a module that owns its network and its state, and turns a batch into a loss.

    A subclass names its `Config`, sets up its state and implements `training_step`. The engine does the rest. A method
    never calls backward, moves tensors or opens files. Only a declared oracle sees true labels.

    Parameters
    ----------
    network
        The network to train, from `papi.networks.build`.
    candidates
        The candidate labels of all training samples, `(N, K) bool`.
    config
        The settings, an instance of the method's `Config`.

    Examples
    --------
    >>> import torch
    >>> from papi.methods.base import Method
    >>> from papi.methods.losses import candidate_likelihood_loss
    >>> from papi.networks import build
    >>> from papi.types import Batch, Progress, StepOutput
    >>> class Likelihood(Method):
    ...     def training_step(self, batch, progress):
    ...         logits = self.network(batch.views[0]).logits
    ...         return StepOutput(candidate_likelihood_loss(logits, batch.candidates), logits)
    >>> candidates = torch.tensor([[True, True, False], [False, True, True]])
    >>> method = Likelihood(build("mlp", (4,), classes=3, project=False), candidates, Likelihood.Config())
    >>> batch = Batch(torch.arange(2), (torch.randn(2, 4),), candidates)
    >>> method(batch, Progress(epoch=0, epochs=1, step=0, steps=1, seed=0)).loss.shape
    torch.Size([])
    """

    Config: ClassVar[type[MethodConfig]] = MethodConfig
    """The method's settings, with the defaults of its paper; `--option NAME=VALUE` sets one. They also say what the
    method needs (views, a projector, …) and how it is trained by default."""

    paper: ClassVar[str] = ""
    """Authors and place of publication, as `papi methods` lists them."""
    year: ClassVar[int] = 0
    memory: ClassVar[str] = ""
    """What it stores between steps besides the network."""
    bf16: ClassVar[bool] = False
    """Whether it was measured to be as accurate in bf16 as in fp32; `--precision auto` uses bf16 only then."""

    candidates: Candidates

    def __init__(self, network: Network, candidates: Candidates, config: MethodConfig) -> None:
        super().__init__()
        self.network = network
        self.config = config
        # The mask is given, not learned: it is stored once with the run, not in every checkpoint.
        if isinstance(candidates, PackedSets):
            self.candidates = candidates
        else:
            self.register_buffer("candidates", candidates, persistent=False)
        self.prior = Prior()
        self.averaged: AveragedNetwork[Network] | None = None
        self.confidence: Confidence | None = None
        self.prototypes: Prototypes | None = None

    @property
    def result(self) -> Network:
        """The network to evaluate and save: the averaged network if weights are averaged."""
        return self.network if self.averaged is None else self.averaged.value

    def give_prior(self, shares: Tensor, strength: str) -> None:
        """Set the prior over the candidates, `(N, K)`, and its strength; confidence starts from it."""
        self.prior.give(self.candidates, shares, strength)
        known = self.prior.shares(slice(None), self.candidates[:])
        if known is not None and self.confidence is not None:
            self.confidence.start_from(known)

    def start_epoch(self, progress: Progress, batches: Callable[[], Iterator[Batch]]) -> bool:
        """Hook before each epoch; `batches()` iterates over all samples, unaugmented and in order.

        Return True to start a new phase: the optimizer then starts without momentum.
        """
        self.prior.estimate()
        return False

    def admit(self, batch: Batch, logits: Tensor, progress: Progress) -> Tensor:
        """Return the weight of each label of a batch, `(B, K)`, for `candidate_softmax` of these logits.

        This is the mask of the candidates, unless a prior makes some of them more likely than others.
        """
        return self.prior.weigh(batch, logits, batch.candidates, progress)

    def logs(self, progress: Progress) -> dict[str, Tensor]:
        """Return values for the log of an epoch, besides the terms of the loss."""
        return self.prior.logs(progress)

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        """Compute the forward pass and the loss, and update the state, in the method's own order."""
        raise NotImplementedError

    def after_step(self, batch: Batch, progress: Progress) -> None:
        """Hook after the optimizer's step."""

    def forward(self, batch: Batch, progress: Progress) -> StepOutput:
        """Run a training step, so that module wrappers such as DDP wrap the whole method."""
        return self.training_step(batch, progress)
