"""Train on photos with a frozen encoder, and write the table in docs/photos.md.

    PYTHONPATH=tests python -m recipes.photos PHOTOS --network lite0:encoder      # train missing runs, then write
    python -m recipes.photos --tables-only                                       # write from the stored rows

PHOTOS contains photos sorted by class, as for `recipes.photo_candidates`, which generates the candidate labels. Each
run is `papi train` with the options of its row. Results are stored in docs/results/photos/rows.jsonl and not repeated.
"""

import json
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import cyclopts
import numpy as np
from cyclopts import Parameter
from sklearn.linear_model import LogisticRegression

from papi.cli.options import SWITCH
from papi.config import CandidatesConfig, RunConfig, Tune
from papi.errors import UserError
from papi.files.durable import replacing
from papi.setup.data import load_dataset
from papi.setup.encoder import find_encoder, seen_by, with_tuning
from papi.train import Finished, train
from recipes import photo_candidates

DOCS = Path(__file__).resolve().parents[1] / "docs"
ROWS, PAGE = DOCS / "results" / "photos" / "rows.jsonl", DOCS / "photos.md"
BEGIN, END = "<!-- python -m recipes.photos: begin -->", "<!-- python -m recipes.photos: end -->"
SEEDS = (0, 1, 2)
KINDS = {"q = 0.3": 0.3, "q = 0.5": 0.5, "q = 0.7": 0.7, "q = 0.9": 0.9, "instance-dependent": None}
Values = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """One line of the table: a method and its settings."""

    name: str
    method: str = "papi"
    option: tuple[str, ...] = ()
    network: str | None = None  # None: the pretrained encoder
    size: int | None = None  # pixels; None: what the encoder expects
    tune: Tune | None = None
    kinds: tuple[str, ...] = tuple(KINDS)
    seeds: tuple[int, ...] = SEEDS

    @property
    def knows_truth(self) -> bool:
        """Whether the true labels are used, so that all columns have the same result."""
        return self.method in ("supervised", LOGISTIC)


LOGISTIC = "logistic regression"  # scikit-learn's, not a method of ours
_ONE = ("q = 0.5",)
TABLE = (
    Row("true labels, the same head", "supervised", kinds=_ONE),
    Row("true labels, scikit-learn's logistic regression", LOGISTIC, kinds=_ONE, seeds=(0,)),
    Row("**PaPi (the default)**"),
    Row("CC", "cc"),
    Row("PRODEN", "proden"),
    Row("EM", "em"),
    Row("DIRK", "dirk"),
    Row("PiCO", "pico"),
    Row("neighbour votes", "neighbours"),
    Row("PaPi with a prior from the sets", option=("set_prior=auto",), kinds=("instance-dependent",)),
    Row("PaPi, fine-tuned (`--tune all`)", tune="all", kinds=("q = 0.7",), seeds=(0,)),
    Row("from scratch: 64 pixels, `small`", network="small", size=64, kinds=_ONE, seeds=(0,)),
    Row("from scratch: 224 pixels, `small`", network="small", size=224, kinds=_ONE, seeds=(0,)),
)


def main(
    photos: Path | None = None,
    /,
    *,
    network: str = "lite0:encoder",
    out: Path = Path("runs/photos"),
    rows: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    tables_only: Annotated[bool, SWITCH] = False,
) -> None:
    """Train missing runs, store the results as rows, and write the table.

    Parameters
    ----------
    photos
        The folder of photos.
    network
        The pretrained encoder.
    out
        Folder for the runs and the candidate tables.
    rows
        Only lines of the table whose name contains one of these texts.
    tables_only
        Train nothing; write the stored results.
    """
    if not tables_only:
        if photos is None:
            raise UserError("give the folder of photos, or --tables-only.")
        for row in TABLE:
            if not rows or any(part in row.name for part in rows):
                for result in measure(row, photos, network, out):
                    keep(result)
    write_page(read_rows())


