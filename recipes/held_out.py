"""Keep what `recipes/validate.py` measured, and put it into the results page.

    python -m recipes.held_out runs/tuning

Takes in the finished runs of that script below a folder, a JSON row for each in docs/results/held-out/forms.jsonl, and
writes the table of all rows between its marks in docs/results.md. The accuracies are of held-out training images:
settings are chosen by them. Suites leave such runs alone.
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
BEGIN, END = "<!-- recipes.held_out: begin -->", "<!-- recipes.held_out: end -->"
_FORMS = {"paper": "paper's form", "two": "two passes", "one": "one pass"}


def main(folder: Path | None = None, /) -> None:
    """Add the runs of a folder to the rows, if one is given, and write the table."""
    kept = read_rows()
    if folder is not None:
        kept |= {json.dumps(row["settings"], sort_keys=True): row for row in runs_below(folder)}
        ROWS.parent.mkdir(parents=True, exist_ok=True)
        ROWS.write_text("".join(f"{json.dumps(row, sort_keys=True)}\n" for _, row in sorted(kept.items())))
    page = DOCS / "results.md"
    before, rest = page.read_text().split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n\n{table(list(kept.values()))}\n{END}{rest.split(END)[1]}")


def read_rows() -> dict[str, Values]:
    """All kept rows by their settings."""
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
    """Each form on each task: accuracies by seed, and their mean where there are several."""
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


def _task(config: RunConfig) -> str:
    sets = config.candidates
    return f"q = {sets.flip_rate:g}" if sets.kind in (None, "uniform") else str(sets.kind)


def _form(config: RunConfig) -> str:
    options = config.given_options
    listens = options.get("set_prior", "off")
    form = f"{_FORMS[options['passes']]}, {config.epochs} epochs"
    return form if listens == "off" else f"{form}, set_prior={listens}"


if __name__ == "__main__":
    cyclopts.run(main)
