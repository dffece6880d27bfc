"""What an epoch, and a whole run, is measured by. This is the one part that knows true labels."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from papi.data.dataset import Dataset
from papi.data.views.images import Normalise
from papi.methods.base import Method
from papi.methods.losses import candidate_argmax, candidate_softmax
from papi.methods.state import Confidence
from papi.training.calibration import fit_temperature
from papi.training.engine import Evaluation, evaluate
from papi.training.metrics import accuracy, calibration_error, class_similarity, criteria
from papi.training.selection import HeldOut

EMBEDDING_SAMPLE = 2000  # test images whose embedding is kept for pictures


class Evaluator:
    """Measures a method on the test images and on the training labels it has resolved, as far as the truth is known.

    Samples held out of training are measured by their candidate sets alone.
    """

    def __init__(
        self, dataset: Dataset, normalise: Normalise, device: torch.device, held_out: HeldOut | None = None
    ) -> None:
        self.held_out = held_out
        self.labels, self.test_labels = dataset.labels, dataset.test_labels
        self.normalise = normalise
        self.test_samples = None
        if dataset.test_samples is not None:
            self.test_samples = torch.from_numpy(np.ascontiguousarray(dataset.test_samples)).to(device)
        self.last: Evaluation | None = None

    def __call__(self, method: Method) -> dict[str, float]:
        """The measurements of an epoch."""
        row: dict[str, float] = {}
        if method.confidence is not None:
            confidence, resolved = method.confidence.highest()  # outside the candidates only where sets are doubted
            row["mean_confidence"] = float(confidence.mean())
            if self.labels is not None:
                row["disambiguation_accuracy"] = accuracy(resolved.cpu().numpy(), self.labels)
        if self.held_out is not None:
            held = evaluate(method.network, self.held_out.samples, self.normalise)
            row |= criteria(held.probabilities.numpy(), self.held_out.candidates)
        if self.test_samples is None:
            return row
        self.last = evaluate(method.network, self.test_samples, self.normalise, method.prototypes)
        if self.test_labels is None:
            return row
        row["test_accuracy"] = accuracy(self.last.logits.argmax(1).numpy(), self.test_labels)
        row["calibration_error"] = calibration_error(self.last.probabilities.numpy(), self.test_labels)
        if self.last.prototype_scores is not None:
            row["prototype_accuracy"] = accuracy(self.last.prototype_scores.argmax(1).numpy(), self.test_labels)
        within, between = class_similarity(self.last.embedding.numpy(), self.test_labels)
        return row | {"intra_similarity": within, "inter_similarity": between}

    def temperature(self, method: Method, images: Tensor) -> float:
        """What calibrates a method, by the candidate sets held out, else by those it was trained on.

        A network is surer of what it was trained on than of anything else: such samples can only tell that it is too
        sure of itself, never that it is too modest.
        """
        if self.held_out is not None:
            held = evaluate(method.network, self.held_out.samples, self.normalise)
            return fit_temperature(held.logits.numpy(), self.held_out.candidates)
        trained = evaluate(method.network, images, self.normalise)
        return fit_temperature(trained.logits.numpy(), method.candidates[:].cpu().numpy(), lowest=1.0)

    def conclude(
        self, method: Method, images: Tensor, temperature: float = 1.0
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """What a finished run keeps for pictures, and what is measured at its end, as far as it can be known.

        A method without a memory of its own resolves labels with the trained network, and so are those of samples held
        out. What each classifier says about the training images now, within their candidates, is kept beside: where the
        two differ, a person should look.
        """
        candidates = method.candidates[:].cpu()
        arrays = self._resolve(method, images, candidates, temperature, method.confidence)
        confidence = torch.from_numpy(arrays["confidence"])
        if self.held_out is not None:
            held_sets = torch.from_numpy(self.held_out.candidates)
            held = self._resolve(method, self.held_out.samples, held_sets, temperature)
            arrays = {name: _merged(self.held_out.rows, arrays[name], held[name]) for name in arrays}
            arrays["held_out"] = np.flatnonzero(self.held_out.rows)
        resolved: dict[str, Any] = {"temperature": temperature}
        if self.test_samples is not None:
            test = self.last or evaluate(method.network, self.test_samples, self.normalise, method.prototypes)
            sample = np.linspace(
                0, len(self.test_samples) - 1, min(EMBEDDING_SAMPLE, len(self.test_samples)), dtype=int
            )
            arrays["test_probabilities"] = test.calibrated(temperature).numpy()
            arrays["embedding"] = test.embedding.numpy()[sample]
            arrays["embedding_index"] = sample
            if self.test_labels is not None:
                resolved["calibration_error"] = calibration_error(arrays["test_probabilities"], self.test_labels)
        if method.prototypes is not None:
            arrays["prototypes"] = method.prototypes.value.cpu().numpy()
        ambiguous = (candidates.sum(1) > 1).numpy()
        resolved |= {"ambiguous_images": int(ambiguous.sum()), "disambiguation_accuracy": None}
        if self.labels is not None:
            right = confidence.argmax(1).numpy() == self.labels
            resolved["disambiguation_accuracy"] = float(right.mean())
            resolved["ambiguous_resolved"] = int(right[ambiguous].sum())
        return arrays, resolved

    def _resolve(
        self, method: Method, images: Tensor, candidates: Tensor, temperature: float, known: Confidence | None = None
    ) -> dict[str, np.ndarray]:
        """Confidence, the method's own if it is `known`, and the candidate that each classifier prefers.

        The second opinion is what the trained network thinks of the label that the confidence decided for.
        """
        now = evaluate(method.network, images, self.normalise, method.prototypes)
        opinion = candidate_softmax(now.logits / temperature, candidates)
        confidence = opinion if known is None else known.value.cpu()
        arrays = {
            "confidence": confidence.numpy(),
            "second_opinion": opinion.gather(1, candidate_argmax(confidence, candidates)[:, None])[:, 0].numpy(),
            "linear_label": candidate_argmax(now.logits, candidates).numpy(),
        }
        if now.prototype_scores is not None:
            arrays["prototype_label"] = candidate_argmax(now.prototype_scores, candidates).numpy()
        return arrays


def _merged(held_out: np.ndarray, trained: np.ndarray, held: np.ndarray) -> np.ndarray:
    """One array of all samples in their order, from those trained on and those held out."""
    merged = np.empty((len(held_out), *trained.shape[1:]), trained.dtype)
    merged[~held_out], merged[held_out] = trained, held
    return merged
