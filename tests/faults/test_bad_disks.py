"""Disks that are full, read-only or gone: one sentence, exit code 2, and what was saved before is whole."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from preloaded import Child, Preloaded
from tiny_runs import damage, result, train, wait_for, write_data

FOR_EVER = 100_000  # epochs


@pytest.fixture(scope="module")
def twin(processes: Preloaded, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was left alone, with its data beside it."""
    place = tmp_path_factory.mktemp("twin")
    child = processes.run(*train(write_data(place / "data.npz"), place / "twin"), output=place / "said")
    assert child.code == 0, child.said
    return place / "twin"


def assert_one_sentence(child: Child, *parts: str) -> None:
    """The last thing that is said, to the error output, and no traceback before it."""
    assert child.wait() == 2, child.said
    assert "Traceback" not in child.said
    last = child.said.splitlines()[-1]
    assert last.startswith("papi: ")
    for part in parts:
        assert part in last


FULL = {
    # How often the file had been written when the disk became full, and how many bytes still found room.
    "candidates.npz": (1, 100),
    "config.json": (1, 1000),
    "checkpoint.pt": (3, 200_000),
    "metrics.jsonl": (3, 900),
    "model.safetensors": (1, 100_000),
    "arrays.npz": (1, 3000),
    "summary.json": (1, 10),
}


@pytest.mark.parametrize("name", FULL)
def test_a_full_disk(processes: Preloaded, twin: Path, tmp_path: Path, name: str) -> None:
    folder, command = tmp_path / "run", train(twin.with_name("data.npz"), tmp_path / "run")
    time, size = FULL[name]
    limit = {"file": name, "time": time, "bytes": size}
    child = processes.run(*command, output=tmp_path / "said", limit=limit)
    assert_one_sentence(child, f"{name} cannot be written (File too large)", "the last checkpoint is intact")
    assert damage(folder) == []
    assert list(folder.glob(".*.writing")) == [], "what is half-written takes the room that is needed"
    again = processes.run(*command, output=tmp_path / "said")
    assert again.code == 0, again.said
    assert result(folder) == result(twin)


