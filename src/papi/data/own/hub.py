"""Unpacks images inside tables, from Hugging Face datasets and parquet files, into a folder of images.

The result is an ordinary image folder: images, and a `metadata.jsonl` with the other columns. So everything that works
for folders works for these tables. They are unpacked once, into the cache.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from papi.data.dataset import Progress, silent
from papi.data.own.folders import image_files
from papi.data.own.frames import class_labels, named
from papi.data.own.tables import is_utf8
from papi.errors import UserError, unknown
from papi.files.places import cache_dir
from papi.files.reading import memory_bytes, plain_file, read_bytes, reason

PREFIX = "hf:"
_BATCH = 256  # rows per batch
_MAGIC = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"RIFF": ".webp", b"GIF8": ".gif", b"BM": ".bmp"}
_LABELS = ("candidates", "excluded", "annotator")  # columns of a table that has more than true labels
_IMAGE_BYTES = 2**30  # of one image


def load_hub(name: str, column: str | None = None, progress: Progress = silent) -> Path:
    """Unpack `hf:NAME[/config]:split` and return the folder. NAME may also be a local folder.

    `column` is the name of the image column. By default, it is detected by its type.
    """
    datasets = _datasets()
    place, colon, split = name.removeprefix(PREFIX).rpartition(":")
    if not colon or not place or not split:
        raise UserError(f"{name} has no split: write {PREFIX}NAME:train, {PREFIX}OWNER/NAME:train, or add a config.")
    parts = place.split("/")
    local = Path(place).exists()
    if not local and (Path(place).is_absolute() or len(parts) > 3 or place.startswith(".")):
        raise UserError(f"{name} does not exist: {place} is not a local folder and not a valid name on the hub.")
    path, config = (place, None) if local or len(parts) < 3 else ("/".join(parts[:2]), "/".join(parts[2:]))
    try:
        found = datasets.load_dataset(path, config, split=split)
    except (OSError, ValueError, ImportError, datasets.exceptions.DatasetsError) as error:
        raise UserError(
            f"{name} cannot be loaded ({reason(error)}): check the name and the connection to the hub."
        ) from error
    roots = (Path(place),) if local else (Path(datasets.config.HF_CACHE_HOME),)
    key = f"{name} {getattr(found, '_fingerprint', '')}"  # changes with the source files
    schema = found.features.arrow_schema
    return _cached(_Source(name, schema, len(found), _batches(found), roots, key, column), progress)


def unpack(dataset: Any, folder: str | Path, image_column: str | None = None) -> Path:
    """Write a `datasets.Dataset` as a new folder of images for `papi train --data FOLDER`.

    Parameters
    ----------
    dataset
        The dataset, with a column of images.
    folder
        The folder to create. It must not exist.
    image_column
        Name of the image column. By default `image`, or the first column with images.

    Returns
    -------
    Path
        The folder.
    """
    folder = Path(folder)
    if folder.exists():
        raise UserError(f"{folder} already exists: choose a new folder for the images.")
    schema, rows = dataset.features.arrow_schema, _batches(dataset)
    source = _Source("the dataset", schema, len(dataset), rows, (Path("/"),), column=image_column)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _write(source, folder, silent)
    return folder


def are_images_in_tables(data: str) -> bool:
    """Return whether the data are a Hugging Face dataset or parquet files with images."""
    return data.startswith(PREFIX) or bool(image_shards(Path(data)))


def image_shards(path: Path, column: str | None = None) -> list[Path]:
    """Return the parquet files with images at a path: the file itself, or those in a folder or its subfolder `data`.

    If `column` names the image column, all parquet files are assumed to have it.
    """
    if path.is_file():
        files = [path] if path.suffix.lower() == ".parquet" else []
    else:
        found = (*path.glob("*.parquet"), *path.glob("data/*.parquet"))
        files = sorted(each for each in found if each.name != "metadata.parquet")
        if files and next(image_files(path), None) is not None:
            return []  # an ordinary folder of images that also contains parquet files
    return files if files and (column is not None or _image_columns(_schema(files[0]))) else []


def load_shards(files: Sequence[Path], column: str | None = None, progress: Progress = silent) -> Path:
    """Unpack parquet files and return the folder. Rows of files whose names begin with `test` are for testing."""
    schema = _schema(files[0])
    readers = [_reader(file) for file in files]
    state = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    count = sum(reader.metadata.num_rows for reader in readers)
    rows = _shard_rows(files, readers)
    name = str(files[0] if len(files) == 1 else files[0].parent)
    return _cached(_Source(name, schema, count, rows, (), json.dumps(state), column), progress)


class _Source:
    """Rows with images: their name, schema and number, and the folders that may contain image files."""

    def __init__(
        self,
        name: str,
        schema: Any,
        count: int,
        rows: Iterator[tuple[str | None, dict[str, Any]]],
        roots: Sequence[Path],
        key: str = "",
        column: str | None = None,
    ) -> None:
        images = _image_columns(schema)
        if not images:
            raise UserError(f"{name} has no image column, only {', '.join(schema.names)}: add one.")
        if column is not None and column not in images:
            raise UserError(f"{name}: {unknown('image column', column, images)}")
        self.name, self.count, self.rows, self.roots, self.image = name, count, rows, roots, column or images[0]
        self.names = class_labels(schema)
        self.columns = [each for each in schema.names if each not in images]
        self.key = key if column is None else f"{key} {column}"


def _batches(dataset: Any) -> Iterator[tuple[str | None, dict[str, Any]]]:
    raw = dataset.with_format("arrow")
    for start in range(0, len(dataset), _BATCH):
        yield from ((None, record) for record in raw[start : start + _BATCH].to_pylist())


def _shard_rows(files: Sequence[Path], readers: Sequence[Any]) -> Iterator[tuple[str | None, dict[str, Any]]]:
    for file, reader in zip(files, readers, strict=True):
        split = "test" if file.name.startswith("test") else "train"
        try:
            for batch in reader.iter_batches(_BATCH):
                yield from ((split, record) for record in batch.to_pylist())
        except (OSError, ValueError) as error:
            raise UserError(f"{file} is not a readable parquet file ({reason(error)}): write it again.") from error


def _schema(file: Path) -> Any:
    return _reader(file).schema_arrow


def _reader(file: Path) -> Any:
    try:
        parquet = import_module("pyarrow.parquet")
        return parquet.ParquetFile(plain_file(file, memory_bytes()))
    except ImportError as error:
        raise UserError(f"{file} needs pyarrow to be read: run pip install 'papi-pll[parquet]'.") from error
    except (OSError, ValueError) as error:
        raise UserError(f"{file} is not a readable parquet file ({reason(error)}): write it again.") from error


def _image_columns(schema: Any) -> list[str]:
    """Return the image columns: encoded bytes, with or without a path; `image` comes first."""
    found = [field.name for field in schema if _holds_bytes(field.type)]
    return sorted(found, key=lambda name: name != "image")


def _holds_bytes(kind: Any) -> bool:
    types = import_module("pyarrow").types
    if types.is_struct(kind):
        return any(field.name == "bytes" and types.is_binary(field.type) for field in kind)
    return bool(types.is_binary(kind) or types.is_large_binary(kind))


def _cached(source: _Source, progress: Progress) -> Path:
    """Return the folder in the cache; create it if necessary."""
    folder = cache_dir() / "unpacked" / hashlib.sha256(source.key.encode()).hexdigest()[:24]
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        _write(source, folder, progress)
    return folder


def _write(source: _Source, folder: Path, progress: Progress) -> None:
    """Write the folder atomically: it is complete, or it does not exist."""
    half = Path(tempfile.mkdtemp(prefix=".half-", dir=folder.parent))
    try:
        records = list(_images(source, half, progress))
        _write_labels(source, records, half)
        os.replace(half, folder)
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)
        raise


def _images(source: _Source, folder: Path, progress: Progress) -> Iterator[dict[str, Any]]:
    """Write the image of each row, and yield its other columns with the file name."""
    for number, (split, record) in enumerate(source.rows):
        where = f"{source.name}, row {number + 1}"
        content = _content(record.pop(source.image, None), where, source.roots)
        suffix = next((suffix for magic, suffix in _MAGIC.items() if content.startswith(magic)), ".tif")
        file = f"{number:07}{suffix}"
        (folder / file).write_bytes(content)
        labels = {
            column: named(value, source.names[column], where) if column in source.names else value
            for column, value in record.items()
            if column in source.columns and isinstance(value, str | int | float | list | dict | None)
        }
        yield {"file_name": file} | ({} if split is None else {"split": split}) | labels
        progress("unpacking images", number + 1, source.count)


def _content(cell: object, where: str, roots: Sequence[Path]) -> bytes:
    """Return the bytes of an image, or of the file at its path, which must be inside one of the folders."""
    content, path = (cell.get("bytes"), cell.get("path")) if isinstance(cell, Mapping) else (cell, None)
    if isinstance(content, bytes) and content:
        return content
    if not isinstance(path, str) or not roots:
        raise UserError(f"{where} has no image: remove the row.")
    try:
        return read_bytes(Path(path), _IMAGE_BYTES, inside=roots[0])
    except OSError as error:
        raise UserError(f"{where} names {path!r}, which cannot be read ({reason(error)}): correct it.") from error


def _write_labels(source: _Source, records: Sequence[dict[str, Any]], folder: Path) -> None:
    """Write a table of candidates; if there are only true labels, move the images to one folder per class."""
    if any(column in source.columns for column in _LABELS) or "label" not in source.columns:
        lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        (folder / "metadata.jsonl").write_text("".join(lines), "utf-8")
        return
    for number, record in enumerate(records, 1):
        label, split = str(record["label"]), record.get("split")
        if record["label"] is None or label in ("", ".", "..") or set(label) & {"/", "\\", "\0"} or not is_utf8(label):
            raise UserError(
                f"{source.name}, row {number} has the label {label!r}, which cannot be a folder name: rename it."
            )
        place = folder / label if split is None else folder / split / label
        place.mkdir(parents=True, exist_ok=True)
        (folder / record["file_name"]).rename(place / record["file_name"])


def _datasets() -> Any:
    try:
        return import_module("datasets")
    except ImportError as error:
        raise UserError(f"{PREFIX}NAME needs the package datasets: run pip install 'papi-pll[hub]'.") from error
