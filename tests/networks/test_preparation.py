"""What an encoder expects of photos: every value comes from somebody else's file."""

import json
from typing import Any

import pytest

from papi.networks.preparation import Preparation


def test_what_most_encoders_expect() -> None:
    assert Preparation().shape == (3, 224, 224)
    assert Preparation().kept == 256


def test_the_shorter_side_is_never_below_eight_sevenths() -> None:
    assert all(Preparation(size).kept * 7 >= size * 8 > (Preparation(size).kept - 1) * 7 for size in range(1, 600))


def test_it_is_read_back_from_json() -> None:
    preparation = Preparation(32, (0.5, 0.4, 0.3), (1.0, 2.0, 3.0), "bilinear")
    assert Preparation.from_json(json.loads(json.dumps(preparation.to_json()))) == preparation


@pytest.mark.parametrize(
    "values",
    [
        {"size": 0},
        {"size": 10**9},
        {"size": True},
        {"size": "224"},
        {"mean": (0.5,)},
        {"mean": (0.5, 0.5, float("nan"))},
        {"mean": (0.5, 0.5, "0.5")},
        {"std": (1.0, 1.0, 0.0)},
        {"std": (1.0, 1.0, -1.0)},
        {"std": (1.0, 1.0, float("inf"))},
        {"interpolation": "whatever"},
        {"interpolation": 3},
    ],
)
def test_values_that_make_no_sense(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"its .* is"):
        Preparation(**values)
