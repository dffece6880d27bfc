from dataclasses import dataclass
from typing import Literal

import pytest

from papi.errors import UserError
from papi.options import parse_options


@dataclass(frozen=True)
class Settings:
    rate: float = 0.1
    count: int = 3
    on: bool = True
    kind: Literal["soft", "hard"] = "soft"
    momenta: tuple[float, float] = (0.9, 0.5)
    limit: int | None = 5


def test_texts_become_values() -> None:
    texts = {"rate": "0.5", "count": "7", "on": "off", "kind": "hard", "momenta": "0.2,0", "limit": "none"}
    assert parse_options(Settings, texts) == Settings(0.5, 7, False, "hard", (0.2, 0.0), None)


def test_defaults_stay() -> None:
    assert parse_options(Settings, {}) == Settings()


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
