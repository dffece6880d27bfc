"""Compare the accuracy in fp32 and bf16, on training images that a run does not use.

    python -m recipes.precision --jobs 2                                                   # all methods, short runs
    python -m recipes.precision papi --epochs 40 --limit 8000                              # the default run
    python -m recipes.precision papi --data digits --limit 1000 --network resnet18         # another network
    python -m recipes.precision --tables-only                                              # train nothing

Stores a JSON row per run in docs/results/precision/rows.jsonl, trains only runs without a row, and writes the table
into docs/performance.md. The accuracy is that of `recipes/validate.py`: on the next images of the training set, not on
test images. A method whose accuracy is equal in both precisions sets `bf16`: `--precision auto` then uses bf16.
"""

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated

import cyclopts
import joblib

from papi.cli.options import SWITCH
from papi.config import Precision, RunConfig, Values, from_dict
from papi.experiments import cells
from papi.methods import METHODS
from papi.setup.data import candidate_sets, load_dataset
from papi.train import Finished, fit, settings_for
from recipes.validate import with_other_images

DOCS = Path(__file__).resolve().parents[1] / "docs"
ROWS = DOCS / "results" / "precision" / "rows.jsonl"
PAGE = DOCS / "performance.md"
BEGIN, END = "<!-- precision -->", "<!-- /precision -->"
PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16")


def main(
    *methods: str,
    data: str = "fashion-mini",
    limit: int = 2000,
    network: str = "small",
    epochs: int = 5,
    seeds: int = 3,
    jobs: int = 1,
    tables_only: Annotated[bool, SWITCH] = False,
) -> None:
    """Train the missing runs of these methods, by default of all, and write the table of all rows."""
    if not tables_only:
        base = RunConfig(data=data, limit=limit, network=network, epochs=epochs, threads=1, device="cpu")
        runs = [
            replace(base, method=method, seed=seed, precision=precision)
            for seed, method, precision in product(range(seeds), methods or METHODS, PRECISIONS)
        ]
        known = {_key(row["settings"]) for row in read_rows()}
        todo = [run for run in runs if _key(cells.differing(run)) not in known]
        for row in joblib.Parallel(jobs, return_as="generator_unordered")(map(joblib.delayed(train), todo)):
            _append(row)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{table(read_rows())}{END}{after}", encoding="utf-8")


def train(config: RunConfig) -> Values:
    """The row of a run."""
    published = load_dataset(config)
    dataset = with_other_images(published.limited(config.limit), published)
    settings = settings_for(config, dataset)
    candidates = candidate_sets(dataset, settings)
    assert candidates is not None
    *_, last = fit(dataset, candidates, settings)
    assert isinstance(last, Finished)
    summary = last.summary
    return {
        "settings": cells.differing(config),
        "values": {"accuracy": summary.test_accuracy, "resolved": summary.disambiguation_accuracy},
    }


def read_rows() -> list[Values]:
    """All stored rows."""
    return [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []


def _append(row: Values) -> None:
    rows = sorted((*read_rows(), row), key=lambda row: _key(row["settings"]))
    ROWS.parent.mkdir(parents=True, exist_ok=True)
    ROWS.write_text("".join(f"{json.dumps(row, sort_keys=True)}\n" for row in rows))


def _key(settings: Values) -> str:
    return json.dumps(settings, sort_keys=True)


def table(rows: Iterable[Values]) -> str:
    """Mean and standard deviation over seeds in both precisions, and the mean difference on the same seeds."""
    lines = [
        "| data | network | method | fp32 | bf16 | difference |",
        "|---|---|---|---:|---:|---:|",
        *(f"| {' | '.join(cells)} |" for cells in _lines(rows)),
    ]
    return "\n".join(lines) + "\n"


def _lines(rows: Iterable[Values]) -> Iterator[tuple[str, ...]]:
    found: dict[tuple[str, str, str], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        config = from_dict(row["settings"])
        trained = f"{config.data}, {config.limit:,} images, {config.epochs} epochs"
        precisions = found[trained, str(config.network), config.method]
        precisions[config.precision][config.seed] = 100 * row["values"]["accuracy"]
    for (trained, network, method), by_seed in sorted(found.items(), key=lambda item: _place(item[0])):
        seeds = sorted(set.intersection(*(set(by_seed[precision]) for precision in PRECISIONS)))
        if not seeds:
            continue
        single, half = ([by_seed[precision][seed] for seed in seeds] for precision in PRECISIONS)
        apart = statistics.mean(half) - statistics.mean(single)
        yield trained, f"`{network}`", f"`{method}`", _shown(single), _shown(half), f"{apart:+.2f}"


def _place(named: tuple[str, str, str]) -> tuple[str, str, int]:
    data, network, method = named
    return data, network, list(METHODS).index(method)


def _shown(values: list[float]) -> str:
    return f"{statistics.mean(values):.2f} ± {statistics.pstdev(values):.2f}"


if __name__ == "__main__":
    cyclopts.run(main)
