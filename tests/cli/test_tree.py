"""`--classes.tree` from the table to the page: coarse labels train, and every level is measured."""

from pathlib import Path

import numpy as np
import pytest

from command import papi_exit_code


def test_levels_are_measured_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draws = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), 20)
    points = np.eye(4)[truth] * 4 + draws.normal(size=(80, 4))
    names, groups = np.array(["rose", "apple", "cat", "dog"]), np.array(["plants", "plants", "animals", "animals"])
    said = [groups[k] if row % 3 == 0 else f"{names[k]}|{names[(k + 1) % 4]}" for row, k in enumerate(truth)]
    lines = [",".join([*map(str, point), one, names[k]]) for point, one, k in zip(points, said, truth, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,d,candidates,label", *lines]) + "\n")
    tree = "label,parent\n" + "".join(f"{name},{group}\n" for name, group in zip(names, groups, strict=True))
    (tmp_path / "tree.csv").write_text(tree)
    assert papi_exit_code("check", tmp_path / "t.csv", "--classes.tree", tmp_path / "tree.csv") == 0
    assert "plants (2), animals (2)" in capsys.readouterr().out
    options = ("--epochs", 2, "--threads", 1, "--device", "cpu", "--out", tmp_path / "run")
    data = ("--data", tmp_path / "t.csv", "--classes.tree", tmp_path / "tree.csv")
    assert papi_exit_code("train", *data, *options) == 0
    assert papi_exit_code("evaluate", tmp_path / "run") == 0
    assert "Accuracy at level 1 of the hierarchy (2 groups)" in capsys.readouterr().out
    assert papi_exit_code("report", tmp_path / "run") == 0
    assert "Accuracy at level 1" in (tmp_path / "run" / "report.html").read_text()
