"""The message about an unknown name stays readable, however many names are known."""

import time

import pytest

from papi.errors import missing, unknown


def test_the_nearest_name_is_suggested() -> None:
    assert "did you mean 'papi'? Choose from papi, pico." in str(unknown("method", "pappi", ["papi", "pico"]))
    assert "did you mean" not in str(unknown("method", "xxxxxx", ["papi", "pico"]))


@pytest.mark.parametrize("got", ["c12x", "9" * 100_000])
def test_very_many_or_long_names(got: str) -> None:
    start = time.monotonic()
    said = str(unknown("label", got, (f"c{k}" for k in range(200_000))))
    assert time.monotonic() - start < 20
    assert len(said) < 5000
    assert "and 199,800 more." in said


def test_a_missing_name_is_told_with_what_is_there() -> None:
    assert str(missing("t.csv", "column", "label", ["labels", "x"])) == (
        "t.csv has no column 'label', only labels, x: did you mean 'labels'?"
    )
    assert str(missing("t.npz", "array", "images", [])) == "t.npz has no array 'images': add it."
