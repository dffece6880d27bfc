"""Evaluates epochs and runs. Only this module uses true labels."""

from collections.abc import Callable, Iterator
from functools import reduce
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from papi.data.dataset import Dataset
from papi.data.loader import on_device, rows_at_once, values_of
from papi.data.packed_rows import Matrix, PackedRows
from papi.data.views.base import Normalise
from papi.methods.base import Method
from papi.methods.losses import candidate_argmax, candidate_softmax
from papi.methods.packed import Candidates, PackedSets
from papi.methods.state import Confidence
from papi.runs.schema import Arrays
from papi.training.calibration import fit_temperature
from papi.training.engine import Measured
from papi.training.evaluation import Evaluation, evaluate
from papi.training.metrics import accuracy, calibration_error, class_similarity, criteria
from papi.training.selection import HeldOut

EMBEDDING_SAMPLE = 2000  # test samples whose embedding is saved for plots
ENTRIES = 2**24  # samples times classes that are processed at once; a quarter of it took 9 GB for a million samples
ASKED = 20_000  # training samples used for calibration if there are more than ENTRIES
TRAINING_SAMPLE = 1000  # training samples whose embedding is saved if there are no test samples


class Conclusion(NamedTuple):
    """The evaluation at the end of a run, as far as true labels are available."""

    arrays: Arrays
    calibration_error: float | None
    ambiguous: int  # training samples with several candidates
    ambiguous_resolved: int | None  # to the true label
    disambiguation_accuracy: float | None


