"""What docs/experiments.md says of the suites is what they are."""

import re
from pathlib import Path

from papi.experiments import SUITES, cells
from papi.experiments.estimate import gpu_hours

PAGE = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text()


def test_runs_and_gpu_hours() -> None:
    told = dict(re.findall(r"^\| (?:`([\w-]+)`|all, each run once) \| (\d+ \| [\d,]+) \|$", PAGE, re.MULTILINE))
    everything = {}
    for suite in SUITES["paper"].values():
        runs = {cells.key(config): config for config in suite.cells()}
        assert told[suite.name] == f"{len(runs)} | {gpu_hours(runs.values()):,.0f}"
        everything |= runs
    assert told[""] == f"{len(everything)} | {gpu_hours(everything.values()):,.0f}"
    assert len(told) == len(SUITES["paper"]) + 1


def test_every_suite_is_described() -> None:
    for suites in SUITES.values():
        assert all(f"`{name}`" in PAGE for name in suites)
