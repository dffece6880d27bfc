"""The comparison of trained models notices what it should."""

import shlex
from pathlib import Path

import pytest

import papi.cli
from papi.methods import METHODS
from recipes.same_weights import CASES, COMMON, ROOT, checkout, train_all, write_features


@pytest.mark.parametrize("name", CASES)
def test_every_case_is_a_command(name: str) -> None:
    words = shlex.split(f"train {COMMON} {CASES[name]}".format(features="features.npz"))
    papi.cli.app.parse_args(words, exit_on_error=False, print_error=False)


def test_every_method_is_compared_with_both_presets() -> None:
    for method in METHODS:
        assert {f"{method}, quick", f"{method}, paper"} <= CASES.keys()


def test_equal_sources_give_equal_models_and_a_failure_is_told(tmp_path: Path) -> None:
    short = "--limit 40 --epochs 1 --batch-size 20 --network small --method proden"
    cases = {"same": short, "again": short, "seed": f"{short} --seed 1", "fails": f"{short} --data missing.npz"}
    write_features(tmp_path / "features.npz")
    models = train_all(ROOT / "src", tmp_path / "out", tmp_path / "features.npz", cases)
    assert models["same"] == models["again"] != models["seed"]
    assert models["fails"] == "no model"


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the sources are not a checkout")
def test_the_sources_of_a_revision(tmp_path: Path) -> None:
    checkout("HEAD", tmp_path / "sources")
    assert (tmp_path / "sources" / "src" / "papi" / "__init__.py").exists()
