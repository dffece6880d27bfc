"""Store the results of `recipes/validate.py` for the page on how settings were chosen.

    python -m recipes.held_out runs/tuning

Adds a JSON row to docs/results/held-out/forms.jsonl for each finished run of that script below a folder. Then
`python -m recipes.results all --tables-only` writes their table into docs/results/settings.md. Accuracies are on
held-out training images, which are used to choose settings. Suites ignore these runs.
"""

import json
from collections import defaultdict
from pathlib import Path

import cyclopts

from papi.config import RunConfig, Values, from_dict
from papi.experiments import cells
from papi.runs.folder import RunFolder

DOCS = Path(__file__).resolve().parents[1] / "docs"
ROWS = DOCS / "results" / "held-out" / "forms.jsonl"
_FORMS = {"paper": "paper's form", "two": "two passes", "one": "one pass"}


def main(folder: Path, /) -> None:
    """Add the runs below a folder to the rows."""
    kept = read_rows() | {json.dumps(row["settings"], sort_keys=True): row for row in runs_below(folder)}
    ROWS.parent.mkdir(parents=True, exist_ok=True)
    ROWS.write_text("".join(f"{json.dumps(row, sort_keys=True)}\n" for _, row in sorted(kept.items())))


def read_rows() -> dict[str, Values]:
    """All stored rows by their settings."""
    lines = ROWS.read_text().splitlines() if ROWS.exists() else []
    rows = [json.loads(line) for line in lines]
    return {json.dumps(row["settings"], sort_keys=True): row for row in rows}


def runs_below(folder: Path) -> list[Values]:
    """A row for each finished run of the script."""
    found = []
    for file in sorted(folder.rglob("summary.json")):
        run = RunFolder(file.parent)
        record, summary = run.begun(), run.read_summary()
        if summary is None or Path(record.command[0]).name != "validate.py":
            continue
        made = {"versions": dict(record.versions), "threads": record.threads}
        values = {"accuracy": summary.test_accuracy, "resolved": summary.disambiguation_accuracy}
        found.append({"settings": cells.differing(cells.finished_config(record)), "values": values, "made": made})
    return found


def table(rows: list[Values]) -> str:
    """Each form on each task: accuracy per seed, and the mean if there are several seeds."""
    found: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for row in rows:
        config = from_dict(row["settings"])
        found[_task(config), _form(config)][config.seed] = 100 * row["values"]["accuracy"]
    lines = ["| sets | form | seeds | accuracy on held-out images (%) | mean |", "|---|---|---|---|---|"]
    for (task, form), by_seed in sorted(found.items()):
        seeds, values = zip(*sorted(by_seed.items()), strict=True)
        mean = f"{sum(values) / len(values):.2f}" if len(values) > 1 else "–"
        listed = ", ".join(f"{value:.2f}" for value in values)
        lines.append(f"| {task} | {form} | {', '.join(map(str, seeds))} | {listed} | {mean} |")
    return "\n".join(lines) + "\n"


def one_pass_leads() -> bool:
    """Whether one pass beats two passes wherever both were measured on the same sets with the same seed."""
    best: dict[str, dict[tuple[str, int], float]] = {"one": {}, "two": {}, "paper": {}}
    for row in read_rows().values():
        config, value = from_dict(row["settings"]), row["values"]["accuracy"]
        form, place = best[config.given_options["passes"]], (_task(config), config.seed)
        form[place] = max(value, form.get(place, 0.0))
    return all(best["one"][place] > best["two"][place] for place in best["one"].keys() & best["two"].keys())


def _task(config: RunConfig) -> str:
    sets = config.candidates
    return f"q = {sets.flip_rate:g}" if sets.kind in (None, "uniform") else str(sets.kind)


def _form(config: RunConfig) -> str:
    options = config.given_options
    listens = options.get("set_prior", "off")
    form = f"{_FORMS[options['passes']]}, {config.epochs} epochs"
    form = form if listens == "off" else f"{form}, set_prior={listens}"
    balance = float(options.get("balance_weight", 0))
    return f"{form}, balance_weight={balance:g}" if balance else form


if __name__ == "__main__":
    cyclopts.run(main)
