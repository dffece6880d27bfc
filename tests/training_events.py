"""Events and results of training, made by hand."""

from papi import train as run
from papi.config import RunConfig
from papi.data.dataset import Dataset
from papi.methods.config import Passes
from papi.runs.schema import Summary


def started(dataset: Dataset, config: RunConfig | None = None, **changes: object) -> run.Started:
    settings = run.settings_for(config or RunConfig(data="toy"), dataset)
    facts: dict[str, object] = {
        "settings": settings,
        "dataset": dataset,
        "statistics": {"mean_candidates": 2.5, "singletons": 0.1, "full_sets": 0.02},
        "parameters": 12345,
        "passes": Passes(2, 2),
        "device": "cpu",
        "threads": 1,
        "processes": 1,
        "epoch": 0,
        "step": 0,
        "steps": 6,
        "problems": (),
    }
    return run.Started(**facts | changes)  # type: ignore[arg-type]


def summary(**changes: object) -> Summary:
    facts: dict[str, object] = {"method": "papi", "dataset": "toy", "seconds": 12.0, "epochs": 2}
    return Summary(**facts | changes)  # type: ignore[arg-type]
