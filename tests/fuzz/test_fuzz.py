"""A minute of the fuzzer, and that it would notice what it looks for."""

import os
import re
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hostile_files import FORMATS, PLACES, damage, put_in_place
from hostile_values import change_array, change_bytes, change_tree
from PIL import Image
from sandbox import differences, look
from specimens import make_outside
from tries import TRIES

import papi.cli

HERE = Path(__file__).parent
ONE_AT_A_TIME = pytest.mark.xdist_group("fuzz")


def program(*words: object, code: str | None = None) -> subprocess.CompletedProcess[str]:
    """The fuzzer, or a program that uses it, in a process of its own: it forks, and is fast with one thread."""
    start = [str(HERE / "fuzz.py")] if code is None else ["-c", code]
    return subprocess.run(
        [sys.executable, *start, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE)},
    )


@ONE_AT_A_TIME
def test_nothing_crashes_hangs_or_reaches_outside(tmp_path: Path) -> None:
    done = program("--seconds", 45, "--keep", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    line = done.stdout.strip().splitlines()[-1]
    found = re.fullmatch(r"(\d+) tries, (\d+) refusals, 0 crashes, 0 hangs, 0 touched outside", line)
    assert found is not None, line
    assert 0 < int(found[2]) < int(found[1])
    assert not list(tmp_path.iterdir())


# A command that does what is asked of it, in the place of PaPi's.
MISBEHAVING = """
import os, sys, time
from pathlib import Path
import papi.cli, sandbox

def main():
    outside = Path("../outside")
    exec(sys.argv[1])

papi.cli.main = main
folder, outside = Path(sys.argv[1]) / "case", Path(sys.argv[1]) / "outside"
before = sandbox.look(outside)
ended = sandbox.run((sys.argv[2],), folder, outside, folder.parent / "said", 2)
print(ended.code, ended.crashed, sandbox.differences(before, sandbox.look(outside)))
"""


@ONE_AT_A_TIME
@pytest.mark.parametrize(
    ("does", "seen"),
    [
        ("pass", "0 False []"),
        ("sys.exit(2)", "2 False []"),
        ("raise KeyError('a')", "70 True []"),
        ("sys.exit(3)", "3 True []"),
        ("os.abort()", "-6 True []"),
        ("print('Traceback (most recent call last)')", "0 True []"),
        ("time.sleep(60)", "None False []"),
        ("os.mkfifo('pipe'); open('pipe')", "None False []"),
        ("bytearray(2**36)", "70 True []"),
        ("(outside / 'private.txt').write_text('x')", "0 False ['private.txt']"),
        ("(outside / 'new').touch()", "0 False ['new']"),
        ("(outside / 'public.txt').unlink()", "0 False ['public.txt']"),
        ("Path.home().joinpath('.cache').mkdir()", "0 False ['home/.cache']"),
        ("import trap", "0 False ['imported']"),
    ],
)
def test_what_a_command_does_is_seen(does: str, seen: str, tmp_path: Path) -> None:
    (tmp_path / "case").mkdir()
    make_outside(tmp_path / "outside")
    done = program(tmp_path, does, code=MISBEHAVING)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == seen


def test_every_command_that_reads_files_is_tried() -> None:
    tried = {attempt.words[0] for attempt in TRIES}
    assert {name for name in papi.cli.app if not name.startswith("-")} - tried == {"datasets", "methods"}


def test_every_kind_of_file_is_spoilt() -> None:
    suffixes = {Path(name).suffix for attempt in TRIES for name in attempt.reads}
    assert set(FORMATS) <= suffixes


DOCUMENTS = {
    "a.toml": 'data = "photos"\noptim.lr = 0.1\n',
    "a.xml": '<?xml version="1.0"?><annotations><image name="a.png"><tag label="x"/></image></annotations>',
    "a.tsv": "file_name\tcandidates\na.png\tant|bee\n",
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_spoilt_within_its_format(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(DOCUMENTS[name])
    made = [FORMATS[file.suffix](file, Random(seed)) for seed in range(60)]
    assert made == [FORMATS[file.suffix](file, Random(seed)) for seed in range(60)]
    assert len({content for content, _ in made}) > 20


@pytest.mark.parametrize("seed", range(40))
def test_the_same_chance_does_the_same(seed: int) -> None:
    tree = {"a": [1, 2, {"b": None}], "c": "text", "d": 1.5}
    first, second = (change_tree(deepcopy(tree), Random(seed)) for _ in range(2))
    assert repr(first) == repr(second)
    content = bytes(range(256)) * 4
    assert change_bytes(content, Random(seed)) == change_bytes(content, Random(seed))
    assert change_bytes(content, Random(seed))[0] != content or seed
    array = np.arange(12.0).reshape(3, 4)
    first_array, second_array = change_array(array, Random(seed)), change_array(array, Random(seed))
    assert first_array[1] == second_array[1]
    assert first_array[0].dtype == second_array[0].dtype
    assert first_array[0].shape == second_array[0].shape
    assert array.tolist() == np.arange(12.0).reshape(3, 4).tolist(), "the array itself is left alone"


@pytest.mark.parametrize("seed", range(30))
def test_a_picture_is_spoilt_in_its_place(seed: int, tmp_path: Path) -> None:
    make_outside(tmp_path / "outside")
    (tmp_path / "case").mkdir()
    file = tmp_path / "case" / "a.png"
    Image.new("RGB", (8, 8)).save(file)
    before, around = look(tmp_path / "case"), look(tmp_path / "outside")
    said = damage(file, Random(seed), tmp_path / "outside", given=False)
    assert said.startswith("a.png: ")
    assert differences(before, look(tmp_path / "case")) == ["a.png"]
    assert look(tmp_path / "outside") == around


def test_a_person_is_never_given_a_link_to_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_outside(tmp_path / "outside")
    targets = set()
    for seed in range(60):
        file = tmp_path / f"{seed}.csv"
        file.touch()
        kind = put_in_place(file, Random(seed), tmp_path / "outside", secret=False)
        assert kind.partition(": a ")[2] in PLACES
        targets |= {os.readlink(file).rpartition("/")[2]} if file.is_symlink() else set()
    assert "public.txt" in targets
    assert "private.txt" not in targets


def test_a_trap_inside_a_trap(tmp_path: Path) -> None:
    make_outside(tmp_path / "outside")
    around = look(tmp_path / "outside")
    for seed in range(30):
        folder = tmp_path / str(seed) / "exported"
        put_in_place(folder, Random(seed), tmp_path / "outside")
        put_in_place(folder / "model.pt", Random(seed), tmp_path / "outside")
        assert folder.is_dir()
        assert not folder.is_symlink()
    assert not differences(around, look(tmp_path / "outside"))
