"""Images inside tables: datasets of Hugging Face and parquet files like theirs, unpacked into a folder of images.

What is unpacked is an image folder like any other: images, and a `metadata.jsonl` with the other columns. So all that
folders can do works for them, too. They are unpacked once, into the cache.
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
_BATCH = 256  # rows at a time
_MAGIC = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"RIFF": ".webp", b"GIF8": ".gif", b"BM": ".bmp"}
_LABELS = ("candidates", "excluded", "annotator")  # with one of them, a table has more than true labels
_IMAGE_BYTES = 2**30  # of one image


def load_hub(name: str, column: str | None = None, progress: Progress = silent) -> Path:
    """The folder with the images of `hf:NAME[/config]:split`, where a name may also be a folder of one's own.

    `column` names the images, where they are not to be found by their type.
    """
    datasets = _datasets()
    place, colon, split = name.removeprefix(PREFIX).rpartition(":")
    if not colon or not place or not split:
        raise UserError(f"{name} names no split: write {PREFIX}NAME:train, {PREFIX}OWNER/NAME:train or with a config.")
    parts = place.split("/")
    local = Path(place).exists()
    if not local and (Path(place).is_absolute() or len(parts) > 3 or place.startswith(".")):
        raise UserError(f"{name} does not exist: {place} is no folder here, and cannot be a name on the hub.")
    path, config = (place, None) if local or len(parts) < 3 else ("/".join(parts[:2]), "/".join(parts[2:]))
    try:
        found = datasets.load_dataset(path, config, split=split)
    except (OSError, ValueError, ImportError, datasets.exceptions.DatasetsError) as error:
        raise UserError(
            f"{name} cannot be loaded ({reason(error)}): is the name right, and the hub in reach?"
        ) from error
    roots = (Path(place),) if local else (Path(datasets.config.HF_CACHE_HOME),)
    key = f"{name} {getattr(found, '_fingerprint', '')}"  # which changes with the files it comes from
    schema = found.features.arrow_schema
    return _cached(_Source(name, schema, len(found), _batches(found), roots, key, column), progress)


def unpack(dataset: Any, folder: str | Path, image_column: str | None = None) -> Path:
    """Write a `datasets.Dataset` as a new folder of images that `papi train --data FOLDER` takes.

    Without an `image_column`, the images are in `image`, or else in the first column that holds some.
    """
    folder = Path(folder)
    if folder.exists():
        raise UserError(f"{folder} exists: give a new folder for the images.")
    schema, rows = dataset.features.arrow_schema, _batches(dataset)
    source = _Source("the dataset", schema, len(dataset), rows, (Path("/"),), column=image_column)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _write(source, folder, silent)
    return folder


def are_images_in_tables(data: str) -> bool:
    """Whether data that a person names are of Hugging Face, or parquet files with images."""
    return data.startswith(PREFIX) or bool(image_shards(Path(data)))


def image_shards(path: Path, column: str | None = None) -> list[Path]:
    """The parquet files with images at a path: the file itself, or those in a folder or its folder `data`.

    With the name of a `column` of images, all parquet files are taken to have it.
    """
    if path.is_file():
        files = [path] if path.suffix.lower() == ".parquet" else []
    else:
        found = (*path.glob("*.parquet"), *path.glob("data/*.parquet"))
        files = sorted(each for each in found if each.name != "metadata.parquet")
        if files and next(image_files(path), None) is not None:
            return []  # it is a folder of images, whatever else lies there
    return files if files and (column is not None or _image_columns(_schema(files[0]))) else []


def load_shards(files: Sequence[Path], column: str | None = None, progress: Progress = silent) -> Path:
    """The folder with the images of parquet files. Rows of files whose names begin with `test` are for testing."""
    schema = _schema(files[0])
    readers = [_reader(file) for file in files]
    state = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    count = sum(reader.metadata.num_rows for reader in readers)
    rows = _shard_rows(files, readers)
    name = str(files[0] if len(files) == 1 else files[0].parent)
    return _cached(_Source(name, schema, count, rows, (), json.dumps(state), column), progress)


class _Source:
    """Rows with images: what to call them, their schema and number, and where image files may be."""

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
            raise UserError(f"{name} has no column of images: it has {', '.join(schema.names)}.")
        if column is not None and column not in images:
            raise UserError(f"{name}: {unknown('column of images', column, images)}")
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
            raise UserError(f"{file} is not a readable parquet file ({reason(error)}).") from error


def _schema(file: Path) -> Any:
    return _reader(file).schema_arrow


def _reader(file: Path) -> Any:
    try:
        parquet = import_module("pyarrow.parquet")
        return parquet.ParquetFile(plain_file(file, memory_bytes()))
    except ImportError as error:
        raise UserError(f"{file}: reading parquet needs pyarrow: pip install 'papi-pll[parquet]'.") from error
    except (OSError, ValueError) as error:
        raise UserError(f"{file} is not a readable parquet file ({reason(error)}).") from error


def _image_columns(schema: Any) -> list[str]:
    """The columns of images: encoded bytes, with or without a path beside them; `image` is the first if it is one."""
    found = [field.name for field in schema if _holds_bytes(field.type)]
    return sorted(found, key=lambda name: name != "image")


def _holds_bytes(kind: Any) -> bool:
    types = import_module("pyarrow").types
    if types.is_struct(kind):
        return any(field.name == "bytes" and types.is_binary(field.type) for field in kind)
    return bool(types.is_binary(kind) or types.is_large_binary(kind))


def _cached(source: _Source, progress: Progress) -> Path:
    """The folder in the cache, made if it is not there."""
    folder = cache_dir() / "unpacked" / hashlib.sha256(source.key.encode()).hexdigest()[:24]
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        _write(source, folder, progress)
    return folder


def _write(source: _Source, folder: Path, progress: Progress) -> None:
    """Write all at once: the folder is complete, or it is not there."""
    half = Path(tempfile.mkdtemp(prefix=".half-", dir=folder.parent))
    try:
        records = list(_images(source, half, progress))
        _write_labels(source, records, half)
        os.replace(half, folder)
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)
        raise


def _images(source: _Source, folder: Path, progress: Progress) -> Iterator[dict[str, Any]]:
    """Write the image of each row, and give its other columns, with the name of the file."""
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
    """The bytes of an image, or of the file that a path names, which must be below one of the folders."""
    content, path = (cell.get("bytes"), cell.get("path")) if isinstance(cell, Mapping) else (cell, None)
    if isinstance(content, bytes) and content:
        return content
    if not isinstance(path, str) or not roots:
        raise UserError(f"{where} has no image: take the row out.")
    try:
        return read_bytes(Path(path), _IMAGE_BYTES, inside=roots[0])
    except OSError as error:
        raise UserError(f"{where} names {path!r}, which cannot be read: {reason(error)}.") from error


def _write_labels(source: _Source, records: Sequence[dict[str, Any]], folder: Path) -> None:
    """A table of candidates; where there are true labels alone, a folder for each class."""
    if any(column in source.columns for column in _LABELS) or "label" not in source.columns:
        lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        (folder / "metadata.jsonl").write_text("".join(lines), "utf-8")
        return
    for number, record in enumerate(records, 1):
        label, split = str(record["label"]), record.get("split")
        if record["label"] is None or label in ("", ".", "..") or set(label) & {"/", "\\", "\0"} or not is_utf8(label):
            raise UserError(
                f"{source.name}, row {number} has the label {label!r}, which cannot be the name of a folder."
            )
        place = folder / label if split is None else folder / split / label
        place.mkdir(parents=True, exist_ok=True)
        (folder / record["file_name"]).rename(place / record["file_name"])


def _datasets() -> Any:
    try:
        return import_module("datasets")
    except ImportError as error:
        raise UserError(f"{PREFIX}NAME needs datasets: pip install 'papi-pll[hub]'.") from error
