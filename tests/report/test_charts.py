"""Which charts a page has, and what they say to those who cannot see them."""

from pathlib import Path

import numpy as np
import pytest

from papi.report import charts
from papi.report.comparison import standings
from papi.report.mistakes import reliability
from papi.report.run import Run
from papi.runs.schema import EpochRow, Summary
from runs_in_memory import epochs, run_of

ROWS = epochs(
    2,
    test_accuracy=[0.5, 0.75],
    prototype_accuracy=[0.25, 0.5],
    disambiguation_accuracy=[0.1, 0.9],
    mean_confidence=[0.3, 0.6],
    intra_similarity=[0.5, 0.8],
    inter_similarity=[0.4, 0.1],
)


def titles(found: list[charts.Chart]) -> list[str]:
    return [chart.title for chart in found]


def test_curves_of_a_run() -> None:
    found = charts.learning(Run(Path("run"), rows=ROWS))
    assert titles(found) == ["Loss", "Test accuracy", "Resolved labels"]
    assert "classifier from 50.0% to 75.0%; prototypes from 25.0% to 50.0%" in found[1].alt
    assert "from 10.0% to 90.0%" in found[2].alt


def test_the_parts_of_the_loss_are_named() -> None:
    logs = {"loss_alignment": 0.5, "loss_classification": 1.0, "rate": 3.0}
    rows = tuple(EpochRow(epoch=n, loss=1.5 - n / 2, seconds=1.0, logs=logs) for n in range(2))
    (loss,) = charts.learning(Run(Path("run"), rows=rows))
    assert "alignment and classification" in loss.caption
    assert "rate" not in loss.caption.split()
    assert "from 1.50 to 1.00" in loss.alt


def test_a_method_without_prototypes_is_not_said_to_have_them() -> None:
    found = charts.learning(Run(Path("run"), rows=epochs(2, test_accuracy=[0.5, 0.75])))
    assert "prototypes" not in found[1].caption


def test_nothing_measured_nothing_drawn() -> None:
    empty = Run(Path("run"))
    assert charts.learning(empty) == charts.sharpening(empty) == charts.grouping(empty) == []
    rows = epochs(2, loss=[float("nan"), float("inf")], test_accuracy=[None, float("nan")])
    assert charts.learning(Run(Path("run"), rows=rows)) == []


def test_how_sure_a_run_became() -> None:
    run = run_of([[0.75, 0.25], [1.0, 0.0]], rows=ROWS)
    over_epochs, from_first = charts.sharpening(run)
    assert "from 30.0% to 60.0%" in over_epochs.alt
    assert "75.0% before training and 87.5% after training" in from_first.alt
    assert "clearly preferred" in from_first.caption
    assert "still ambiguous" in charts.sharpening(run_of([[0.55, 0.45]]))[0].caption


def test_similarities_without_a_map() -> None:
    (found,) = charts.grouping(Run(Path("run"), rows=ROWS))
    assert found.alt == "Similarity in the last epoch: within a class 0.80; between classes 0.10."


@pytest.mark.parametrize(
    ("said", "right", "verdict"),
    [(0.95, 0.5, "overconfident"), (0.55, 1.0, "underconfident"), (0.5, 0.5, "well calibrated")],
)
def test_whether_a_model_is_too_sure(said: float, right: float, verdict: str) -> None:
    answers = np.arange(10) < 10 * right
    assert verdict in charts.trust(reliability(np.full(10, said), answers)).alt


def test_the_same_measurement_of_all_runs() -> None:
    runs = [Run(Path("one"), rows=ROWS), Run(Path("two"), rows=epochs(1, test_accuracy=[0.2]))]
    found = charts.overlaid(standings(runs)[1])
    assert titles(found) == ["Test accuracy", "Resolved labels", "Confidence"]
    assert "one from 50.0% to 75.0%; two from 20.0% to 20.0%" in found[0].alt
    assert "two" not in found[1].alt
    assert charts.overlaid(standings([Run(Path("empty"))])[1]) == []


def finished(rate: float | None, accuracy: float, seconds: float) -> Run:
    summary = Summary(method="papi", dataset="toy", seconds=seconds, epochs=1, flip_rate=rate, test_accuracy=accuracy)
    return Run(Path("run"), summary=summary, finished=True)


def test_what_accuracy_costs() -> None:
    found = charts.against(standings([finished(0.1, 0.9, 60), finished(0.5, 0.7, 120)])[1])
    assert titles(found) == ["Accuracy against ambiguity", "Accuracy against compute"]
    assert found[0].alt == "papi: 90.0% at 0.1, 70.0% at 0.5"
    assert "90.0% in 1.0 minutes" in found[1].alt
    assert titles(charts.against(standings([finished(None, 0.9, 60)])[1])) == ["Accuracy against compute"]
    assert charts.against(standings([Run(Path("empty"))])[1]) == []
