"""What an epoch, and a whole run, is measured by. This is the one part that knows true labels."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from papi.data.dataset import Dataset
from papi.data.loader import on_device
from papi.data.views.base import Normalise
from papi.methods.base import Method
from papi.methods.losses import candidate_argmax, candidate_softmax
from papi.methods.state import Confidence
from papi.runs.schema import Arrays
from papi.training.calibration import fit_temperature
from papi.training.engine import Measured
from papi.training.evaluation import Evaluation, evaluate
from papi.training.metrics import accuracy, calibration_error, class_similarity, criteria
from papi.training.selection import HeldOut

EMBEDDING_SAMPLE = 2000  # test samples whose embedding is kept for pictures
TRAINING_SAMPLE = 1000  # training samples, where there are no test samples


class Conclusion(NamedTuple):
    """What is measured at the end of a run, as far as it can be known."""

    arrays: Arrays
    calibration_error: float | None
    ambiguous: int  # training samples with several candidates
    ambiguous_resolved: int | None  # to the true label
    disambiguation_accuracy: float | None


class Evaluator:
    """Measures a method on the test samples and on the training labels it has resolved, as far as the truth is known.

    Samples held out of training are measured by their candidate sets alone. It remembers nothing of a method.
    """

    def __init__(
        self, dataset: Dataset, normalise: Normalise, device: torch.device, held_out: HeldOut | None = None
    ) -> None:
        self.held_out = held_out
        self.labels, self.test_labels = dataset.labels, dataset.test_labels
        self.normalise = normalise
        self.test_samples = None
        if dataset.test_samples is not None:
            self.test_samples = on_device(dataset.test_samples, device)

    def measure(self, method: Method) -> Measured:
        """The measurements of an epoch."""
        values = self._of_confidence(method)
        if self.held_out is not None:
            held = evaluate(method.result, self.held_out.samples, self.normalise)
            values |= criteria(held.probabilities.numpy(), self.held_out.candidates)
        test = self.test(method)
        if test is None or self.test_labels is None:
            return Measured(values, test)
        values["test_accuracy"] = accuracy(test.logits.argmax(1).numpy(), self.test_labels)
        values["calibration_error"] = calibration_error(test.probabilities.numpy(), self.test_labels)
        if test.prototype_scores is not None:
            values["prototype_accuracy"] = accuracy(test.prototype_scores.argmax(1).numpy(), self.test_labels)
        within, between = class_similarity(test.embedding.numpy(), self.test_labels)
        return Measured(values | {"intra_similarity": within, "inter_similarity": between}, test)

    def test(self, method: Method) -> Evaluation | None:
        """What the method's network says about the test samples, if there are any."""
        if self.test_samples is None:
            return None
        return evaluate(method.result, self.test_samples, self.normalise, method.prototypes)

    def _of_confidence(self, method: Method) -> dict[str, float]:
        if method.confidence is None:
            return {}
        confidence, resolved = method.confidence.highest()  # outside the candidates only where sets are doubted
        values = {"mean_confidence": float(confidence.mean())}
        if self.labels is not None:
            values["disambiguation_accuracy"] = accuracy(resolved.cpu().numpy(), self.labels)
        return values

    def temperature(self, method: Method, samples: Tensor) -> float:
        """What calibrates a method, by the candidate sets held out, else by those it was trained on.

        A network is surer of what it was trained on than of anything else: such samples can only tell that it is too
        sure of itself, never that it is too modest.
        """
        if self.held_out is not None:
            held = evaluate(method.result, self.held_out.samples, self.normalise)
            return fit_temperature(held.logits.numpy(), self.held_out.candidates)
        trained = evaluate(method.result, samples, self.normalise)
        return fit_temperature(trained.logits.numpy(), method.candidates[:].cpu().numpy(), lowest=1.0)

    def conclude(
        self, method: Method, samples: Tensor, test: Evaluation | None, temperature: float = 1.0
    ) -> Conclusion:
        """What a finished run keeps for pictures, and what is measured at its end.

        `test` is what the network says about the test samples. A method without a memory of its own resolves labels
        with the trained network, and so are those of samples held out. What each classifier says about the training
        samples now, within their candidates, is kept beside: where the two differ, a person should look.
        """
        candidates = method.candidates[:].cpu()
        prior = method.prior.shares(slice(None), method.candidates[:])
        arrays = self._resolve(method, samples, candidates, temperature, prior, method.confidence)
        right = None if self.labels is None else arrays["confidence"].argmax(1) == self.labels
        if self.held_out is not None:
            held_sets = torch.from_numpy(self.held_out.candidates)
            prior = method.prior.of_others(self.held_out.prior, held_sets)
            held = self._resolve(method, self.held_out.samples, held_sets, temperature, prior)
            arrays = {name: _merged(self.held_out.rows, arrays[name], held[name]) for name in arrays}
            arrays["held_out"] = np.flatnonzero(self.held_out.rows)
        error = None
        if test is None:
            arrays |= self._of_training(method, samples)
        else:
            arrays |= _of_test(test, temperature)
            if self.test_labels is not None:
                error = calibration_error(arrays["test_probabilities"], self.test_labels)
        if method.prototypes is not None:
            arrays["prototypes"] = method.prototypes.value.cpu().numpy()
        ambiguous = (candidates.sum(1) > 1).numpy()
        return Conclusion(
            arrays=Arrays.from_arrays(arrays),
            calibration_error=error,
            ambiguous=int(ambiguous.sum()),
            ambiguous_resolved=None if right is None else int(right[ambiguous].sum()),
            disambiguation_accuracy=None if right is None else float(right.mean()),
        )

    def _of_training(self, method: Method, samples: Tensor) -> dict[str, np.ndarray]:
        """Where the network places some training samples: a picture for those who have no test samples."""
        chosen = np.linspace(0, len(samples) - 1, min(TRAINING_SAMPLE, len(samples)), dtype=int)
        some = evaluate(method.network, samples[torch.from_numpy(chosen)], self.normalise)
        trained_on = np.arange(len(samples)) if self.held_out is None else np.flatnonzero(~self.held_out.rows)
        return {"training_embedding": some.embedding.numpy(), "training_index": trained_on[chosen]}

    def _resolve(
        self,
        method: Method,
        samples: Tensor,
        candidates: Tensor,
        temperature: float,
        prior: Tensor | None,
        known: Confidence | None = None,
    ) -> dict[str, np.ndarray]:
        """Confidence, the method's own if it is `known`, and the candidate that each classifier prefers.

        The second opinion is what the trained network thinks of the label that the confidence decided for. It is the
        network's alone; a confidence that is made of it counts the prior `(n, K)` as the guesses in training do.
        """
        now = evaluate(method.result, samples, self.normalise, method.prototypes)
        opinion = candidate_softmax(now.logits / temperature, candidates)
        if known is not None:
            confidence = known.all_rows.cpu()
        else:
            confidence = opinion if prior is None else candidate_softmax(now.logits / temperature, prior.cpu())
        arrays = {
            "confidence": confidence.numpy(),
            "second_opinion": opinion.gather(1, candidate_argmax(confidence, candidates)[:, None])[:, 0].numpy(),
            "linear_label": candidate_argmax(now.logits, candidates).numpy(),
        }
        if now.prototype_scores is not None:
            arrays["prototype_label"] = candidate_argmax(now.prototype_scores, candidates).numpy()
        return arrays


def _of_test(test: Evaluation, temperature: float) -> dict[str, np.ndarray]:
    count = len(test.logits)
    sample = np.linspace(0, count - 1, min(EMBEDDING_SAMPLE, count), dtype=int)
    return {
        "test_probabilities": test.calibrated(temperature).numpy(),
        "embedding": test.embedding.numpy()[sample],
        "embedding_index": sample,
    }


def _merged(held_out: np.ndarray, trained: np.ndarray, held: np.ndarray) -> np.ndarray:
    """One array of all samples in their order, from those trained on and those held out."""
    merged = np.empty((len(held_out), *trained.shape[1:]), trained.dtype)
    merged[~held_out], merged[held_out] = trained, held
    return merged
