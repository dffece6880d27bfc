"""Convert CIFAR-10S, human annotations of 1,000 photos, to candidate tables, and train on each kind of table.

    python -m recipes.human_answers cifar10s.json data FOLDER          # photos and tables
    python -m recipes.human_answers cifar10s.json data FOLDER --train  # then train on each table

`cifar10s.json` (Collins, Bhatt, Weller, HCOMP 2022) is keyed by the index in CIFAR-10's published test set. Each answer
has the most and second most probable class, their percentages, and impossible classes. Annotators are anonymous.
`data` contains CIFAR-10 as published. Photos without annotations form the test set.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from papi.data.known.sources import load_known
from papi.data.own.reading import Reading
from papi.runs.folder import RunFolder

ROWS = Path(__file__).parents[1] / "docs" / "results" / "human-answers" / "cifar10s.jsonl"
TESTS = 2_000  # photos to test on
TABLES = {
    "union": "every class that somebody finds most or second most probable",
    "exclusions": "all classes but those that half of the people or more call impossible",
    "weights": "as union, with the mean of the percentages as weights",
}
KINDS = TABLES | {"weights-1": "the same, with `--candidates.weigh 1`: taken as they are"}
_FIRST, _SECOND, _NEVER = "Most Probable Class", "Second Most Probable Class", "Impossible Class(es)"

Answer = Mapping[str, object]


def percentages(answer: Answer) -> dict[str, float]:
    """The probabilities of one annotator, normalised to one; second choices without a percentage count little."""
    given: dict[str, float] = {}
    for column in (_FIRST, _SECOND):
        name, share = str(answer.get(column)).lower(), answer.get(f"{column} Prob")
        if name not in ("no", "none", "nan", ""):
            number = float(share) if isinstance(share, int | float) and share == share else 0.0
            given[name] = given.get(name, 0.0) + min(max(number, 1.0), 100.0)
    whole = sum(given.values())
    return {name: share / whole for name, share in given.items()}


def rows(answers: Sequence[Answer]) -> dict[str, dict[str, object]]:
    """The cells of one photo in each table."""
    said = [percentages(answer) for answer in answers]
    mean = Counter[str]()
    for each in said:
        mean.update({name: share / len(said) for name, share in each.items()})
    never = Counter(str(name).lower() for answer in answers for name in set(_listed(answer.get(_NEVER))))
    excluded = [name for name, count in never.items() if 2 * count >= len(answers) and name not in mean]
    return {
        "union": {"candidates": sorted(mean)},
        "exclusions": {"excluded": sorted(excluded)},
        "weights": {"candidates": {name: round(share, 6) for name, share in sorted(mean.items())}},
    }


def _listed(value: object) -> list[str]:
    return [str(name) for name in value] if isinstance(value, list) else []


def convert(answers: Mapping[str, Sequence[Answer]], data_dir: Path, folder: Path) -> None:
    """Write the photos, the tables, and `classes.txt`."""
    data = load_known("cifar10", data_dir, Reading(split="test"))
    assert data.labels is not None
    photos = folder / "photos"
    photos.mkdir(parents=True, exist_ok=True)
    (photos / "classes.txt").write_text("\n".join(data.class_names) + "\n")
    asked = sorted(map(int, answers))
    others = [number for number in range(len(data.samples)) if number not in set(asked)][:TESTS]
    for number in (*asked, *others):
        Image.fromarray(data.samples[number].transpose(1, 2, 0)).save(photos / f"{number}.png")
    for table in TABLES:
        with (folder / f"{table}.jsonl").open("w") as stream:
            for row in _table(table, answers, asked, others, data.labels, data.class_names):
                stream.write(json.dumps(row) + "\n")


def _table(
    table: str,
    answers: Mapping[str, Sequence[Answer]],
    asked: Sequence[int],
    others: Sequence[int],
    labels: np.ndarray,
    names: Sequence[str],
) -> Iterator[dict[str, object]]:
    for number in asked:
        truth = {"file_name": f"{number}.png", "label": names[labels[number]]}
        yield truth | rows(answers[str(number)])[table]
    for number in others:
        yield {"file_name": f"{number}.png", "label": names[labels[number]], "split": "test"}


def heaviest(folder: Path) -> dict[str, object]:
    """How often the label with the highest weight is the true one, without training."""
    found = [json.loads(line) for line in (folder / "weights.jsonl").read_text().splitlines()]
    right = [max(row["candidates"], key=row["candidates"].get) == row["label"] for row in found if "candidates" in row]
    return {"table": "heaviest", "resolved": float(np.mean(right))}


def train(folder: Path, kind: str, seed: int) -> dict[str, object]:
    """Train the small network for twenty epochs and return the results."""
    table, _, strength = kind.partition("-")
    out = folder / "runs" / f"{kind}-{seed}"
    command = [
        "train", "--data", str(folder / "photos"), "--candidates.file", str(folder / f"{table}.jsonl"),
        "--candidates.allow-missing-truth", "--epochs", "20", "--precision", "fp32",
        "--option", "passes=two", "--option", "set_prior=off", "--threads", "1", "--seed", str(seed), "--out", str(out),
        *(("--candidates.weigh", strength) if strength else ()),
    ]  # fmt: skip
    subprocess.run([sys.executable, "-m", "papi", *command], check=True)
    summary = RunFolder(out).read_summary()
    assert summary is not None, "the command has finished"
    candidates = RunFolder(out).read_sets().candidates
    return {
        "table": kind,
        "seed": seed,
        "mean_candidates": float(candidates.sum(1).mean()),
        "true_label_present": summary.true_label_present,
        "resolved": summary.disambiguation_accuracy,
        "test_accuracy": summary.test_accuracy_last,
    }


def kept() -> list[dict[str, object]]:
    """The stored rows of the last measurement."""
    return [json.loads(line) for line in ROWS.read_text().splitlines()]


def page_table(found: Sequence[Mapping[str, object]]) -> str:
    """The rows as a Markdown table: mean and standard deviation over seeds."""
    lines = ["| table | labels per photo | true label among them | resolved to it | test accuracy |"]
    lines.append("|---|---|---|---|---|")
    for table, words in KINDS.items():
        mine = [row for row in found if row["table"] == table]
        if not mine:
            continue
        size = np.mean([float(str(row["mean_candidates"])) for row in mine])
        cells = [_mean(mine, name) for name in ("true_label_present", "resolved", "test_accuracy")]
        lines.append(f"| {table.partition('-')[0]}: {words} | {size:.1f} | {' | '.join(cells)} |")
    lines += [
        f"| no network: the label with the most weight | 1 | – | {_mean([row], 'resolved')} | – |"
        for row in found
        if row["table"] == "heaviest"
    ]
    return "\n".join(lines)


def _mean(found: Sequence[Mapping[str, object]], name: str) -> str:
    values = [100 * float(str(row[name])) for row in found]
    spread = f" ± {np.std(values):.1f}" if np.std(values) > 0 else ""
    return f"{np.mean(values):.1f} %{spread}"


def main() -> None:
    """Convert, and train if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", type=Path)
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    convert(json.loads(given.answers.read_text()), given.data_dir, given.folder)
    if given.train:
        found = [train(given.folder, table, seed) for seed in range(given.seeds) for table in KINDS]
        found.append(heaviest(given.folder))
        ROWS.write_text("".join(json.dumps(row) + "\n" for row in found))
        print(page_table(found))


if __name__ == "__main__":
    main()