class Evaluator:
    """Evaluates a method on the test samples and on its resolved training labels, where true labels are known.

    On the validation set only candidate labels are used. The evaluator keeps no state of a method.
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
        """The metrics of an epoch."""
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
        """The outputs of the method's network for the test samples, if there are any."""
        if self.test_samples is None:
            return None
        return evaluate(method.result, self.test_samples, self.normalise, method.prototypes)

    def _of_confidence(self, method: Method) -> dict[str, float]:
        if method.confidence is None:
            return {}
        confidence, resolved = method.confidence.highest()  # a non-candidate only if the method models noisy sets
        values = {"mean_confidence": float(confidence.mean())}
        if self.labels is not None:
            values["disambiguation_accuracy"] = accuracy(resolved.cpu().numpy(), self.labels)
        return values

    def temperature(self, method: Method, samples: Tensor) -> float:
        """Fit the temperature of a method on the validation set, or on the training set if there is none.

        A network is more confident on its training samples than on others. They can show that it is overconfident, but
        not that it is underconfident, so a temperature fitted on them is at least 1.
        """
        if self.held_out is not None:
            held = evaluate(method.result, self.held_out.samples, self.normalise)
            return fit_temperature(held.logits.numpy(), self.held_out.candidates)
        if method.candidates.shape.numel() <= ENTRIES:
            rows = torch.arange(len(samples))
        else:  # too many to fit into memory, and more than one number needs
            rows = torch.from_numpy(np.linspace(0, len(samples) - 1, min(ASKED, len(samples)), dtype=int))
        trained = evaluate(method.result, samples, self.normalise, chosen=rows)
        sets = method.candidates[rows.to(method.candidates.device)].cpu().numpy()
        return fit_temperature(trained.logits.numpy(), sets, lowest=1.0)

    def conclude(
        self, method: Method, samples: Tensor, test: Evaluation | None, temperature: float = 1.0
    ) -> Conclusion:
        """Compute the arrays that a finished run saves for reports, and its final metrics.

        `test` has the network's outputs for the test samples. The trained network resolves the labels of the validation
        set, and all labels if the method stores no confidence. The label that each classifier now prefers among the
        candidates of each training sample is also saved: samples on which the two differ are worth a second look.
        """
        own = self._resolve(method, samples, method.candidates, temperature, method.prior.shares, method.confidence)
        right = None if self.labels is None else own.likeliest == self.labels
        arrays, confidence = own.arrays, own.confidence
        if self.held_out is not None:
            held = self._resolve_held_out(method, self.held_out, temperature)
            arrays = {name: _merged(self.held_out.rows, arrays[name], held.arrays[name]) for name in arrays}
            confidence = _merged_rows(self.held_out.rows, confidence, held.confidence)
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
        ambiguous = own.sizes > 1
        return Conclusion(
            arrays=Arrays(confidence=confidence, **arrays),
            calibration_error=error,
            ambiguous=int(ambiguous.sum()),
            ambiguous_resolved=None if right is None else int(right[ambiguous].sum()),
            disambiguation_accuracy=None if right is None else float(right.mean()),
        )

    def _of_training(self, method: Method, samples: Tensor) -> dict[str, np.ndarray]:
        """Embeddings of some training samples, to plot if there are no test samples."""
        chosen = np.linspace(0, len(samples) - 1, min(TRAINING_SAMPLE, len(samples)), dtype=int)
        some = evaluate(method.network, samples, self.normalise, chosen=torch.from_numpy(chosen))
        trained_on = np.arange(len(samples)) if self.held_out is None else np.flatnonzero(~self.held_out.rows)
        return {"training_embedding": some.embedding.numpy(), "training_index": trained_on[chosen]}

    def _resolve_held_out(self, method: Method, held_out: HeldOut, temperature: float) -> "_Labels":
        """Resolve the labels of the validation set."""
        sets = torch.from_numpy(held_out.candidates)

        def prior(rows: slice, candidates: Tensor) -> Tensor | None:
            return method.prior.of_others(None if held_out.prior is None else held_out.prior[rows], candidates)

        return self._resolve(method, held_out.samples, sets, temperature, prior)

    def _resolve(
        self,
        method: Method,
        samples: Tensor,
        candidates: Candidates,
        temperature: float,
        prior: Callable[[slice, Tensor], Tensor | None],
        known: Confidence | None = None,
    ) -> "_Labels":
        """Return the confidence, which is the method's own if `known`, and the candidate that each classifier prefers.

        The second opinion is the trained network's probability of the label with the highest confidence. It does not
        use the prior `(n, K)`; a confidence computed from the network does, like the label estimates in training.
        Samples are processed in parts to limit memory.
        """
        packs = isinstance(method.candidates, PackedSets)

        def resolved(rows: slice) -> _Labels:  # its temporary arrays are freed before those of the next part
            sets = candidates[rows]
            now = evaluate(method.result, samples[rows], self.normalise, method.prototypes)
            given = prior(rows, sets) if known is None else None
            sets = sets.cpu()
            opinion = candidate_softmax(now.logits / temperature, sets)
            if known is not None:
                confidence = known[rows].cpu()
            else:
                confidence = opinion if given is None else candidate_softmax(now.logits / temperature, given.cpu())
            arrays = {
                "second_opinion": opinion.gather(1, candidate_argmax(confidence, sets)[:, None])[:, 0].numpy(),
                "linear_label": candidate_argmax(now.logits, sets).numpy(),
            }
            if now.prototype_scores is not None:
                arrays["prototype_label"] = candidate_argmax(now.prototype_scores, sets).numpy()
            likeliest, sizes, whole = confidence.argmax(1).numpy(), sets.numpy().sum(1), confidence.numpy()
            return _Labels(PackedRows.of(whole, sets.numpy()) if packs else whole, arrays, likeliest, sizes)

        parts = [resolved(rows) for rows in self._parts(samples, candidates.shape[1])]
        return _Labels(
            reduce(_joined, (part.confidence for part in parts)),
            {name: np.concatenate([part.arrays[name] for part in parts]) for name in parts[0].arrays},
            np.concatenate([part.likeliest for part in parts]),
            np.concatenate([part.sizes for part in parts]),
        )

    def _parts(self, samples: Tensor, classes: int) -> Iterator[slice]:
        """Slices of whole batches, so that the network gets the same batches as in one pass over all samples."""
        batch = rows_at_once(values_of(samples, self.normalise))
        at_once = max(1, ENTRIES // classes // batch) * batch
        return (slice(start, start + at_once) for start in range(0, len(samples), at_once))


class _Labels(NamedTuple):
    """The resolved labels of samples at the end of a run."""

    confidence: Matrix  # (n, K)
    arrays: dict[str, np.ndarray]  # other saved arrays, by name
    likeliest: np.ndarray  # (n,) the label with the highest confidence
    sizes: np.ndarray  # (n,) number of candidates


def _of_test(test: Evaluation, temperature: float) -> dict[str, np.ndarray]:
    count = len(test.logits)
    sample = np.linspace(0, count - 1, min(EMBEDDING_SAMPLE, count), dtype=int)
    return {
        "test_probabilities": test.calibrated(temperature).numpy(),
        "embedding": test.embedding.numpy()[sample],
        "embedding_index": sample,
    }


def _joined(first: Matrix, second: Matrix) -> Matrix:
    if isinstance(first, PackedRows) and isinstance(second, PackedRows):
        return first.followed_by(second)
    return np.concatenate((np.asarray(first), np.asarray(second)))


def _merged_rows(held_out: np.ndarray, trained: Matrix, held: Matrix) -> Matrix:
    """Like `_merged`, for dense or packed matrices."""
    if not isinstance(trained, PackedRows) or not isinstance(held, PackedRows):
        return _merged(held_out, np.asarray(trained), np.asarray(held))
    return trained.followed_by(held).taking(np.argsort(np.argsort(held_out, kind="stable"), kind="stable"))


def _merged(held_out: np.ndarray, trained: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Merge the arrays of training and validation samples into one array in the original order."""
    merged = np.empty((len(held_out), *trained.shape[1:]), trained.dtype)
    merged[~held_out], merged[held_out] = trained, held
    return merged
