"""`papi datasets`: the list, the details and the download."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import published_files as published
from command import papi_exit_code
from papi.data.known.published import Remote
from papi.data.known.sources import SOURCES

Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    def run(*arguments: object) -> tuple[int, str, str]:
        code = papi_exit_code("datasets", *arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_the_list_says_what_is_here(tmp_path: Path, say: Say) -> None:
    published.write_cifar10(tmp_path / "cifar-10-batches-py")
    code, out, _ = say("--data-dir", str(tmp_path))
    assert code == 0
    here = {line.split()[0]: line.split()[-1] for line in out.splitlines()[1:] if not line.startswith("`")}
    assert set(here) == set(SOURCES)
    assert here["cifar10"] == here["fashion-mini"] == here["digits"] == "yes"
    assert here["cifar100"] == here["svhn"] == here["lost"] == here["mini-imagenet"] == "no"
    assert "`papi datasets get NAME` downloads" in out
    assert max(len(line) for line in out.splitlines()[: len(SOURCES)]) <= 80


@pytest.mark.parametrize("name", SOURCES)
def test_all_about_one(name: str, tmp_path: Path, say: Say) -> None:
    code, out, _ = say(name, "--data-dir", str(tmp_path))
    assert code == 0
    assert SOURCES[name].licence in out
    assert SOURCES[name].published in out
    for remote in SOURCES[name].remotes:
        assert remote.md5 in out


def test_get(tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib
    import tarfile

    published.write_cifar10(tmp_path / "there" / "cifar-10-batches-py")
    packed = tmp_path / "cifar-10-python.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(tmp_path / "there" / "cifar-10-batches-py", "cifar-10-batches-py")
    md5 = hashlib.md5(packed.read_bytes()).hexdigest()
    remote = Remote(packed.as_uri(), packed.name, md5, "cifar-10-batches-py")
    monkeypatch.setitem(SOURCES, "cifar10", replace(SOURCES["cifar10"], remotes=(remote,)))
    code, out, _ = say("get", "cifar10", "--data-dir", str(tmp_path))
    assert code == 0
    assert f"cifar10 is ready: {tmp_path / 'cifar-10-batches-py'}" in out
    code, out, _ = say("get", "cifar10", "--data-dir", str(tmp_path))
    assert f"already here: {tmp_path / 'cifar-10-batches-py'}" in out


def test_what_cannot_be_got(tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = say("get", "lost", "--data-dir", str(tmp_path))
    assert code == 2
    assert f"lost cannot be downloaded: put lost.mat (unpacked) into {tmp_path}" in err
    code, _, err = say("get", "cifar11")
    assert code == 2
    assert "did you mean 'cifar10'" in err
    remote = Remote("http://127.0.0.1:9/train_32x32.mat", "train_32x32.mat", "0" * 32)
    monkeypatch.setitem(SOURCES, "svhn", replace(SOURCES["svhn"], remotes=(remote,)))
    code, _, err = say("get", "svhn", "--data-dir", str(tmp_path / "data"))
    assert code == 2
    assert f"save it as {tmp_path / 'data' / 'train_32x32.mat'}" in err
