"""The options of PaPi and their values: as released for the paper's datasets, and those of short runs.

Symbols as in `papi.methods.papi`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from papi.config import CandidateKind, Values
from papi.errors import UserError
from papi.methods.config import QUICK_EPOCHS, Passes, Release, rows_for, six_digits
from papi.methods.listening import ListeningConfig
from papi.methods.options import require_not_negative, require_positive, require_share
from papi.methods.ranges import Among, Between

_COMPOSITIONS = {"SW": ("weak", "strong"), "SS": ("strong", "strong"), "WW": ("weak", "weak")}

_RELEASED_EPOCHS = 500  # the confidence momenta of the paper were chosen for runs of this length
_SHORT = 50  # epochs; shorter runs learn more from many cheap steps than from a second view (docs/results.md)
_EPOCHS_OF_EQUAL_COST = {"paper": QUICK_EPOCHS, "two": 20, "one": 40}  # a step costs 10, 6 or 3 forward passes


class _Released(NamedTuple):
    """One command of the release's README."""

    flip_rate: float
    temperature: float
    mixup_alpha: float
    lr: float
    weight_decay: float = 1e-3


# The last row of each dataset is also used for instance-dependent sets, which have no flip rate.
_RELEASED = {
    "fashion-mnist": [
        _Released(0.1, 1.0, 8.0, 0.05),
        _Released(0.3, 1.0, 0.05, 0.05, weight_decay=1e-4),
        _Released(0.5, 1.0, 5.0, 0.05),
        _Released(0.7, 1.0, 5.0, 0.05),
    ],
    "svhn": [_Released(0.1, 0.3, 0.05, 0.05), *(_Released(q, 0.3, 0.05, 0.07) for q in (0.3, 0.5, 0.7))],
    "cifar10": [_Released(q, 0.3, 8.0, 0.05) for q in (0.1, 0.3, 0.5, 0.7)],
    "cifar100": [_Released(q, 0.3, 8.0, 0.1) for q in (0.01, 0.05, 0.1, 0.2)],
    "mini-imagenet": [_Released(q, 0.1, 5.0, 0.03, weight_decay=1e-4) for q in (0.01, 0.05, 0.1, 0.2)],
}


