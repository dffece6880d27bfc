"""Damage to one file: within its format, by its bytes, or by putting something else in its place."""

import csv
import hashlib
import io
import json
import os
import shutil
import socket
import stat
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from hostile_documents import change_toml, change_xlsx, change_xml
from hostile_values import DEPTH, DIGITS, NUMBERS, TEXTS, change_array, change_bytes, change_tree, nested
from PIL import Image

IMAGES = (".png", ".jpg")
NAN = float("nan")
PLACES = ("link out", "relative link out", "link to a new file", "link to itself", "pipe", "folder", "device", "socket")


def damage(file: Path, chance: Random, outside: Path, *, given: bool) -> str:
    """Spoil a file and return what was done.

    A file that a person names on the command line (`given`) may be a link of theirs: it never points to a secret.
    """
    how = chance.random()
    if how < 0.2:
        return put_in_place(file, chance, outside, secret=not given)
    if how < 0.45 or file.suffix not in FORMATS or not file.is_file():
        content, done = change_bytes(file.read_bytes() if file.is_file() else b"text", chance)
    else:
        content, done = _within_format(file, chance)
    _write(file, content)
    return f"{file.name}: {done}"


def _within_format(file: Path, chance: Random) -> tuple[bytes, str]:
    """Another content of the same format. A file that was spoilt before may no longer be readable."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return FORMATS[file.suffix](file, chance)
    except Exception as error:  # whatever the libraries of the formats raise
        content, done = change_bytes(file.read_bytes(), chance)
        return content, f"{done} (its format would not: {error!r:.80})"


def _write(file: Path, content: bytes) -> None:
    if file.is_symlink() or not file.is_file():
        _remove(file)
    file.write_bytes(content)


def _remove(file: Path) -> None:
    if file.is_dir() and not file.is_symlink():
        shutil.rmtree(file)
    else:
        file.unlink(missing_ok=True)


def put_in_place(file: Path, chance: Random, outside: Path, *, secret: bool = True) -> str:
    """Something that is no regular file in the place of a file, or where a command would write one."""
    kind = chance.choice(PLACES)
    target = outside / ("private.txt" if secret else "public.txt")
    if file.parent.is_symlink() or not file.parent.is_dir():  # an earlier trap lies in the place of the folder
        _remove(file.parent)
    file.parent.mkdir(parents=True, exist_ok=True)
    _remove(file)
    if kind == "link out":
        file.symlink_to(target)
    elif kind == "relative link out":
        file.symlink_to(os.path.relpath(target, file.parent))
    elif kind == "link to a new file":
        file.symlink_to(outside / f"new{file.suffix}")
    elif kind == "link to itself":
        file.symlink_to(file.name)
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "socket":
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(os.path.relpath(file))
        except OSError:  # the name of a socket must be short
            os.mkfifo(file)
    elif kind == "device":
        try:
            os.mknod(file, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # endless zeros, as /dev/zero
        except OSError:
            os.mkfifo(file)
    else:
        file.mkdir()
    return f"{file.name}: a {kind}"


def as_json(value: Any) -> str:
    """JSON, also of what is too deep or too long for Python to write."""
    try:
        return json.dumps(value).replace(json.dumps(DIGITS), "7" * 5000)
    except RecursionError:
        return "[" * DEPTH + "]" * DEPTH


def _json(file: Path, chance: Random) -> tuple[bytes, str]:
    if chance.random() < 0.1:
        text, done = chance.choice(
            [("[" * 100_000, "brackets"), ("null", "null"), ("{}", "nothing in it"), ("7" * 5000, "digits"),
             ('{"a":' * DEPTH + "1" + "}" * DEPTH, "deep"), ("NaN", "NaN"), ("\ufeff{}", "a byte-order mark")]
        )  # fmt: skip
        return text.encode(), done
    tree, done = change_tree(json.loads(file.read_text()), chance)
    return as_json(tree).encode(), done


def _jsonl(file: Path, chance: Random) -> tuple[bytes, str]:
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    at = chance.randrange(len(rows))
    kind = chance.randrange(5)
    if kind == 0:
        rows = chance.choice([rows[:at] + rows[at + 1 :], [*rows, rows[at]], rows[::-1], []])
        done = "other rows"
    elif kind == 1:
        rows[at], done = chance.choice([[], 7, None, "text", nested(60), rows]), f"row {at} is no object"
    else:
        rows[at], done = change_tree(rows[at], chance)
    lines = [as_json(row) for row in rows]
    if kind == 2:
        lines.insert(at, chance.choice(["", "}{", "\x00", "[" * 50_000]))
    return "".join(f"{line}\n" for line in lines).encode(), done


def _csv(file: Path, chance: Random) -> tuple[bytes, str]:
    between = "\t" if file.suffix == ".tsv" else ","
    rows = list(csv.reader(io.StringIO(file.read_text()), delimiter=between))
    at = chance.randrange(len(rows))
    column = chance.randrange(len(rows[at]))
    kind = chance.randrange(6)
    if kind == 0:
        rows = [row[:column] + row[column + 1 :] for row in rows]
        done = f"column {column} dropped"
    elif kind == 1:
        rows[at] = chance.choice([rows[at][:-1], rows[at] * 2, [], [""], rows[at - 1]])
        done = f"row {at} of another length"
    elif kind == 2:
        rows[0][column] = chance.choice(["", "label", "candidates", rows[0][0], "x"])
        done = f"column {column} renamed to {rows[0][column]!r}"
    else:
        value = chance.choice([*TEXTS, *map(str, NUMBERS), "cat|cat", "[1,", "|", "a" * 200_000, "./" + rows[at][0]])
        rows[at][column] = value
        done = f"{value[:40]!r} in row {at}, column {column}"
    text = io.StringIO()
    csv.writer(text, delimiter=between).writerows(rows)
    content = text.getvalue().replace(DIGITS, "7" * 5000).encode("utf-8", "replace")
    return (content.replace(b",", b";") if chance.random() < 0.03 else content), done


def _npy_bytes(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=True)
    return stream.getvalue()


def _lying_npy(chance: Random) -> bytes:
    """An array whose header promises more than there is."""
    header = {"descr": chance.choice(["<f4", "|u1", "<i8"]), "fortran_order": False}
    shape = chance.choice(["(4611686018427387904,)", "(1099511627776, 3)", "(-1, 4)", "(3, -3)", "(2, 2, 2, 2)", "()"])
    text = f"{{'descr': {header['descr']!r}, 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1) + text.encode() + b"\n" + bytes(64)


def _npy(file: Path, chance: Random) -> tuple[bytes, str]:
    if chance.random() < 0.2:
        return _lying_npy(chance), "a header that lies"
    array, done = change_array(np.load(file), chance)
    return _npy_bytes(array), done


def _npz(file: Path, chance: Random) -> tuple[bytes, str]:
    with np.load(file) as read:
        arrays = dict(read)
    name = chance.choice(list(arrays))
    members = {f"{each}.npy": _npy_bytes(array) for each, array in arrays.items()}
    kind = chance.randrange(10)
    if kind == 0:
        del members[f"{name}.npy"]
        done = f"{name} dropped"
    elif kind == 1:
        new = chance.choice([f"{name}x.npy", f"{name}", "../outside/out.npy", "/out.npy", ".npy", "counts.npy"])
        members[new] = members.pop(f"{name}.npy")
        done = f"{name} renamed to {new}"
    elif kind == 2:
        members[chance.choice([f"{name}.npy", "note.txt", "extra.npy"])] = chance.choice(
            [b"text", b"", _lying_npy(chance)]
        )
        done = f"a member that is no array, near {name}"
    elif kind == 3:
        members[f"{name}.npy"] = _lying_npy(chance)
        done = f"{name} with a header that lies"
    else:
        changed, done = change_array(arrays[name], chance)
        members[f"{name}.npy"] = _npy_bytes(changed)
        done = f"{name} {done}"
    return _zipped(members, chance), done


def _zipped(members: dict[str, bytes], chance: Random) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", chance.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as made:
        for name, content in members.items():
            made.writestr(name, content)
        if members and chance.random() < 0.05:
            made.writestr(next(iter(members)), b"twice")
    content = stream.getvalue()
    if chance.random() < 0.05:  # says that it is encrypted
        content = content.replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01")
    return content


def _mat(file: Path, chance: Random) -> tuple[bytes, str]:
    from scipy import io as scipy_io
    from scipy import sparse

    variables = {name: value for name, value in scipy_io.loadmat(file).items() if not name.startswith("__")}
    name = chance.choice(list(variables))
    kind = chance.randrange(8)
    if kind == 0:
        del variables[name]
        done = f"{name} dropped"
    elif kind == 1:
        variables[name] = chance.choice(
            ["text", {"field": 1}, sparse.csc_matrix(np.eye(3)), np.array([[1], "a"], object)]
        )
        done = f"{name} of another kind"
    else:
        variables[name], done = change_array(variables[name], chance)
        done = f"{name} {done}"
    stream = io.BytesIO()
    scipy_io.savemat(stream, variables, do_compression=chance.random() < 0.5)
    return stream.getvalue(), done


def _parquet(file: Path, chance: Random) -> tuple[bytes, str]:
    import pyarrow
    from pyarrow import parquet

    table = parquet.read_table(file, use_threads=False)
    column = chance.randrange(table.num_columns)
    name, count = table.column_names[column], table.num_rows
    kind = chance.randrange(4)
    if kind == 0:
        table, done = table.remove_column(column), f"{name} dropped"
    elif kind == 1:
        new = chance.choice([f"{name}x", "", "label", table.column_names[0]])
        names = [new if k == column else each for k, each in enumerate(table.column_names)]
        table, done = table.rename_columns(names), f"{name} renamed to {new!r}"
    else:
        cells = [
            None,
            1.5,
            NAN,
            b"\xff\xfe",
            ["a", None],
            [[1]],
            {"a": 1},
            2**63 - 1,
            True,
            text_of(chance),
            ["x"] * 2000,
        ]
        values = [chance.choice(cells)] * count
        table = table.set_column(column, name, pyarrow.array(values))
        done = f"{name} is {str(values[:1])[:40]}"
    stream = io.BytesIO()
    parquet.write_table(table, stream)
    return stream.getvalue(), done


def text_of(chance: Random) -> str:
    """A hostile text that every format takes."""
    return chance.choice([text for text in TEXTS if "\x00" not in text])


def _checkpoint(file: Path, chance: Random) -> tuple[bytes, str]:
    """A forged checkpoint: its checksum is right."""
    first, _, rest = file.read_bytes().partition(b"\n")
    header = json.loads(first)
    if chance.random() < 0.15:
        header, done = change_tree(header, chance)
        return as_json(header).encode() + b"\n" + rest, f"header {done}"
    state, done = change_tree(torch.load(io.BytesIO(rest), weights_only=True), chance)
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getvalue()
    header |= {"length": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return json.dumps(header).encode() + b"\n" + content, f"forged, {done}"


def _safetensors(file: Path, chance: Random) -> tuple[bytes, str]:
    content = file.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header, body = json.loads(content[8 : 8 + length]), content[8 + length :]
    kind = chance.randrange(6)
    if kind < 3:
        card, done = change_tree(json.loads(header["__metadata__"]["papi"]), chance)
        header["__metadata__"]["papi"] = as_json(card)
        done = f"card, {done}"
    elif kind == 3:
        header, done = change_tree(header, chance)
    elif kind == 4:
        value = struct.pack("<f", chance.choice([NAN, float("inf"), 1e38]))
        at = 4 * chance.randrange(max(1, len(body) // 4))
        body, done = body[:at] + value + body[at + 4 :], "a weight that is not finite"
    else:
        promised = chance.choice([0, 2**63, 2**40, length + 1, length - 1])
        return struct.pack("<Q", promised) + content[8:], f"a header of {promised} bytes"
    text = as_json(header).encode()
    return struct.pack("<Q", len(text)) + text + body, done


def _image(file: Path, chance: Random) -> tuple[bytes, str]:
    kind = chance.randrange(4)
    if kind == 0:
        return _pixel_bomb(chance), "a picture of far too many pixels"
    if kind == 1:
        return b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\nshowpage\n", "PostScript"
    picture = Image.new(chance.choice(["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I", "F", "I;16"]), (8, 8))
    size = chance.choice([(8, 8), (1, 1), (1, 500), (9, 7)])
    form = chance.choice(["PNG", "JPEG", "GIF", "BMP", "TIFF", "PPM", "WEBP", "ICO", "PCX", "TGA", "EPS", "PDF", "SGI"])
    stream = io.BytesIO()
    picture.resize(size).save(stream, form)
    return stream.getvalue(), f"{form} of mode {picture.mode} and size {size}"


def _pixel_bomb(chance: Random) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    side = chance.choice([0, 50_000, 2**31 - 1])
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")


FORMATS: dict[str, Callable[[Path, Random], tuple[bytes, str]]] = {
    ".json": _json,
    ".jsonl": _jsonl,
    ".csv": _csv,
    ".tsv": _csv,
    ".xlsx": change_xlsx,
    ".xml": change_xml,
    ".toml": change_toml,
    ".npy": _npy,
    ".npz": _npz,
    ".mat": _mat,
    ".parquet": _parquet,
    ".pt": _checkpoint,
    ".safetensors": _safetensors,
    **dict.fromkeys(IMAGES, _image),
}