def test_a_full_disk_of_its_own(processes: Preloaded, twin: Path, tmp_path: Path) -> None:
    """A small file system in memory, which takes one checkpoint and not two."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "papi-test", disk], check=False)
    if mounted.returncode != 0:
        pytest.skip("only an administrator may mount a disk; the tests with a limit on files do without")
    try:
        command = train(twin.with_name("data.npz"), disk / "run")
        child = processes.run(*command, output=tmp_path / "said")
        assert_one_sentence(child, "checkpoint.pt cannot be written (No space left on device)")
        assert damage(disk / "run") == []
        shutil.copytree(disk / "run", tmp_path / "run")  # to where there is room
    finally:
        subprocess.run(["umount", disk], check=True)
    child = processes.run(*train(twin.with_name("data.npz"), tmp_path / "run"), output=tmp_path / "said")
    assert child.code == 0, child.said
    assert "continuing in epoch 1 after step 1" in child.said
    assert result(tmp_path / "run") == result(twin)


def test_a_full_cache_of_annotators(processes: Preloaded, twin: Path, tmp_path: Path, cache: Path) -> None:
    command = [*train(twin.with_name("data.npz"), tmp_path / "run", epochs=1), "--candidates.kind"]
    command += ["instance-dependent", "--candidates.annotator-epochs", 1]
    child = processes.run(*command, output=tmp_path / "said", file_size=50_000)
    assert_one_sentence(child, f"the cache {cache}", "PAPI_CACHE")
    assert not (tmp_path / "run").exists()
    assert [file for file in cache.rglob("*") if file.is_file()] == []
    assert processes.run(*command, output=tmp_path / "said").code == 0


def test_a_full_cache_of_images(processes: Preloaded, tmp_path: Path, cache: Path) -> None:
    """So many images that they are kept on disk."""
    folder = tmp_path / "images"
    for k in range(1000):
        place = folder / ("ant" if k % 2 else "bee")
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((4, 4), k % 256, np.uint8)).save(place / f"{k}.png")
    child = processes.run(*train(folder, tmp_path / "run", epochs=1), output=tmp_path / "said", file_size=10_000)
    assert_one_sentence(child, f"the cache {cache / 'images'}", "File too large")
    assert not (tmp_path / "run").exists()
    assert list((cache / "images").iterdir()) == []


def test_made_read_only_meanwhile(processes: Preloaded, twin: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = train(twin.with_name("data.npz"), folder, epochs=FOR_EVER)
    child = processes.start(*command, output=tmp_path / "said", no_rights=True)
    wait_for(folder / "checkpoint.previous.pt", child)
    folder.chmod(0o555)
    try:
        assert_one_sentence(child, str(folder), "cannot be written (Permission denied)")
        again = processes.run(*command, output=tmp_path / "said", no_rights=True)
        assert_one_sentence(again, str(folder), "cannot be written (Permission denied)")
    finally:
        folder.chmod(0o755)
    assert damage(folder) == []


def test_read_only_from_the_beginning(processes: Preloaded, twin: Path, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir(mode=0o555)
    command = train(twin.with_name("data.npz"), tmp_path / "runs" / "mine")
    child = processes.run(*command, output=tmp_path / "said", no_rights=True)
    assert_one_sentence(child, "cannot be written (Permission denied)")


def test_a_finished_run_on_a_read_only_disk(processes: Preloaded, twin: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(twin, folder)
    folder.chmod(0o555)
    child = processes.run(*train(twin.with_name("data.npz"), folder), output=tmp_path / "said", no_rights=True)
    folder.chmod(0o755)
    assert child.code == 0, child.said
    assert "already complete" in child.said


def test_deleted_meanwhile(processes: Preloaded, twin: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    child = processes.start(*train(twin.with_name("data.npz"), folder, epochs=FOR_EVER), output=tmp_path / "said")
    wait_for(folder / "checkpoint.pt", child)
    os.rename(folder, tmp_path / "gone")  # at once, as `rm` is not
    assert_one_sentence(child, f"{folder} was deleted or taken over by another process")
    assert not folder.exists()


def test_deleted_and_begun_again_by_another(processes: Preloaded, twin: Path, tmp_path: Path) -> None:
    """The first process must not write into the second one's run."""
    folder = tmp_path / "run"
    data = twin.with_name("data.npz")
    first = processes.start(*train(data, folder, epochs=FOR_EVER), output=tmp_path / "first")
    wait_for(folder / "checkpoint.pt", first)
    os.rename(folder, tmp_path / "gone")
    second = processes.run(*train(data, folder), output=tmp_path / "second")
    assert_one_sentence(first, "was deleted or taken over by another process")
    assert second.code == 0, second.said
    assert result(folder) == result(twin)


@pytest.mark.parametrize("kind", ["torchscript", "pt2", "onnx", "safetensors"])
def test_no_room_for_an_exported_model(processes: Preloaded, twin: Path, tmp_path: Path, kind: str) -> None:
    """PyTorch's own writers would end the process, with no word of ours and half a file."""
    run = tmp_path / "run"
    run.mkdir()
    shutil.copy(twin / "model.safetensors", run)
    child = processes.run("export", run, "--format", kind, output=tmp_path / "said", file_size=20_000)
    assert_one_sentence(child, f"{run / 'exported'}", "cannot be written (File too large)")
    assert os.listdir(run) == ["model.safetensors"]
    (tmp_path / "mine.pt2").write_text("the file of before")
    command = ("export", run, "--format", "pt2", "--out", tmp_path / "mine.pt2")
    if kind == "pt2":
        assert_one_sentence(processes.run(*command, output=tmp_path / "said", file_size=20_000), "cannot be written")
        assert (tmp_path / "mine.pt2").read_text() == "the file of before"
        assert processes.run(*command, output=tmp_path / "said").code == 0
        assert (tmp_path / "mine.pt2").stat().st_size > 20_000


@pytest.mark.parametrize("command", ["labels", "report"])
def test_no_room_for_a_table_or_a_page(processes: Preloaded, twin: Path, tmp_path: Path, command: str) -> None:
    folder = tmp_path / "run"
    shutil.copytree(twin, folder)
    before = sorted(os.listdir(folder))
    child = processes.run(command, folder, output=tmp_path / "said", file_size=500)
    assert_one_sentence(child, "cannot be written (File too large)")
    assert sorted(os.listdir(folder)) == before
