"""Temperature scaling: divides logits by one number, so that a confidence of 90 % means an accuracy of 90 %."""

import numpy as np

LOWEST, HIGHEST = 0.05, 20.0
SAMPLES = 10_000  # enough to fit one number in less than a second


def fit_temperature(logits: np.ndarray, candidates: np.ndarray, *, lowest: float = LOWEST) -> float:
    """Fit the temperature T for which softmax(logits / T) maximises the likelihood of candidate sets `(N, K) bool`.

    The objective is the mean of log(sum of the probabilities of the candidates). If wrong labels are added to a set
    independently of the true label, this is the likelihood of the sets, so with enough sets T is as good as one fitted
    on true labels. Sets that contain all labels are ignored; if all sets do, T is 1.
    """
    # imported here so that training starts quickly
    from scipy.optimize import minimize_scalar  # type: ignore[import-untyped]
    from scipy.special import logsumexp  # type: ignore[import-untyped]

    telling = np.flatnonzero(~candidates.all(1))
    if not len(telling):
        return 1.0
    rows = telling[np.linspace(0, len(telling) - 1, min(SAMPLES, len(telling)), dtype=int)]
    some = logits[rows].astype(np.float64)
    inside = np.where(candidates[rows], some, -np.inf)

    def loss(log_temperature: float) -> float:
        sharpness = np.exp(-log_temperature)
        return float((logsumexp(some * sharpness, axis=1) - logsumexp(inside * sharpness, axis=1)).mean())

    # The loss may have several minima: evaluate it on a grid first, then refine around the lowest value.
    grid = np.linspace(np.log(lowest), np.log(HIGHEST), 41)
    best = int(np.argmin([loss(place) for place in grid]))
    bounds = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-4})
    return float(np.exp(min(found.x, grid[best], key=loss)))
