"""Files that are replaced as a whole, and only where they may be. That kills cost nothing is tested in tests/faults."""

import errno
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papi.errors import UserError
from papi.files.durable import append, open_regular, output_file, replacing, require_inside, require_output

# Writes half a file, says so, and waits until it is told to go on or is killed.
SLOW = """
import sys
from pathlib import Path
from papi.files.durable import output_file, replacing
def write(stream):
    stream.write(sys.argv[3].encode() * 1000)
    stream.flush()
    print("half", flush=True)
    sys.stdin.readline()
    stream.write(sys.argv[3].encode() * 1000)
file = Path(sys.argv[2])
if sys.argv[1] == "replacing":
    with replacing(file) as stream:
        write(stream)
else:
    with output_file(file) as half, half.open("wb") as stream:
        write(stream)
"""
FACES = ["replacing", "output_file"]


def put(face: str, file: Path, content: bytes = b"new") -> None:
    if face == "replacing":
        with replacing(file) as stream:
            stream.write(content)
    else:
        with output_file(file) as half:
            half.write_bytes(content)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def begin(face: str, file: Path, letter: str) -> subprocess.Popen[str]:
    """A process in the middle of writing a file."""
    command = [sys.executable, "-c", SLOW, face, str(file), letter]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "half\n"
    return process


def finish(process: subprocess.Popen[str]) -> None:
    process.communicate("go\n")
    assert process.returncode == 0


def test_what_was_there_stays_until_all_is_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    with replacing(file) as stream:
        stream.write(b"new")
        stream.flush()
        assert file.read_bytes() == b"old"
    assert file.read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


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
    assert names(tmp_path) == ["file"]


def test_order_of_what_reaches_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content before the name, and the names before anything else is done: a power cut finds a whole file."""
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor: int) -> None:
        done.append("folder" if os.path.samestat(os.fstat(descriptor), os.stat(tmp_path)) else "content")
        fsync(descriptor)

    def noted_replace(source: Path, target: Path) -> None:
        begun = re.fullmatch(r"\.file\.[0-9a-f]+\.writing(\.csv)?", source.name)
        done.append(f"{'beside' if begun else source.name} → {target.name}")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    for text in (b"one", b"two"):
        with replacing(tmp_path / "file", keep=tmp_path / "kept") as stream:
            stream.write(text)
    one = ["content", "beside → file", "folder"]
    assert done == [*one, "content", "file → kept", "beside → file", "folder"]
    assert (tmp_path / "kept").read_bytes() == b"one"
    done.clear()
    put("output_file", tmp_path / "file")
    assert done == one


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("leads", ["to a file", "to nothing", "to itself", "to a folder", "to a device"])
def test_a_link_is_neither_followed_nor_replaced(face: str, leads: str, tmp_path: Path) -> None:
    (tmp_path / "private").write_text("mine")
    (tmp_path / "folder").mkdir()
    target = {"file": "private", "nothing": "missing", "itself": "link.csv", "folder": "folder", "device": "/dev/null"}
    link = tmp_path / "link.csv"
    link.symlink_to(target[leads.split()[-1]])
    before = names(tmp_path)
    with pytest.raises(UserError, match="is a link: specify its target, or remove the link"):
        put(face, link)
    assert link.is_symlink()
    assert (tmp_path / "private").read_text() == "mine"
    assert names(tmp_path) == before
    assert names(tmp_path / "folder") == []


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_what_appears_meanwhile_stays(kind: str, tmp_path: Path) -> None:
    """A long command finds another world at its end."""
    file = tmp_path / "out.csv"
    make: dict[str, Callable[[], None]] = {
        "link": lambda: file.symlink_to(tmp_path / "private"),
        "folder": file.mkdir,
        "pipe": lambda: os.mkfifo(file),
    }

    def write() -> None:
        with output_file(file) as half:
            half.write_text("new")
            make[kind]()

    with pytest.raises(UserError):
        write()
    assert not stat.S_ISREG(file.lstat().st_mode)
    assert names(tmp_path) == ["out.csv"]


def test_the_kept_file_is_no_link_either(tmp_path: Path) -> None:
    (tmp_path / "private").write_text("mine")
    (tmp_path / "kept").symlink_to("private")
    put("replacing", tmp_path / "file", b"old")
    with pytest.raises(UserError, match="kept is a link"), replacing(tmp_path / "file", tmp_path / "kept") as stream:
        stream.write(b"new")
    assert (tmp_path / "private").read_text() == "mine"
    assert (tmp_path / "file").read_bytes() == b"old"
    assert names(tmp_path) == ["file", "kept", "private"]


def test_a_guessed_temporary_name_is_no_use(tmp_path: Path) -> None:
    """Links under the names that earlier versions used, and under one of ours that has been used."""
    (tmp_path / "private").write_text("mine")
    with output_file(tmp_path / "x.csv") as half:
        half.write_text("first")
    for name in (".x.csv.writing", ".writing.x.csv", half.name):
        (tmp_path / name).symlink_to("private")
    for face in FACES:
        put(face, tmp_path / "x.csv", b"second")
    assert (tmp_path / "private").read_text() == "mine"
    assert (tmp_path / "x.csv").read_bytes() == b"second"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with output_file(tmp_path / "pipe") as place:
        place.write_text("new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("name", ["/dev/null", "/dev/stdout", "/dev/fd/1"])
def test_devices_that_a_person_names(name: str) -> None:
    """In a process of its own, whose output is then a pipe or a file."""
    code = f"""
