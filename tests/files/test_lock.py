"""The lock of a run folder, within one process: two opened files compete like two processes."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from papi.files import lock
from papi.files.lock import InUseError, Lock, holder


@pytest.fixture(params=["flock", "no flock"])
def disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """An ordinary disk, and one that knows no locks: there the call fails like this."""
    if request.param == "no flock":

        def unsupported(*_: object) -> None:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        monkeypatch.setattr(lock.fcntl, "flock", unsupported)
    return str(request.param)


def test_one_at_a_time(tmp_path: Path, disk: str) -> None:
    first = Lock(tmp_path)
    assert holder(tmp_path)[1]
    with pytest.raises(InUseError, match=rf"is in use by process {os.getpid()} on .* since 2"):
        Lock(tmp_path)
    first.release()
    assert list(tmp_path.iterdir()) == []
    assert holder(tmp_path) == (None, False)
    Lock(tmp_path).release()


def test_a_dead_process_leaves_nothing_to_clean_up(tmp_path: Path, disk: str) -> None:
    code = "import os, sys, pathlib; from papi.files.lock import Lock; Lock(pathlib.Path(sys.argv[1])); os._exit(1)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    owner, held = holder(tmp_path)
    assert owner is not None
    assert owner["pid"] != os.getpid()
    assert not held
    Lock(tmp_path).release()


def written(folder: Path, **changes: Any) -> Path:
    """A lock file of this very process, but for some changes."""
    mine = Lock(folder)
    owner = json.loads(mine.file.read_text()) | changes
    mine.release()
    mine.file.write_text(json.dumps(owner))
    return mine.file


@pytest.mark.parametrize("changes", [{"boot": "an earlier one"}, {"started": "1"}], ids=["reboot", "number used again"])
def test_owners_of_the_past(tmp_path: Path, disk: str, changes: dict[str, str]) -> None:
    written(tmp_path, **changes)
    assert not holder(tmp_path)[1]
    Lock(tmp_path).release()


@pytest.mark.parametrize("disk", ["no flock"], indirect=True)
@pytest.mark.parametrize("content", [None, "", "[]", "{half"])
def test_without_flock_who_cannot_be_asked_counts_as_alive(tmp_path: Path, disk: str, content: str | None) -> None:
    file = written(tmp_path, host="elsewhere")
    if content is not None:
        file.write_text(content)
    with pytest.raises(InUseError, match=r"If you know that it has ended, delete .*run\.lock"):
        Lock(tmp_path)
    assert holder(tmp_path)[1]
    file.unlink()
    Lock(tmp_path).release()


def test_with_flock_another_machines_dead_owner_is_known(tmp_path: Path) -> None:
    """The job was killed there and continues here: the disk's server has freed the lock."""
    written(tmp_path, host="elsewhere")
    assert not holder(tmp_path)[1]
    Lock(tmp_path).release()


def test_a_deleted_folder_is_no_longer_owned(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    mine = Lock(folder)
    folder.rename(tmp_path / "gone")
    assert not mine.is_mine()
    folder.mkdir()
    other = Lock(folder)
    assert other.is_mine()
    mine.release()
    assert other.is_mine()
    other.release()
