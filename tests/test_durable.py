"""Files that are replaced as a whole. That kills cost nothing is tested with real processes in tests/faults."""

import os
from pathlib import Path

import pytest

from papi.durable import replacing


def test_what_was_there_stays_until_all_is_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    with replacing(file) as stream:
        stream.write(b"new")
        stream.flush()
        assert file.read_bytes() == b"old"
    assert file.read_bytes() == b"new"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_an_error_leaves_the_old_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")

    def write_half() -> None:
        with replacing(file, keep=tmp_path / "kept") as stream:
            stream.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert file.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_order_of_what_reaches_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content before the name, and the names before anything else is done: a power cut finds a whole file."""
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor: int) -> None:
        done.append("folder" if os.path.samestat(os.fstat(descriptor), os.stat(tmp_path)) else "content")
        fsync(descriptor)

    def noted_replace(source: Path, target: Path) -> None:
        done.append(f"{source.name} → {target.name}")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    for text in (b"one", b"two"):
        with replacing(tmp_path / "file", keep=tmp_path / "kept") as stream:
            stream.write(text)
    one = ["content", ".file.writing → file", "folder"]
    assert done == [*one, "content", "file → kept", ".file.writing → file", "folder"]
    assert (tmp_path / "kept").read_bytes() == b"one"
