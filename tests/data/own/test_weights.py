"""Weights of candidates: every way to write them, what they come to, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from papi.data.own.annotations import read_annotations
from papi.data.own.entries import Rules
from papi.data.own.weights import shares, weighed_labels, weights_beside, wrong_weight
from papi.errors import UserError


def weights_of(folder: Path, text: str, suffix: str = "csv", threshold: float = 0.0) -> dict[str, dict[str, float]]:
    """File → label → share, for candidates alone."""
    path = folder / f"labels.{suffix}"
    path.write_text(text, "utf-8")
    found = read_annotations(path, Rules(threshold=threshold))
    assert found.weights is not None
    assert found.weights.dtype == np.float32
    assert ((found.weights > 0) == found.candidates).all()
    return {
        name: {found.class_names[k]: round(float(row[k]), 4) for k in np.flatnonzero(row)}
        for name, row in zip(found.file_names or (), found.weights, strict=True)
    }


EXPECTED = {"a": {"rose": 0.8, "tulip": 0.2}, "b": {"tulip": 1.0}}


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        ("csv", "file_name,candidates\na,rose:0.8|tulip:0.2\nb,tulip:1\n"),
        ("csv", "file_name,candidates\na,rose: 80 %| tulip : 20%\nb,tulip:3\n"),
        ("csv", "file_name,candidates\na,rose:4|tulip:1|violet:0\nb,tulip\n"),
        ("csv", 'file_name,candidates\na,"{""rose"": 0.8, ""tulip"": 0.2}"\nb,tulip\n'),
        ("csv", "file_name,candidates,weights\na,rose|tulip,0.8|0.2\nb,tulip,\n"),
        ("csv", "file_name,rose,tulip\na,0.8,0.2\nb,0,1\n"),
        ("csv", "file_name,annotator,label,weight\na,ann,rose,4\na,bob,tulip,1\nb,ann,tulip,2\n"),
        ("csv", "file_name,annotator,label\na,ann,rose:0.9|tulip:0.1\na,bob,rose:0.7|tulip:0.3\nb,ann,tulip\n"),
        ("jsonl", '{"file_name": "a", "candidates": {"rose": 0.8, "tulip": 0.2}}\n'
                  '{"file_name": "b", "candidates": ["tulip"]}\n'),
        ("jsonl", '{"file_name": "a", "candidates": ["rose", "tulip"], "weights": [8, 2]}\n'
                  '{"file_name": "b", "candidates": "tulip", "weights": 1}\n'),
    ],
)  # fmt: skip
def test_forms_of_one_table(suffix: str, text: str, tmp_path: Path) -> None:
    assert weights_of(tmp_path, text, suffix) == EXPECTED


def test_a_threshold_makes_sets(tmp_path: Path) -> None:
    text = "file_name,candidates\na,rose:0.5|tulip:0.3|violet:0.2\nb,rose:0.2|tulip:0.2|violet:0.2|lily:0.4\n"
    assert weights_of(tmp_path, text, threshold=0.3) == {"a": {"rose": 0.625, "tulip": 0.375}, "b": {"lily": 1.0}}
    assert weights_of(tmp_path, text, threshold=1)["a"] == {"rose": 1.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,rose:0.8|tulip\n", "line 2 has weights for some candidates, but none for 'tulip'"),
        ("a,rose:0|tulip:0\n", "line 2 has no weight above zero"),
        ("a,rose:1e999|tulip:1\n", "line 2 has the weight inf for 'rose'"),
        ("a,rose:0.5|rose:0.5\n", "line 2 has two weights for one label"),
        ("a,rose:1.2.3|tulip:1\n", "line 2 has weights for some candidates, but none for 'rose:1.2.3'"),
        ('a,"{""rose"": ""much""}"\n', "line 2 has candidates without a number for each label"),
        ('a,"{rose}"\n', "line 2 has candidates that are not a JSON object"),
    ],
)
def test_wrong_weights(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        weights_of(tmp_path, "file_name,candidates\n" + text)


@pytest.mark.parametrize(("cell", "message"), [("0.5", "1 weights for 2"), ("a|b", "not numbers"), ([1, -1], "-1")])
def test_wrong_weights_beside(cell: object, message: str) -> None:
    found = weights_beside(["rose", "tulip"], cell)
    told = found if isinstance(found, str) else wrong_weight(found)
    assert message in str(told)


def test_names_with_a_colon_and_a_number() -> None:
    assert weighed_labels('["16:9", "4:3"]') == (["16:9", "4:3"], {})
    assert weighed_labels("16:9|4:3", classes=["16:9", "4:3"]) == (["16:9", "4:3"], {})
    assert weighed_labels(["16:9"]) == (["16:9"], {})
    assert weighed_labels("a:b|c") == (["a:b", "c"], {})


@given(
    arrays(np.float64, (3, 4), elements=st.floats(0, 1e300)),
    arrays(bool, (3, 4), elements=st.booleans()),
    st.floats(0, 1),
)
def test_shares_are_a_prior_on_the_sets(weights: np.ndarray, candidates: np.ndarray, threshold: float) -> None:
    kept, share = shares(candidates, weights, threshold)
    assert not kept[~candidates].any()
    assert (kept == (share > 0)).all()
    for row in range(3):
        inside = weights[row][candidates[row]]
        assert share[row].sum() == pytest.approx(1 if inside.any() else 0, abs=1e-5)
        if inside.any():
            assert kept[row, np.where(candidates[row], weights[row], -1).argmax()]
