"""Train every method under equal conditions and write the table of results.

    python scripts/compare_methods.py [--jobs 2] [--write docs/results.md]

Default preset, the same epochs for all, three seeds, uniform candidate sets on `fashion-mini`. Every cell is a
`papi train` of its own with one thread; finished cells are not trained again, and a killed comparison goes on where it
was. The part of the page between the two marks is replaced; the rest is kept.
"""

import argparse
import json
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

from papi.methods import METHODS

FLIP_RATES = (0.5, 0.7)
SEEDS = (0, 1, 2)
RUNS = Path("runs/compare")
BEGIN, END = "<!-- comparison: begin -->", "<!-- comparison: end -->"

Cell = tuple[str, float, int]


def folder(cell: Cell) -> Path:
    method, flip_rate, seed = cell
    return RUNS / f"{method}-q{flip_rate}-seed{seed}"


def command(cell: Cell) -> list[str]:
    method, flip_rate, seed = cell
    options = ["--method", method, "--candidates.flip-rate", str(flip_rate), "--seed", str(seed)]
    return [sys.executable, "-m", "papi", "train", *options, "--threads", "1", "--out", str(folder(cell))]


def train(cell: Cell) -> None:
    done = subprocess.run(command(cell), capture_output=True, text=True, check=False)
    print(f"{folder(cell).name}: {'done' if done.returncode == 0 else done.stderr.strip()}", flush=True)


def percent(values: list[float]) -> str:
    return f"{100 * statistics.mean(values):.2f} ± {100 * statistics.pstdev(values):.2f}"


def table(results: dict[Cell, dict[str, Any]]) -> str:
    lines = []
    for flip_rate in FLIP_RATES:
        reference = [results[("papi", flip_rate, seed)]["test_accuracy"] for seed in SEEDS]
        lines += [
            f"### q = {flip_rate}",
            "",
            "| method | test accuracy (%) | minus PaPi, seed by seed | resolved labels (%) | encoder passes |",
            "|---|---|---|---|---|",
        ]
        rows = []
        for method in METHODS:
            runs = [results[(method, flip_rate, seed)] for seed in SEEDS]
            accuracies = [run["test_accuracy"] for run in runs]
            behind = ", ".join(f"{100 * (a - b):+.2f}" for a, b in zip(accuracies, reference, strict=True))
            resolved = percent([run["disambiguation_accuracy"] for run in runs])
            passes = METHODS[method].passes
            row = f"| {method} | {percent(accuracies)} | {'' if method == 'papi' else behind} | {resolved} | {passes} |"
            rows.append((statistics.mean(accuracies), row))
        lines += [row for _, row in sorted(rows, reverse=True)] + [""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time, each with one thread")
    parser.add_argument("--write", type=Path, help="page to put the table into")
    arguments = parser.parse_args()
    cells = [(method, q, seed) for seed, q, method in product(SEEDS, FLIP_RATES, METHODS)]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(train, cells))
    missing = [cell for cell in cells if not (folder(cell) / "summary.json").exists()]
    if missing:
        sys.exit(f"{len(missing)} runs did not finish: {', '.join(folder(cell).name for cell in missing)}")
    result = table({cell: json.loads((folder(cell) / "summary.json").read_text()) for cell in cells})
    print(result)
    if arguments.write:
        page = arguments.write.read_text()
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        arguments.write.write_text(f"{before}{BEGIN}\n\n{result}\n{END}{after}")


if __name__ == "__main__":
    main()
