from collections.abc import Iterator

import pytest
from preloaded import Preloaded, preloaded


@pytest.fixture(scope="session")
def processes() -> Iterator[Preloaded]:
    """Starts real processes quickly."""
    with preloaded() as started:
        yield started
