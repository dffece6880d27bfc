"""Files that are replaced as a whole. That kills cost nothing is tested with real processes in tests/faults."""

import errno
import os
from pathlib import Path

import pytest

from papi.errors import UserError
from papi.files.durable import output_file, replacing


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


def test_a_link_stays_and_leads_to_what_was_written(tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to(tmp_path / "target.csv")
    with output_file(tmp_path / "link.csv") as half:
        half.write_text("new")
        assert not (tmp_path / "target.csv").exists()
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "target.csv").read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with output_file(tmp_path / "pipe") as place:
        place.write_text("new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


def test_what_goes_wrong_leaves_nothing(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match=r"x\.csv cannot be written \(No space left on device\)"),
        output_file(tmp_path / "x.csv"),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(UserError, match="is a folder: name the file"), output_file(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []
