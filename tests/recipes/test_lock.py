"""requirements.lock: every version that is pinned has the hashes of the files it may come as."""

import hashlib
import re
from pathlib import Path

import pytest

from recipes import lock

ROOT = Path(__file__).parents[2]
PAGE = "".join(
    f'<a href="https://files.example/{k}/{name}#sha256={k:064x}" data-requires-python="&gt;=3.9">{name}</a>\n'
    for k, name in enumerate(
        [
            "thing-1.0-py3-none-any.whl",
            "thing-1.1-cp311-cp311-manylinux_2_28_x86_64.whl",
            "thing-1.1-cp311-cp311-macosx_11_0_arm64.whl",
            "thing-1.1-cp311-cp311-win_amd64.whl",
            "thing-1.1-cp38-cp38-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            "thing-1.1-cp310-abi3-manylinux_2_28_x86_64.whl",
            "thing-1.1.tar.gz",
            "thing-1.10-py3-none-any.whl",
            "thing-2.0.tar.gz",
        ]
    )
)


@pytest.mark.parametrize(("version", "files"), [("1.0", [0]), ("1.1", [1, 2, 4, 5]), ("1.10", [7]), ("3.0", [])])
def test_the_wheels_of_a_version(version: str, files: list[int]) -> None:
    assert lock.hashes(PAGE, version) == [f"{k:064x}" for k in files]


def test_source_counts_where_there_is_no_wheel() -> None:
    assert lock.hashes(PAGE, "2.0") == [f"{8:064x}"]


def test_pins_have_no_comments() -> None:
    assert lock.pins("# all\na==1\n\nB_c==2.0.post1  # why\n") == {"a": "1", "B_c": "2.0.post1"}


def test_a_wheel_of_this_machine_keeps_its_local_version(tmp_path: Path) -> None:
    wheel = tmp_path / "torch-2.0+cpu-cp311-cp311-linux_x86_64.whl"
    wheel.write_bytes(b"content")
    entries = lock.wheel_text([wheel]).partition("\n")[2]
    assert entries == f"torch==2.0+cpu --hash=sha256:{hashlib.sha256(b'content').hexdigest()}\n"


def test_torch_without_cuda_is_the_version_that_is_pinned() -> None:
    line = (ROOT / "requirements-cpu.lock").read_text().splitlines()[-1]
    pinned = lock.pins((ROOT / "constraints.txt").read_text())["torch"]
    assert re.fullmatch(rf"torch=={re.escape(pinned)}\+cpu --hash=sha256:[0-9a-f]{{64}}", line), "run `make lock`"


def test_the_form_that_pip_reads() -> None:
    text = lock.lock_text({"a": "1", "b": "2"}, {"a": ["x", "y"], "b": ["z"]})
    entries = text.partition("\n")[2]
    assert entries == "a==1 \\\n    --hash=sha256:x \\\n    --hash=sha256:y\nb==2 \\\n    --hash=sha256:z\n"


@pytest.mark.parametrize(("file", "part"), [("requirements.lock", 0), ("requirements-docs.lock", 1)])
def test_the_lock_has_what_is_pinned(file: str, part: int) -> None:
    locked = (ROOT / file).read_text()
    versions = dict(re.findall(r"^([\w.-]+)==(\S+) \\$", locked, re.MULTILINE))
    assert versions == lock.pins((ROOT / "constraints.txt").read_text().split(lock.DOCS)[part]), "run `make lock`"
    entries = re.split(r"^[\w.-]+==", locked, flags=re.MULTILINE)[1:]
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry) for entry in entries)
