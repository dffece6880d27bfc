"""What an epoch, and a whole run, is measured by. This is the one part that knows true labels."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from papi.data.dataset import Dataset
from papi.data.views import Normalise
from papi.engine import Evaluation, evaluate
from papi.losses import candidate_argmax, candidate_softmax
from papi.methods.base import Method
from papi.metrics import accuracy, class_similarity

EMBEDDING_SAMPLE = 2000  # test images whose embedding is kept for pictures


class Evaluator:
    """Measures a method on the test images and on the training labels it has resolved, as far as the truth is known."""

    def __init__(self, dataset: Dataset, normalise: Normalise, device: torch.device) -> None:
        self.labels, self.test_labels = dataset.labels, dataset.test_labels
        self.normalise = normalise
        self.test_images = None
        if dataset.test_images is not None:
            self.test_images = torch.from_numpy(np.ascontiguousarray(dataset.test_images)).to(device)
        self.last: Evaluation | None = None

    def __call__(self, method: Method) -> dict[str, float]:
        """The measurements of an epoch."""
        row: dict[str, float] = {}
        if method.confidence is not None:
            confidence = method.confidence.value
            row["mean_confidence"] = float(confidence.amax(1).mean())
            if self.labels is not None:
                resolved = confidence.argmax(1).cpu().numpy()  # outside the candidates only where sets are doubted
                row["disambiguation_accuracy"] = accuracy(resolved, self.labels)
        if self.test_images is None:
            return row
        self.last = evaluate(method.network, self.test_images, self.normalise, method.prototypes)
        if self.test_labels is None:
            return row
        row["test_accuracy"] = accuracy(self.last.probabilities.argmax(1).numpy(), self.test_labels)
        if self.last.prototype_scores is not None:
            row["prototype_accuracy"] = accuracy(self.last.prototype_scores.argmax(1).numpy(), self.test_labels)
        within, between = class_similarity(self.last.embedding.numpy(), self.test_labels)
        return row | {"intra_similarity": within, "inter_similarity": between}

    def conclude(self, method: Method, images: Tensor) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """What a finished run keeps for pictures, and how well it resolved the training labels, if that can be known.

        A method without a memory of its own resolves labels with the trained network. What each classifier says about
        the training images now, within their candidates, is kept beside: where the two differ, a person should look.
        """
        candidates = method.candidates.cpu()
        now = evaluate(method.network, images, self.normalise, method.prototypes)
        if method.confidence is not None:
            confidence = method.confidence.value.cpu()
        else:
            confidence = candidate_softmax(now.probabilities.clamp_min(1e-30).log(), candidates)
        arrays = {
            "confidence": confidence.numpy(),
            "linear_label": candidate_argmax(now.probabilities, candidates).numpy(),
        }
        if now.prototype_scores is not None:
            arrays["prototype_label"] = candidate_argmax(now.prototype_scores, candidates).numpy()
        if self.test_images is not None:
            test = self.last or evaluate(method.network, self.test_images, self.normalise, method.prototypes)
            sample = np.linspace(0, len(self.test_images) - 1, min(EMBEDDING_SAMPLE, len(self.test_images)), dtype=int)
            arrays["test_probabilities"] = test.probabilities.numpy()
            arrays["embedding"] = test.embedding.numpy()[sample]
            arrays["embedding_index"] = sample
        if method.prototypes is not None:
            arrays["prototypes"] = method.prototypes.value.cpu().numpy()
        ambiguous = (candidates.sum(1) > 1).numpy()
        resolved: dict[str, Any] = {"ambiguous_images": int(ambiguous.sum()), "disambiguation_accuracy": None}
        if self.labels is not None:
            right = confidence.argmax(1).numpy() == self.labels
            resolved["disambiguation_accuracy"] = float(right.mean())
            resolved["ambiguous_resolved"] = int(right[ambiguous].sum())
        return arrays, resolved