from pathlib import Path
from papi.files.durable import output_file
with output_file(Path({name!r})) as place:
    place.write_text("new")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ("" if name == "/dev/null" else "new")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_standard_output_that_is_a_file(tmp_path: Path) -> None:
    """`--out /dev/stdout > file`: the file is written to, not replaced by name."""
    code = """
from pathlib import Path
from papi.files.durable import output_file
with output_file(Path("/dev/stdout")) as place:
    place.write_text("new")
"""
    with (tmp_path / "file").open("wb") as stream:
        place = os.fstat(stream.fileno()).st_ino
        subprocess.run([sys.executable, "-c", code], stdout=stream, check=True)
    assert (tmp_path / "file").read_text() == "new"
    assert (tmp_path / "file").stat().st_ino == place


def test_what_must_be_a_file_is_no_device(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for file in (Path("/dev/null"), Path("/dev/stdout"), tmp_path / "pipe"):
        with pytest.raises(UserError, match=r"is a (device or a pipe|link)"):
            require_output(file, pipes=False)
        with pytest.raises(UserError, match=r"is a (device or a pipe|link)"):
            put("replacing", file)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert (tmp_path / "pipe").is_fifo()


def test_an_output_that_nobody_has_named_is_no_stream(tmp_path: Path) -> None:
    """A folder may hold a pipe in the place of a file: to open it is to wait for ever."""
    os.mkfifo(tmp_path / "labels.csv")
    with pytest.raises(UserError, match="is a device or a pipe"):
        require_output(tmp_path / "labels.csv", within=tmp_path)


@pytest.mark.parametrize("deep", ["a", "a/b", "a/b/c"])
def test_folders_on_the_way_are_no_links(deep: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    run = tmp_path / "run"
    (run / deep).parent.mkdir(parents=True)
    (run / deep).symlink_to(tmp_path / "elsewhere")
    file = run / deep / "d" / "file.csv"
    with pytest.raises(UserError, match=f"{deep} is a link"), output_file(file, within=run):
        pass
    assert names(tmp_path / "elsewhere") == []
    (tmp_path / "shortcut").symlink_to(run)  # the folder itself may be reached through one
    (run / deep).unlink()
    require_inside(tmp_path / "shortcut" / deep, tmp_path / "shortcut")


def test_inputs_are_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text("mine")
    (tmp_path / "sub").mkdir()
    inputs = [tmp_path / "in.csv", tmp_path / "missing", Path("impossible\0")]
    for name in ("in.csv", "sub/../in.csv", str(tmp_path / "in.csv")):
        with pytest.raises(UserError, match="is an input of this command"), output_file(Path(name), inputs=inputs):
            pass
    with output_file(tmp_path / "out.csv", inputs=inputs) as half:
        half.write_text("new")
    with output_file(tmp_path / "missing", inputs=inputs) as half:
        half.write_text("new")
    assert (tmp_path / "in.csv").read_text() == "mine"


def test_what_goes_wrong_leaves_nothing(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match=r"x\.csv cannot be written \(No space left on device\)"),
        output_file(tmp_path / "x.csv"),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(UserError, match="is a folder: specify a file"), output_file(tmp_path):
        pass
    assert names(tmp_path) == []


def test_folders_made_for_nothing_are_removed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()

    def fail(file: Path) -> None:
        with output_file(file):
            raise UserError("no")

    for name in ("new/deep/x.csv", "there/x.csv", "there/new/x.csv"):
        with pytest.raises(UserError, match="no"):
            fail(tmp_path / name)
    assert names(tmp_path) == ["there"]
    assert names(tmp_path / "there") == []
    put("output_file", tmp_path / "new" / "deep" / "x.csv")
    assert (tmp_path / "new" / "deep" / "x.csv").read_bytes() == b"new"


@pytest.mark.parametrize("face", FACES)
def test_rights_follow_the_mask(face: str, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        put(face, tmp_path / "file")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@given(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=255))
def test_any_name(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    """Whatever the system takes for a name; the temporary one is longer and has to fit, too."""
    if name in (".", "..") or len(os.fsencode(name)) > 255:
        return
    folder = tmp_path_factory.mktemp("any")
    for face in FACES:
        put(face, folder / name)
    assert names(folder) == [name]
    with output_file(folder / "deep" / name) as half:
        assert half.parent == folder / "deep"
        assert half.name.endswith(Path(name).suffix[:16])


@pytest.mark.parametrize("face", FACES)
def test_two_processes_at_once(face: str, tmp_path: Path) -> None:
    """Each writes its own file. Who ends last wins, with a whole file."""
    file = tmp_path / "table.csv"
    first, second = begin(face, file, "a"), begin(face, file, "b")
    assert len(names(tmp_path)) == 2
    assert not file.exists()
    finish(second)
    assert file.read_bytes() == b"b" * 2000
    finish(first)
    assert file.read_bytes() == b"a" * 2000
    assert names(tmp_path) == ["table.csv"]


@pytest.mark.parametrize("face", FACES)
def test_leftovers_of_the_dead_are_removed_and_those_of_the_living_stay(face: str, tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    dead, alive = begin(face, file, "a"), begin(face, file, "b")
    other = begin(face, tmp_path / "other.csv", "c")
    for process in (dead, other):
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert len(names(tmp_path)) == 3
    put(face, file, b"new")
    left = names(tmp_path)
    assert len(left) == 3, "one that is being written, one of another file, and the file"
    assert file.read_bytes() == b"new"
    finish(alive)
    assert file.read_bytes() == b"b" * 2000
    put(face, tmp_path / "other.csv")
    assert names(tmp_path) == ["other.csv", "table.csv"]


def test_leftovers_are_of_a_kind_that_is_recognised(tmp_path: Path) -> None:
    """`papi doctor` looks for them by name."""
    for face in FACES:
        process = begin(face, tmp_path / "table.csv", "a")
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert len(list(tmp_path.glob(".*.writing*"))) == 2
    assert len(list(tmp_path.glob(".*.writing"))) == 1


def test_a_disk_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can tell whether a leftover is still being written, so it stays."""
    import fcntl

    dead = begin("replacing", tmp_path / "file", "a")
    dead.send_signal(signal.SIGKILL)
    dead.communicate()

    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    put("replacing", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert len(names(tmp_path)) == 2


def test_many_writers_in_one_process(tmp_path: Path) -> None:
    """They remove leftovers and create files all the time, and none disturbs another."""
    problems: list[Exception] = []

    def write(letter: str) -> None:
        try:
            for _ in range(50):
                put("replacing", tmp_path / "file", letter.encode() * 5000)
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    content = (tmp_path / "file").read_bytes()
    assert content == content[:1] * 5000
    assert names(tmp_path) == ["file"]


def test_adding_to_the_end(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    append(file, b"one\n")
    append(file, b"two\n")
    assert file.read_bytes() == b"one\ntwo\n"
    (tmp_path / "link").symlink_to(file)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(UserError, match="is a "):
            append(tmp_path / name, b"three\n")
    assert file.read_bytes() == b"one\ntwo\n"


def test_opening_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("missing")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "."):
        with pytest.raises(UserError, match="is a "):
            open_regular(tmp_path / name, os.O_RDWR | os.O_CREAT)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "nothing", os.O_RDONLY)
    assert names(tmp_path) == ["link", "pipe"]


@pytest.mark.parametrize("place", ["missing/file", "file/file"])
def test_folders_that_cannot_be(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    writing: AbstractContextManager[object] = replacing(tmp_path / place)
    with pytest.raises(OSError, match=r"No such file|Not a directory"), writing:
        pass
    if place == "file/file":
        with pytest.raises(UserError, match=r"cannot be written \(.*\): choose another path with --out"):
            put("output_file", tmp_path / place)
    assert names(tmp_path) == ["file"]
