"""Grids in real processes: killed in the middle and continued, on this machine and through a Dask cluster."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import as_module, tiny_suite

from papi import train as run
from papi.experiments import cells, grid, rendering
from papi.experiments.rows import collect
from papi.experiments.suites import Entry, Suite
from papi.setup.settings import complete


def environment(folder: Path) -> dict[str, str]:
    paths = [str(folder), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}


def bench(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "papi", "bench", *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finished(folder: Path) -> int:
    return len(list((folder / "runs").glob("*/summary.json")))


def wait_until_some_are_done(process: subprocess.Popen[str], folder: Path) -> None:
    deadline = time.monotonic() + 300
    while not finished(folder):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def children_of(folder: Path) -> list[int]:
    """Processes that train in this folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"train" in words and any(str(folder).encode() in word for word in words):
            found.append(int(entry.name))
    return found


@pytest.fixture
def uninterrupted(toy_npz: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The table of the same grid, trained one run after another in this process."""
    suite = tiny_suite(toy_npz)
    monkeypatch.setattr("sys.argv", ["papi", "train"])
    for config in suite.cells():
        for _ in run.train(replace(config, device="cpu"), tmp_path / "reference" / cells.folder_name(config)):
            pass
    table = rendering.comma_separated(suite, collect(tmp_path / "none", {tmp_path / "reference": None}))
    assert table.count(",2,2,") == 4  # every mean has both its seeds
    assert len(set(table.splitlines())) == 5  # and differs from the others
    return table


def test_a_killed_grid_continues_to_the_same_table(toy_npz: Path, tmp_path: Path, uninterrupted: str) -> None:
    suite = as_module(tmp_path, toy_npz)
    arguments = [suite, "--jobs", 2, "--threads", 1, "--device", "cpu", "--out", "runs", "--format", "csv"]
    first = bench(tmp_path, *arguments)
    wait_until_some_are_done(first, tmp_path)
    first.send_signal(signal.SIGTERM)
    said, _ = first.communicate(timeout=120)
    assert first.returncode == 128 + signal.SIGTERM
    assert "The same command continues" in said
    assert 0 < finished(tmp_path) < 8
    assert not children_of(tmp_path / "runs")

    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "runs").glob("*/summary.json")}
    second = bench(tmp_path, *arguments)
    said, errors = second.communicate(timeout=600)
    assert second.returncode == 0, errors
    assert finished(tmp_path) == 8
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert said[said.index("table,") :] == uninterrupted


@pytest.fixture
def dask_cluster(tmp_path: Path) -> Iterator[str]:
    """The address of a scheduler with two worker processes."""
    pytest.importorskip("distributed")
    file = tmp_path / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment(tmp_path), "cwd": tmp_path}
    dask = [sys.executable, "-m", "dask"]
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    processes = [subprocess.Popen([*dask, "scheduler", "--port", "0", "--host", "127.0.0.1", *common], **quiet)]  # type: ignore[call-overload]
    try:
        deadline = time.monotonic() + 120
        while not file.exists() or not file.read_text().endswith("}"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        worker = [*dask, "worker", "--nthreads", "1", "--no-nanny", *common]
        processes += [subprocess.Popen(worker, **quiet) for _ in range(2)]  # type: ignore[call-overload]
        yield json.loads(file.read_text())["address"]
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_the_same_through_a_dask_cluster(toy_npz: Path, tmp_path: Path, uninterrupted: str, dask_cluster: str) -> None:
    suite = as_module(tmp_path, toy_npz)
    cluster = ["--backend", "dask", "--address", dask_cluster]
    arguments = [suite, *cluster, "--device", "cpu", "--out", "runs", "--format", "csv"]
    first = bench(tmp_path, *arguments)
    wait_until_some_are_done(first, tmp_path)
    first.kill()
    first.communicate(timeout=120)
    assert finished(tmp_path) < 8

    second = bench(tmp_path, *arguments)
    said, errors = second.communicate(timeout=600)
    assert second.returncode == 0, errors
    assert finished(tmp_path) == 8
    assert said[said.index("table,") :] == uninterrupted


def test_a_failed_cell_is_told_and_costs_nothing_else(toy_npz: Path, tmp_path: Path) -> None:
    suite = tiny_suite(toy_npz)
    table = suite.tables[0]
    broken = replace(table, entries=(table.entries[0],), tasks=table.tasks[:1], seeds=(0,))
    fine, missing = next(broken.cells()), replace(next(broken.cells()), data=str(tmp_path / "missing.npz"))
    todo = grid.make_cells([missing, fine], tmp_path / "runs", 1)
    ended = {each.cell.key: each for each in grid.run(todo, jobs=1, backend="local", address=None)}
    assert "missing.npz" in ended[cells.key(missing)].error
    assert ended[cells.key(fine)].error == ""
    assert not any(each.stopped for each in ended.values())


def test_a_run_twice_in_a_suite_is_one_cell(toy_npz: Path, tmp_path: Path) -> None:
    suite = tiny_suite(toy_npz)
    twice = Suite("twice", "", suite.tables * 2)
    todo = grid.make_cells(twice.cells(), tmp_path, 1)
    assert len(todo) == 8 < len(list(twice.cells()))
    assert len({cell.folder for cell in todo}) == 8
    assert all(complete(config).epochs == 1 for config in twice.cells())


def test_the_ceiling_is_one_run_for_all_tasks_on_the_same_images(toy_npz: Path, tmp_path: Path) -> None:
    table = tiny_suite(toy_npz).tables[0]
    ceiling = replace(table, entries=(Entry("Supervised", "supervised", ceiling=True),))
    assert len(grid.make_cells(ceiling.cells(), tmp_path, 1)) == 2  # one a seed
