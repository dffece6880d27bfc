"""The scikit-learn example, on fewer digits."""

from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_pipeline_a_grid_search_and_a_pickle(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    import sklearn_pipeline

    assert sklearn_pipeline.main(samples=300, epochs=4) > 0.6  # chance is 0.1
    told = capsys.readouterr().out
    assert "papi: predictions among the candidates" in told
    assert "cc: predictions among the candidates" in told
    assert "correctly resolved" in told
