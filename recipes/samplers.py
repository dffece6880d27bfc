"""Compare Optuna's samplers with random search at 20 trials, on searches of `papi tune` replayed from a pool.

    python -m recipes.samplers pool POOL --data-dir FOLDER [--draws 120]     # trains; one json file per search
    python -m recipes.samplers compare POOL [--repeats 100]                  # needs Optuna, which is not a dependency

Telling samplers apart takes hundreds of repetitions of a search of 20 trials. So each search is trained once, with many
random trials, and a random forest learns how the criterion and the test accuracy depend on the settings. Samplers then
search the forest: they see its criterion plus the noise that the forest could not explain, and are judged by the
forest's test accuracy of the settings they choose.
"""

import importlib
import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import cyclopts
import numpy as np

app = cyclopts.App(help=__doc__)
SEARCHES = (("neighbours", "lost"), ("neighbours", "msrcv2"), ("papi", "lost"))
EPOCHS = 40
CRITERION = "covering_rate"
TRIALS = 20


@app.command
def pool(out: Path, /, *, data_dir: Path, draws: int = 120) -> None:
    """Train random trials of every search, and store their settings and results. Continues an interrupted pool."""
    from papi import train as run
    from papi.config import RunConfig
    from papi.experiments.search import space_of, trials
    from papi.setup.data import candidate_sets, load_dataset
    from papi.train import settings_for

    out.mkdir(parents=True, exist_ok=True)
    for method, data in SEARCHES:
        config = RunConfig(data=data, method=method, data_dir=data_dir, data_holdout=0.1, epochs=EPOCHS, threads=1)
        dataset = load_dataset(config)
        space = space_of(config, settings_for(config, dataset), ())
        file = out / f"{method}-{data}.json"
        rows: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []
        for trial in trials(config, dataset, space, draws)[len(rows) :]:
            sets = candidate_sets(dataset, trial.settings)
            assert sets is not None
            try:
                *_, last = run.fit(dataset, sets, replace(trial.settings, device="cpu"))
            except ValueError:  # a learning rate at which training diverges
                rows.append({"values": trial.values, "criterion": 0.0, "accuracy": 0.0})
            else:
                assert isinstance(last, run.Finished)
                found = last.summary
                rows.append(
                    {"values": trial.values, "criterion": getattr(found, CRITERION), "accuracy": found.test_accuracy}
                )
            file.write_text(json.dumps(rows))
        print(f"{file.name}: {len(rows)} trials", flush=True)


class Forest:
    """A surrogate for a search: predicts the criterion with noise, and the test accuracy without."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        from sklearn.ensemble import RandomForestRegressor

        self.choices: dict[str, list[str]] = {}
        self.ends: dict[str, tuple[float, float]] = {}
        flat = [_flat(row["values"]) for row in rows]
        for name in flat[0]:
            values = [each[name] for each in flat]
            if isinstance(values[0], str):
                self.choices[name] = sorted(set(values))
            else:
                self.ends[name] = (min(values), max(values))
        points = np.array([self._point(each) for each in flat])
        targets = np.array([[row["criterion"], row["accuracy"]] for row in rows])
        self.model = RandomForestRegressor(100, min_samples_leaf=2, oob_score=True, random_state=0, n_jobs=1)
        self.model.fit(points, targets)
        self.noise = np.std(targets - self.model.oob_prediction_, axis=0)
        self.explained = float(np.corrcoef(targets[:, 1], self.model.oob_prediction_[:, 1])[0, 1] ** 2)

    def _point(self, values: dict[str, Any]) -> list[float]:
        numbers = [values[name] for name in self.ends]
        return numbers + [float(self.choices[name].index(values[name])) for name in self.choices]

    def ask(self, values: dict[str, Any], judge: int, random: np.random.Generator) -> tuple[float, float]:
        """The noisy score of a trial (`judge` 0: criterion, 1: test accuracy), and its test accuracy without noise."""
        found = self.model.predict([self._point(values)])[0]
        return float(found[judge] + self.noise[judge] * random.standard_normal()), float(found[1])


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    """Flatten settings: pairs become two numbers, and positive optimizer settings their logarithms."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        parts = value if isinstance(value, list) else [value]
        for place, part in enumerate(parts):
            logarithmic = name.startswith("optim.") and part > 0
            found[f"{name}{place or ''}"] = math.log(part) if logarithmic else part
    return found


@app.command
def compare(pool: Path, /, *, repeats: int = 100) -> None:
    """Print, for each search, how far the choice of each sampler is below the best trial of the pool, in points."""
    optuna: Any = importlib.import_module("optuna")  # not a dependency of PaPi
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    samplers = {
        "random": partial(optuna.samplers.RandomSampler),
        "TPE": partial(optuna.samplers.TPESampler),
        "TPE, multivariate, 5 random": partial(optuna.samplers.TPESampler, n_startup_trials=5, multivariate=True),
        "CMA-ES": partial(optuna.samplers.CmaEsSampler),
    }
    print("| search | judged by | explained | " + " | ".join(samplers) + " |\n|---|---|---|" + "---|" * len(samplers))
    for file in sorted(pool.glob("*.json")):
        rows = json.loads(file.read_text())
        forest = Forest(rows)
        best = max(forest.model.predict([forest._point(_flat(row["values"])) for row in rows])[:, 1])
        for judge, name in enumerate((CRITERION.replace("_", " "), "accuracy (oracle)")):
            cells = []
            for make in samplers.values():
                found = [_search(forest, judge, make(seed=seed), seed, optuna) for seed in range(repeats)]
                costs = 100 * (best - np.array(found))
                cells.append(f"{np.mean(costs):.2f} ± {np.std(costs) / math.sqrt(repeats):.2f}")
            shown = " | ".join((file.stem, name, f"{forest.explained:.2f}", *cells))
            print(f"| {shown} |", flush=True)


def _search(forest: Forest, judge: int, sampler: Any, seed: int, optuna: Any) -> float:
    """The test accuracy of the settings that a sampler chooses after 20 trials."""
    random = np.random.default_rng(seed)
    seen: list[tuple[float, float]] = []

    def objective(trial: Any) -> float:
        values = {name: trial.suggest_float(name, *ends) for name, ends in forest.ends.items()}
        values |= {name: trial.suggest_categorical(name, each) for name, each in forest.choices.items()}
        seen.append(forest.ask(values, judge, random))
        return seen[-1][0]

    optuna.create_study(direction="maximize", sampler=sampler).optimize(objective, n_trials=TRIALS)
    return max(seen)[1]


if __name__ == "__main__":
    app()
