"""The lock of a run folder, between real processes and within one, where two opened files compete like two processes.

Everything that holds on an ordinary disk holds on one without locks, too, but for what other machines leave behind.
"""

import errno
import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_files import write_model
from papi.errors import UserError
from papi.files.lock import NAME, InUseError, Lock, Owner, describe, holder

# On a disk that knows no locks the call fails like this. There is none to test on, so the call is made to fail.
NO_FLOCK = f"""
import fcntl
def unsupported(*_):
    raise OSError({errno.ENOLCK}, {os.strerror(errno.ENOLCK)!r})
fcntl.flock = unsupported
"""
# Takes the lock at a word, says what came of it, and keeps it until its input ends.
HOLD = """
import sys
from pathlib import Path
from papi.errors import UserError
from papi.files.lock import Lock
print("ready", flush=True)
sys.stdin.readline()
try:
    lock = Lock(Path(sys.argv[1]))
except UserError as error:
    sys.exit(f"refused: {error}")
print("held", flush=True)
sys.stdin.readline()
lock.release()
"""


@pytest.fixture(params=["flock", "no flock"])
def disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """An ordinary disk, and one that knows no locks. The value is what makes other processes see it like that."""
    if request.param == "flock":
        return ""

    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    return NO_FLOCK


without_flock = pytest.mark.parametrize("disk", ["no flock"], indirect=True)


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def run(code: str, *arguments: object) -> str:
    """What a program says, which must end well."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def tell(process: subprocess.Popen[str], word: str = "go") -> None:
    assert process.stdin is not None
    process.stdin.write(f"{word}\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@contextmanager
def another_owner(folder: Path, disk: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock."""
    with start(disk + HOLD, folder) as process:
        try:
            tell(process)
            assert (hear(process), hear(process)) == ("ready", "held")
            yield process
        finally:
            process.kill()


def marker(folder: Path) -> list[str]:
    """The lines that this very process writes into a lock file."""
    mine = Lock(folder)
    lines = mine.file.read_text().splitlines()
    mine.release()
    return lines


def leave(folder: Path, *lines: object) -> Path:
    """A lock file that a killed process might have left."""
    file = folder / NAME
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def test_one_at_a_time(tmp_path: Path, disk: str) -> None:
    first = Lock(tmp_path)
    owner, held = holder(tmp_path)
    assert held
    assert owner is not None
    assert (owner.pid, owner.host) == (os.getpid(), socket.gethostname())
    with pytest.raises(InUseError, match=re.escape(f"{tmp_path} is in use by {describe(owner)}")):
        Lock(tmp_path)
    assert first.is_mine()
    first.release()
    assert not first.is_mine()
    assert list(tmp_path.iterdir()) == []
    assert holder(tmp_path) == (None, False)
    Lock(tmp_path).release()


def test_a_refused_process_says_who_is_in_the_way(tmp_path: Path, disk: str) -> None:
    with another_owner(tmp_path, disk) as owner:
        with pytest.raises(
            InUseError, match=rf"in use by process {owner.pid} on {socket.gethostname()} since 2\d{{3}}-"
        ):
            Lock(tmp_path)
        assert (tmp_path / NAME).read_text().startswith(f"{owner.pid}\n"), "a refused process leaves the file alone"
        _, said = start(disk + HOLD, tmp_path).communicate("go\n")
        assert said.startswith("refused: ")
        assert str(owner.pid) in said


def test_a_released_lock_is_the_next_ones(tmp_path: Path, disk: str) -> None:
    with another_owner(tmp_path, disk) as owner:
        tell(owner)
        assert owner.wait(timeout=60) == 0
    assert list(tmp_path.iterdir()) == []
    Lock(tmp_path).release()


def test_a_killed_process_leaves_nothing_to_clean_up(tmp_path: Path, disk: str) -> None:
    with another_owner(tmp_path, disk) as killed:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    owner, held = holder(tmp_path)
    assert owner is not None
    assert owner.pid == killed.pid
    assert not held
    mine = Lock(tmp_path)
    owner, held = holder(tmp_path)
    assert held
    assert owner is not None
    assert owner.pid == os.getpid()
    mine.release()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("left", [False, True], ids=["new folder", "folder of a killed process"])
def test_of_many_that_start_at_once_one_gets_the_lock(tmp_path: Path, left: bool) -> None:
    if left:
        with another_owner(tmp_path, ""):
            pass
    processes = [start(HOLD, tmp_path) for _ in range(4)]
    for process in processes:
        assert hear(process) == "ready"
    for process in processes:
        tell(process)
    heard = [hear(process) for process in processes]  # nothing from those who are refused
    assert sorted(heard) == ["", "", "", "held"]
    for process, said in zip(processes, heard, strict=True):
        process.communicate("done\n" if said else None)
        assert (process.returncode == 0) == (said == "held")
    assert list(tmp_path.iterdir()) == []


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path, disk: str) -> None:
    """What a killed run had started must not keep others from going on with it."""
    code = """
import os, sys, time
from pathlib import Path
from papi.files.lock import Lock
lock = Lock(Path(sys.argv[1]))
if os.fork() == 0:
    print(os.getpid(), flush=True)
    time.sleep(600)
os._exit(1)
"""
    with start(disk + code, tmp_path) as process:
        child = int(hear(process))
    try:
        os.kill(child, 0)
        assert not holder(tmp_path)[1]
        Lock(tmp_path).release()
    finally:
        os.kill(child, signal.SIGKILL)


