"""The temperature: against a slow search, on a model that is too sure of itself, and in a whole run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from papi import train as run
from papi.config import RunConfig
from papi.data import candidates as generators
from papi.data.dataset import Dataset
from papi.inference import load
from papi.runs.folder import RunFolder
from papi.training.calibration import fit_temperature
from papi.training.metrics import calibration_error, candidate_likelihood


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(1, keepdims=True))
    shares: np.ndarray = powers / powers.sum(1, keepdims=True)
    return shares


def overconfident(factor: float, count: int = 4000, classes: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits of an honest model times a factor, with labels drawn as the honest model says, and candidate sets."""
    random = np.random.default_rng(0)
    honest = random.normal(0, 2, (count, classes))
    labels = (random.random((count, 1)) > softmax(honest).cumsum(1)).sum(1).clip(max=classes - 1)
    return honest * factor, labels, generators.uniform(labels, classes, 0.5, seed=0)


@pytest.mark.parametrize("factor", [0.4, 1.0, 3.0])
def test_the_temperature_is_found_from_candidate_sets_alone(factor: float) -> None:
    logits, labels, sets = overconfident(factor)
    found = fit_temperature(logits, sets)
    assert found == pytest.approx(factor, rel=0.1)
    slow = max(np.geomspace(0.05, 20, 1200), key=lambda t: candidate_likelihood(softmax(logits / t), sets))
    assert found == pytest.approx(slow, rel=0.01)
    before, after = calibration_error(softmax(logits), labels), calibration_error(softmax(logits / found), labels)
    assert after < 0.02
    assert factor == 1 or after < before / 3
    np.testing.assert_array_equal(softmax(logits).argmax(1), softmax(logits / found).argmax(1))


def test_sets_that_say_nothing_leave_a_model_as_it_is() -> None:
    assert fit_temperature(np.eye(3), np.ones((3, 3), bool)) == 1.0


def test_no_lower_than_asked() -> None:
    logits, _, sets = overconfident(0.4)
    assert fit_temperature(logits, sets, lowest=1.0) == pytest.approx(1.0, abs=1e-3)


def test_calibration_error_equals_one_answer_at_a_time() -> None:
    random = np.random.default_rng(1)
    probabilities = random.dirichlet(np.ones(4), 200)
    labels = random.integers(0, 4, 200)
    bins: dict[int, list[tuple[float, bool]]] = {}
    for p, label in zip(probabilities, labels, strict=True):
        bins.setdefault(min(9, int(p.max() * 10)), []).append((p.max(), p.argmax() == label))
    slow = sum(
        len(answers) / 200 * abs(np.mean([said for said, _ in answers]) - np.mean([right for _, right in answers]))
        for answers in bins.values()
    )
    assert calibration_error(probabilities, labels) == pytest.approx(slow)
    assert calibration_error(np.eye(3), np.arange(3)) == 0


@pytest.mark.parametrize("share", [0.0, 0.25])
def test_a_calibrated_run(toy_dataset: Dataset, tmp_path: Path, share: float) -> None:
    assert toy_dataset.labels is not None
    assert toy_dataset.test_samples is not None
    assert toy_dataset.test_labels is not None
    sets = generators.uniform(toy_dataset.labels, 4, 0.5, seed=0)
    config = RunConfig(
        data="toy", method="cc", epochs=4, batch_size=20, device="cpu", threads=1, data_holdout=share, calibrate=True
    )
    summaries = []
    for name, settings in (("calibrated", config), ("plain", replace(config, calibrate=False))):
        *_, last = run.fit(toy_dataset, sets, run.settings_for(settings, toy_dataset), RunFolder(tmp_path / name))
        assert isinstance(last, run.Finished)
        summaries.append(last.summary)
    calibrated, plain = summaries
    assert plain.temperature == 1
    assert plain.calibration_error == plain.uncalibrated_error == calibrated.uncalibrated_error
    models = [load(tmp_path / name) for name in ("calibrated", "plain")]
    probabilities, raw = (model.predict_proba(toy_dataset.test_samples) for model in models)
    assert models[0].card.temperature == calibrated.temperature
    assert calibration_error(probabilities, toy_dataset.test_labels) == pytest.approx(calibrated.calibration_error)
    np.testing.assert_allclose(probabilities, softmax(np.log(raw) / calibrated.temperature), atol=1e-5)
    np.testing.assert_array_equal(probabilities.argmax(1), raw.argmax(1))
    arrays = RunFolder(tmp_path / "calibrated").read_arrays()
    np.testing.assert_allclose(arrays.test_probabilities, probabilities, atol=1e-6)
    if share:
        held = arrays.held_out
        likelihoods = [candidate_likelihood(m.predict_proba(toy_dataset.samples[held]), sets[held]) for m in models]
        assert likelihoods[0] > likelihoods[1]
        assert calibrated.temperature != 1
    else:
        assert calibrated.temperature >= 1