def measure(row: Row, photos: Path, network: str, out: Path) -> Iterator[Values]:
    """Compute the results of a line that are not stored yet, one by one."""
    done = {(each["row"], each["kind"], each["seed"]) for each in read_rows()}
    for kind in row.kinds:
        for seed in row.seeds:
            if (row.name, kind, seed) in done:
                continue
            config = RunConfig(
                data=str(photos),
                candidates=CandidatesConfig(file=table_of(photos, kind, seed, out)),
                method=row.method,
                option=row.option,
                network=row.network or network,
                tune=row.tune if row.network is None else None,
                data_size=row.size,
                precision="fp32",
                seed=seed,
                threads=1,
            )
            measured = _logistic(config) if row.method == LOGISTIC else _trained(config, out / _folder(row, kind, seed))
            print(f"{row.name}, {kind}, seed {seed}: {measured['test_accuracy']:.4f}", flush=True)
            yield {"row": row.name, "kind": kind, "seed": seed} | measured


def table_of(photos: Path, kind: str, seed: int, out: Path) -> Path:
    """The table of candidate labels, generated if it does not exist."""
    file = out / "tables" / f"{kind.replace(' = ', '')}-{seed}.csv"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        rate = KINDS[kind]
        if rate is None:
            photo_candidates.main(photos, file, kind="instance-dependent", seed=seed)
        else:
            photo_candidates.main(photos, file, flip_rate=rate, seed=seed)
    return file


def _folder(row: Row, kind: str, seed: int) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in f"{row.name}-{kind}-{seed}").strip("-")


def _trained(config: RunConfig, folder: Path) -> Values:
    began = time.process_time()
    finished = [event for event in train(config, folder) if isinstance(event, Finished)]
    summary = finished[0].summary
    spent = time.process_time() - began  # including reading, and embedding if not cached
    return {
        "test_accuracy": summary.test_accuracy,
        "resolved": summary.disambiguation_accuracy,
        "cpu_seconds": round(max(spent, summary.cpu_seconds or 0.0), 1),  # the latter if the run was already trained
        "epochs": summary.epochs,
        "peak_memory": summary.peak_memory,
    }


def _logistic(config: RunConfig) -> Values:
    """Scikit-learn's logistic regression, with its defaults, on the same features scaled in the same way."""
    began = time.process_time()
    config = with_tuning(RunConfig(**vars(config) | {"method": "supervised"}))
    encoder = find_encoder(config)
    assert encoder is not None
    dataset = seen_by(encoder, load_dataset(config, preparation=encoder.preparation), config)
    assert dataset is not None
    assert dataset.test_samples is not None
    mean, std = np.array(dataset.mean), np.array(dataset.std)
    model = LogisticRegression(max_iter=1000)
    model.fit((dataset.samples[:, 0] - mean) / std, dataset.labels)
    accuracy = float(model.score((dataset.test_samples - mean) / std, dataset.test_labels))
    return {"test_accuracy": accuracy, "cpu_seconds": round(time.process_time() - began, 1)}


def read_rows() -> list[Values]:
    """The stored results."""
    return [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()] if ROWS.exists() else []


def keep(result: Values) -> None:
    """Store a result."""
    with replacing(ROWS) as stream:
        stream.write("".join(json.dumps(each) + "\n" for each in (*read_rows(), result)).encode())


def write_page(results: Sequence[Values]) -> None:
    """Write the table into the page, between its markers."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    text = f"{before}{BEGIN}\n\n{table(results)}\n\n{END}{after}"
    with replacing(PAGE) as stream:
        stream.write(text.encode())


def table(results: Sequence[Values]) -> str:
    """The results as a table: mean and standard deviation over seeds, in percent."""
    lines = [f"| | {' | '.join(KINDS)} | CPU seconds | peak memory |", "|---" * (len(KINDS) + 3) + "|"]
    for row in TABLE:
        mine = [each for each in results if each["row"] == row.name]
        if not mine:
            continue
        found = [_spread(each["test_accuracy"] for each in mine if each["kind"] == kind) for kind in KINDS]
        if row.knows_truth:
            found = [found[tuple(KINDS).index(_ONE[0])]] * len(KINDS)
        seconds = statistics.median(each["cpu_seconds"] for each in mine)
        memory = max((each.get("peak_memory") or 0 for each in mine), default=0)
        peak = f"{memory / 1e9:.1f} GB" if memory else "–"
        lines.append(f"| {row.name} | {' | '.join(found)} | {seconds:.0f} | {peak} |")
    return "\n".join(lines)


def _spread(values: Iterable[float]) -> str:
    shares = [100 * value for value in values]
    if not shares:
        return "–"
    mean = statistics.mean(shares)
    return f"{mean:.1f} ± {statistics.stdev(shares):.1f}" if len(shares) > 1 else f"{mean:.1f}"


if __name__ == "__main__":
    cyclopts.run(main)