PAST = {
    "no such process": lambda pid, host, token: (2**22 + 1, host, token),  # beyond what Linux gives out
    "an earlier boot": lambda pid, host, token: (pid, host, token ^ 1 << 64),
    "the number used again": lambda pid, host, token: (pid, host, token ^ 1),
}


@pytest.mark.parametrize("change", PAST.values(), ids=PAST)
@without_flock
def test_owners_of_the_past(tmp_path: Path, disk: str, change: Callable[[int, str, int], tuple[object, ...]]) -> None:
    pid, host, token = marker(tmp_path)
    leave(tmp_path, pid, host, token)
    assert holder(tmp_path)[1], "this very process runs"
    leave(tmp_path, *change(int(pid), host, int(token)))
    assert not holder(tmp_path)[1]
    Lock(tmp_path).release()
    assert list(tmp_path.iterdir()) == []


@without_flock
def test_without_a_start_time_the_process_number_decides(tmp_path: Path, disk: str) -> None:
    """Some systems do not tell when a process started."""
    pid, host, _ = marker(tmp_path)
    leave(tmp_path, pid, host)
    assert holder(tmp_path)[1]
    with pytest.raises(InUseError):
        Lock(tmp_path)


@pytest.mark.parametrize("content", ["1\nelsewhere\n5\n", "", "[]", "{half", "1\n"])
@without_flock
def test_without_flock_who_cannot_be_asked_counts_as_alive(tmp_path: Path, disk: str, content: str) -> None:
    file = tmp_path / NAME
    file.write_text(content)
    with pytest.raises(InUseError, match=rf"If you know that it has ended, delete {re.escape(str(file))}"):
        Lock(tmp_path)
    assert holder(tmp_path)[1]
    assert file.read_text() == content
    file.unlink()
    Lock(tmp_path).release()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL])
def test_whatever_a_disk_without_locks_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    mine = Lock(tmp_path)
    assert holder(tmp_path)[1]
    with pytest.raises(InUseError):
        Lock(tmp_path)
    mine.release()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fails_is_no_disk_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    (tmp_path / NAME).touch()
    monkeypatch.setattr(fcntl, "flock", failing)
    for look in (Lock, holder):
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            look(tmp_path)


def test_with_flock_another_machines_dead_owner_is_known(tmp_path: Path) -> None:
    """The job was killed there and continues here: the disk's server has freed the lock."""
    leave(tmp_path, 1, "elsewhere")
    owner, held = holder(tmp_path)
    assert owner is not None
    assert (owner.pid, owner.host) == (1, "elsewhere")
    assert not held
    Lock(tmp_path).release()
    assert list(tmp_path.iterdir()) == []