@dataclass(frozen=True)
class PaPiConfig(ListeningConfig):
    """The defaults are those of the released code for CIFAR-10."""

    passes: Literal["paper", "two", "one"] = "paper"
    """Encoder passes per step. `paper`: both views unmixed, then both mixed (4 forward, 3 backward). `two`: the first
    view unmixed, the second mixed and aligned (2 forward, 2 backward). `one`: only the first view, classified and
    aligned without mixup (1 forward, 1 backward)."""
    temperature: Annotated[float, Between(0.1, 1.0, log=True)] = 0.3
    """Temperature of the similarities to the prototypes; lower is sharper."""
    mixup_alpha: Annotated[float, Between(1.0, 16.0, log=True)] = 8.0
    """The mixing ratio is sampled from Beta(alpha, alpha)."""
    mixup: bool = True
    """Align mixtures of images. Off is the paper's Variant 1, which aligns unmixed images."""
    alignment: bool = True
    """Train the prototypical classifier. Off is the paper's Variant 2."""
    views: Annotated[Literal["SW", "SS", "WW"], Among(("SW", "WW"))] = "SW"
    """The two views: weak and strong (`SW`), two strong (`SS`) or two weak (`WW`). The classifier is trained on the
    first."""
    confidence_momentum: Annotated[tuple[float, float], Between(0.0, 0.99)] = (0.95, 0.8)
    """Momentum of the confidence at the start and at the end of the run."""
    prototype_momentum: Annotated[tuple[float, float], Between(0.3, 0.99)] = (0.9, 0.5)
    """Momentum of the prototypes at the start and at the end of the run."""
    alignment_weight: Annotated[float, Between(0.1, 3.0, log=True)] = 1.0
    """Weight of the alignment loss after its ramp. With `passes=one` and more than ten classes, it is multiplied by
    ten and divided by the number of classes."""
    ramp_epochs: float = 10.0
    """Number of epochs over which the alignment loss is phased in."""
    balance_weight: Annotated[float, Between(0.0, 0.5)] = 0.0
    """Weight of the loss that keeps the mean prediction of a batch close to uniform. It needs at least as many images
    per batch as classes."""
    balance_by_evidence: bool = True
    """Scale the balance by how strongly `set_prior` finds that candidate sets depend on the class. Off applies it in
    full."""
    exclusion_weight: Annotated[float, Between(0.0, 2.0)] = 0.0
    """Weight of the loss that lowers the labels outside the set, as in EM."""
    second_view_weight: float = 0.0
    """Weight of the cross-entropy of the second view, with `passes=two` and `mixup=off`."""
    cloud_rounds: int = 0
    """For fixed features, with `alignment=off`: number of EM rounds, with one Gaussian per class, that set the
    confidence half-way through the run. Before the last epoch, the Gaussians of the classifier's own predictions
    replace its weights. 0 turns both off."""
    schedule: Literal["epoch", "step"] = "epoch"
    """`epoch`: as released, values change between epochs, and in the first one both momenta are 0.99 and the alignment
    is off. `step`: values change smoothly from the first step on, for short runs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "temperature", "mixup_alpha")
        require_share(self, "confidence_momentum", "prototype_momentum")
        require_not_negative(self, "alignment_weight", "ramp_epochs", "cloud_rounds")
        require_not_negative(self, "balance_weight", "exclusion_weight", "second_view_weight")
        if self.second_view_weight and (self.passes != "two" or self.mixup or not self.alignment):
            raise UserError(
                "--option second_view_weight needs a second view that is not mixed: add --option passes=two "
                "--option mixup=off, and leave out alignment=off."
            )

    @property
    def view_names(self) -> tuple[str, ...]:
        """Both views of the composition if two are used, else the first."""
        both = self.alignment and self.passes != "one"
        return _COMPOSITIONS[self.views] if both else _COMPOSITIONS[self.views][:1]

    @property
    def asks_clouds(self) -> bool:
        """Whether Gaussian classes take part; with alignment, the prototypes play that role."""
        return self.cloud_rounds > 0 and not self.alignment

    @property
    def encoder_passes(self) -> Passes:
        """Four forward and three backward passes in the paper's form."""
        if not self.alignment or self.passes == "one":
            return Passes(1, 1)
        return Passes(4, 3) if self.passes == "paper" and self.mixup else Passes(2, 2)

    @property
    def needs_projector(self) -> bool:
        """The prototypical classifier works on projections."""
        return self.alignment

    @property
    def idle(self) -> frozenset[str]:
        """One pass has no mixtures and one view, which is weak in every composition of the search space."""
        mixture, prototypes = {"mixup_alpha"}, {"temperature", "prototype_momentum", "alignment_weight"}
        balance = {"balance_weight"} if self.set_prior == "off" and self.balance_by_evidence else set()
        if not self.alignment:
            return frozenset(balance | mixture | prototypes | {"views"})
        if self.passes == "one":
            return frozenset(balance | mixture | {"views"})
        return frozenset(balance if self.mixup else balance | mixture)

    @classmethod
    def quick_epochs(cls, given: Mapping[str, Any]) -> int:
        """The cheaper forms run for more epochs, at the same total cost as the paper's form."""
        return _EPOCHS_OF_EQUAL_COST[given.get("passes", "one")]

    @classmethod
    def quick(cls, epochs: int, given: Mapping[str, Any]) -> Values:
        """Confidence is updated once per epoch, so a momentum for 500 epochs would hardly change it in 12.

        Without any momentum, the first predictions would count for too much.
        """
        start, end = (momentum ** (_RELEASED_EPOCHS / epochs) for momentum in (0.95, 0.8))
        form = given.get("passes", "one" if epochs <= _SHORT else "two")
        prior = given.get("set_prior", "off" if form == "paper" else "auto")
        return {
            "passes": form,
            "temperature": 0.3,
            "mixup_alpha": 5.0,
            "confidence_momentum": (six_digits(max(0.2, start)), six_digits(end)),
            "prototype_momentum": (0.9, 0.5),
            "alignment_weight": 1.0 if form == "one" else 0.5,
            "ramp_epochs": six_digits(epochs / 12),
            "schedule": "step",
            "set_prior": prior,
            "balance_weight": 0.0 if prior == "off" else 0.1,
        }

    @classmethod
    def tabular(cls, epochs: int, given: Mapping[str, Any]) -> Values:
        """Both views are classified, predictions are kept inside the sets, and classes in balance.

        Candidate sets of real tables are far from uniform, and small tables are easily memorised.
        """
        if given.get("passes", "two") != "two" or not given.get("alignment", True) or given.get("mixup", False):
            return {}
        return {
            "passes": "two",
            "mixup": False,
            "second_view_weight": 1.0,
            "exclusion_weight": 1.0,
            "balance_weight": 0.1,
            "balance_by_evidence": False,
            "confidence_momentum": (0.5, 0.0),
        }

    @classmethod
    def frozen(cls, epochs: int, given: Mapping[str, Any]) -> Values:
        """A linear classifier alone: alignment trains the encoder, which is frozen here.

        Predictions on fixed features are stable from the start, so confidence follows them closely. Half-way through
        the run, one Gaussian per class sets the confidence, and at its end the classifier.
        """
        doubted = given.get("noise_tolerance", "off") != "off"  # the Gaussian classes require sets with the true label
        return cls.tuned(epochs, given) | {"cloud_rounds": 0 if doubted else 3}

    @classmethod
    def tuned(cls, epochs: int, given: Mapping[str, Any]) -> Values:
        """The settings of the head before fine-tuning; alignment would cost twice as much.

        The set prior is off: it reduced accuracy on photos with visually similar candidates (docs/photos.md).
        """
        values: Values = {"alignment": False, "confidence_momentum": (0.2, 0.0)}
        return values if "set_prior" in given else values | {"set_prior": "off", "balance_weight": 0.0}

    @classmethod
    def released(cls, dataset: str, flip_rate: float, kind: CandidateKind | None, given: Mapping[str, Any]) -> Release:
        """The released command for the dataset and the nearest flip rate, or for instance-dependent sets."""
        by_image = kind == "instance-dependent"
        rows = rows_for(dataset, _RELEASED)
        row = rows[-1] if by_image else min(rows, key=lambda row: abs(row.flip_rate - flip_rate))
        epochs = _RELEASED_EPOCHS
        if by_image and dataset == "cifar100":
            row, epochs = _Released(0.0, 1.0, 5.0, 0.1), 200
        options = {"temperature": row.temperature, "mixup_alpha": row.mixup_alpha}
        batch_size = 64 if dataset == "mini-imagenet" else 256
        return Release(epochs, row.lr, row.weight_decay, "cosine", True, batch_size, options=options)
