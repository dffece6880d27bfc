from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papi.config import as_typed
from papi.errors import UserError
from papi.methods import find_method
from papi.methods.config import MethodConfig
from papi.methods.options import parse_options


@dataclass(frozen=True)
class Settings(MethodConfig):
    rate: float = 0.1
    count: int = 3
    on: bool = True
    kind: Literal["soft", "hard"] = "soft"
    momenta: tuple[float, float] = (0.9, 0.5)
    limit: int | None = 5


def test_texts_become_values() -> None:
    texts = {"rate": "0.5", "count": "7", "on": "off", "kind": "hard", "momenta": "0.2,0", "limit": "none"}
    values = parse_options(Settings, texts)
    assert Settings(**values) == Settings(0.5, 7, False, "hard", (0.2, 0.0), None)
    assert {name: as_typed(value) for name, value in values.items()} == texts | {"momenta": "0.2,0.0"}


def test_what_is_not_given_stays_open() -> None:
    assert parse_options(Settings, {}) == {}


numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(numbers, st.integers(), st.booleans(), st.sampled_from(["soft", "hard"]), st.none() | st.integers())
def test_any_value_can_be_typed_again(rate: float, count: int, on: bool, kind: str, limit: int | None) -> None:
    values = {"rate": rate, "count": count, "on": on, "kind": kind, "momenta": (rate, -rate), "limit": limit}
    assert parse_options(Settings, {name: as_typed(value) for name, value in values.items()}) == values


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ({"rte": "1"}, "did you mean 'rate'"),
        ({"rate": "fast"}, "type float"),
        ({"count": "1.5"}, "type int"),
        ({"on": "perhaps"}, "on or off"),
        ({"kind": "medium"}, "one of soft, hard"),
        ({"momenta": "0.2"}, "2 numbers"),
    ],
)
def test_misfits_are_explained(texts: dict[str, str], says: str) -> None:
    with pytest.raises(UserError, match=says):
        parse_options(Settings, texts)


@pytest.mark.parametrize(
    ("method", "text", "says"),
    [
        ("papi", "mixup_alpha=0", "--option mixup_alpha must be above 0; got 0"),
        ("papi", "temperature=-1", "--option temperature must be above 0; got -1"),
        ("papi", "confidence_momentum=0.9,2", "--option confidence_momentum must be between 0 and 1; got 0.9,2"),
        ("papi", "alignment_weight=nan", "--option alignment_weight must be 0 or more; got nan"),
        ("dpll", "ramp_epochs=-3", "--option ramp_epochs must be 0 or more; got -3"),
        ("lws", "beta=inf", "--option beta must be 0 or more; got inf"),
        ("pico", "queue=0", "--option queue must be above 0; got 0"),
        ("pico", "encoder_momentum=1.5", "--option encoder_momentum must be between 0 and 1; got 1.5"),
        ("valen", "neighbours=-1", "--option neighbours must be 0 or more; got -1"),
        ("valen", "correction=2", "--option correction must be between 0 and 1; got 2"),
    ],
)
def test_values_out_of_range_are_explained(method: str, text: str, says: str) -> None:
    kind = find_method(method).Config
    values = parse_options(kind, dict([text.split("=")]))
    with pytest.raises(UserError, match=says):
        kind(**values)