@given(content=st.binary(max_size=100) | st.text(max_size=50).map(str.encode) | st.just(b"7\nhost\n" * 2000))
def test_whatever_is_in_the_file_locks_nobody_out(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("run")
    (folder / NAME).write_bytes(content)
    owner, held = holder(folder)
    assert not held
    assert describe(owner).startswith("process" if owner else "another process")
    Lock(folder).release()
    assert list(folder.iterdir()) == []


def test_a_deleted_folder_is_no_longer_owned(tmp_path: Path, disk: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    mine = Lock(folder)
    folder.rename(tmp_path / "gone")
    assert not mine.is_mine()
    folder.mkdir()
    other = Lock(folder)
    assert other.is_mine()
    assert not mine.is_mine()
    mine.release()
    assert other.is_mine()
    assert holder(folder)[1]
    other.release()
    assert list(folder.iterdir()) == []


def test_a_deleted_file_is_no_longer_owned(tmp_path: Path, disk: str) -> None:
    mine = Lock(tmp_path)
    mine.file.unlink()
    assert not mine.is_mine()
    assert holder(tmp_path) == (None, False)
    mine.release()


def test_a_folder_that_does_not_exist_is_not_made(tmp_path: Path, disk: str) -> None:
    with pytest.raises(FileNotFoundError):
        Lock(tmp_path / "missing")
    assert holder(tmp_path / "missing") == (None, False)
    assert list(tmp_path.iterdir()) == []


# Root may write where it is forbidden, so the process gives its rights up first.
NO_RIGHTS = f"""
import sys
sys.path.append({str(Path(__file__).parents[1] / "faults")!r})
from pathlib import Path
from preloaded import FAULTS
from papi.files.lock import NAME, Lock, holder
FAULTS["no_rights"](True)
folder = Path(sys.argv[1])
"""


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    folder.chmod(0o555)
    try:
        yield
    finally:
        folder.chmod(0o755)


def test_a_read_only_folder_is_an_error_of_the_system(tmp_path: Path, disk: str) -> None:
    """The run folder makes a sentence of it."""
    code = """
try:
    Lock(folder)
except PermissionError as error:
    print(error.strerror)
print(holder(folder)[1])
"""
    with read_only(tmp_path):
        assert run(disk + NO_RIGHTS + code, tmp_path).splitlines() == [os.strerror(errno.EACCES), "False"]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_made_read_only_meanwhile_is_let_go(tmp_path: Path, disk: str) -> None:
    code = """
lock = Lock(folder)
folder.chmod(0o555)
print(lock.is_mine(), holder(folder)[1])
lock.release()
print((folder / NAME).exists())
"""
    try:
        assert run(disk + NO_RIGHTS + code, tmp_path).splitlines() == ["True True", "True"]
    finally:
        tmp_path.chmod(0o755)
    assert not holder(tmp_path)[1]
    Lock(tmp_path).release()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_left_as_it_was(tmp_path: Path, disk: str) -> None:
    code = """
import resource, sys
from pathlib import Path
from papi.files.lock import Lock
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
try:
    Lock(Path(sys.argv[1]))
except OSError as error:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(error.errno)
"""
    assert run(disk + code, tmp_path).strip() == str(errno.EFBIG)
    assert list(tmp_path.iterdir()) == []


def state(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_ino) for file in folder.iterdir()}


@pytest.mark.parametrize("what", ["held", "left", "damaged", "nothing"])
def test_looking_changes_nothing(tmp_path: Path, disk: str, what: str) -> None:
    mine = Lock(tmp_path) if what == "held" else None
    if what == "left":
        leave(tmp_path, 2**22 + 1, socket.gethostname())
    if what == "damaged":
        leave(tmp_path, "{half")
    before, when = state(tmp_path), tmp_path.stat().st_mtime_ns
    looks = [holder(tmp_path) for _ in range(3)]
    assert looks[0] == looks[1] == looks[2]
    assert (state(tmp_path), tmp_path.stat().st_mtime_ns) == (before, when)
    if mine is not None:
        assert mine.is_mine()
        mine.release()


def test_observers_do_not_take_each_other_for_the_owner(tmp_path: Path) -> None:
    found = []
    leave(tmp_path, 1, "elsewhere")

    def look() -> None:
        found.extend(holder(tmp_path)[1] for _ in range(300))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [False] * 1200


def test_who_is_looked_at_while_it_starts_waits_a_moment(tmp_path: Path) -> None:
    file = leave(tmp_path, 1, "elsewhere")
    with file.open() as look:
        fcntl.flock(look, fcntl.LOCK_SH)
        end = threading.Timer(0.1, look.close)
        end.start()
        Lock(tmp_path).release()
        end.join()
    assert list(tmp_path.iterdir()) == []


def test_another_thread_may_release(tmp_path: Path, disk: str) -> None:
    mine = Lock(tmp_path)
    thread = threading.Thread(target=mine.release)
    thread.start()
    thread.join()
    assert holder(tmp_path) == (None, False)
    Lock(tmp_path).release()


def test_owners_in_words() -> None:
    owner = Owner(123, "host", "2024-01-01 12:00:00")
    assert describe(owner) == "process 123 on host since 2024-01-01 12:00:00"
    assert describe(None) == "another process"


def test_a_model_loads_on_a_system_without_flock(tmp_path: Path) -> None:
    """Windows has no `fcntl`: models are used there, and run folders are read."""
    run_folder = write_model(tmp_path / "run")
    code = """
import sys, warnings
sys.modules["fcntl"] = None
warnings.simplefilter("ignore")  # filelock tells that it has soft locks alone
import numpy as np
import papi
from pathlib import Path
from papi.files.lock import holder
print(papi.load(sys.argv[1]).predict_proba(np.zeros((2, 1, 8, 8), "uint8")).shape)
print(holder(Path(sys.argv[1])))
"""
    assert run(code, run_folder).splitlines() == ["(2, 4)", "(None, False)"]


@pytest.mark.parametrize("kind", ["link to a file", "link to nothing", "pipe", "folder"])
def test_what_is_no_file_is_neither_followed_nor_waited_for(tmp_path: Path, disk: str, kind: str) -> None:
    """A folder from a stranger may hold anything under this name."""
    del disk
    run, private = tmp_path / "run", tmp_path / "private"
    run.mkdir()
    private.write_text("mine")
    if kind == "pipe":
        os.mkfifo(run / NAME)
    elif kind == "folder":
        (run / NAME).mkdir()
    else:
        (run / NAME).symlink_to(private if kind == "link to a file" else tmp_path / "new")
    with pytest.raises(UserError, match=rf"{NAME} is a (link|device or a pipe|folder)") as refused:
        Lock(run)
    assert not isinstance(refused.value, InUseError)
    assert holder(run) == (None, False)
    assert private.read_text() == "mine"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["private", "run"]
    assert [each.name for each in run.iterdir()] == [NAME]
