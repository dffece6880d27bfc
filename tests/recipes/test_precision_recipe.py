"""What was measured in both precisions: the table on the page, and which methods use bf16."""

from dataclasses import replace
from pathlib import Path

import pytest

from papi.config import RunConfig
from papi.experiments import cells
from papi.methods import METHODS, find_method
from recipes import precision


def row(method: str, precision: str, seed: int, accuracy: float) -> dict[str, object]:
    config = RunConfig(method=method, limit=20, epochs=1, network="small", seed=seed)
    return {
        "settings": cells.differing(replace(config, precision=precision)),  # type: ignore[arg-type]
        "values": {"accuracy": accuracy},
    }


def test_the_page_has_the_table_of_the_rows() -> None:
    assert precision.table(precision.read_rows()) in precision.PAGE.read_text(encoding="utf-8")


def test_methods_in_bf16_were_measured() -> None:
    measured = precision.table(precision.read_rows())
    for name in METHODS:
        assert not find_method(name).bf16 or f"| `{name}` |" in measured


def test_only_seeds_in_both_precisions_are_compared() -> None:
    rows = [
        row("papi", "fp32", 0, 0.5),
        row("papi", "fp32", 1, 0.9),
        row("papi", "bf16", 0, 0.6),
        row("cc", "fp32", 0, 1),
    ]
    (line,) = precision.table(rows).splitlines()[2:]
    assert line == "| fashion-mini, 20 images, 1 epochs | `small` | `papi` | 50.00 ± 0.00 | 60.00 ± 0.00 | +10.00 |"


@pytest.mark.parametrize("name", precision.PRECISIONS)
def test_a_run_is_measured_on_training_images(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "ROWS", tmp_path / "rows.jsonl")
    config = RunConfig(data="digits", limit=60, epochs=1, network="small", method="cc", threads=1, device="cpu")
    found = precision.train(replace(config, precision=name))  # type: ignore[arg-type]
    assert 0 <= found["values"]["accuracy"] <= 1
    assert found["settings"].get("precision", "fp32") == name
