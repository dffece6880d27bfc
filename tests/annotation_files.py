"""Tables and candidate sets as files of every format that can be read."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from papi.data.own.annotation_arrays import SPLITS
from papi.data.own.tables import join_labels


def write_table(path: Path, columns: Mapping[str, Sequence[object]]) -> None:
    """Write columns as a table; cells are texts, numbers, lists of texts, or None if empty."""
    names, rows = list(columns), list(zip(*columns.values(), strict=True))
    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            writer.writerows([join_labels(cell) if isinstance(cell, list) else cell for cell in row] for row in rows)
    elif path.suffix == ".jsonl":
        records = ({name: cell for name, cell in zip(names, row, strict=True) if cell is not None} for row in rows)
        path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), "utf-8")
    elif path.suffix == ".parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table({name: list(column) for name, column in columns.items()}), path)
    else:
        raise ValueError(f"nobody writes {path.suffix} here")


def write_annotations(
    path: Path,
    file_names: Sequence[str],
    candidates: np.ndarray,
    class_names: Sequence[str],
    labels: np.ndarray | None = None,
    test: np.ndarray | None = None,
) -> None:
    """Write candidate sets for `read_annotations`, in the format of the file's suffix."""
    splits = None if test is None else [SPLITS[int(value)] for value in test]
    if path.suffix == ".npz":
        arrays = {"candidates": candidates, "file_names": np.array(file_names), "class_names": np.array(class_names)}
        if labels is not None:
            arrays["labels"] = labels
        if splits is not None:
            arrays["split"] = np.array(splits)
        np.savez_compressed(path, allow_pickle=False, **arrays)
        return
    columns: dict[str, Sequence[object]] = {
        "file_name": file_names,
        "candidates": [[name for name, chosen in zip(class_names, row, strict=True) if chosen] for row in candidates],
    }
    if labels is not None:
        columns["label"] = [class_names[k] if k >= 0 else None for k in labels]
    if splits is not None:
        columns["split"] = splits
    write_table(path, columns)
