from collections.abc import Callable
from pathlib import Path

import pytest

from papi.runs.folder import RunFolder
from run_folders import write_run


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., RunFolder]:
    """`make_run("name", truth=False)` writes a run folder of that name."""
    return lambda name="run", **options: write_run(tmp_path / name, **options)
