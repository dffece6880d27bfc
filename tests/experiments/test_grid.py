"""Grids in real processes: killed in the middle and continued, on this machine and through a Dask cluster."""

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import lock_descriptor
from tiny import as_module, tiny_suite

from papi import train as run
from papi.errors import UserError
from papi.experiments import cells, rendering
from papi.experiments.grid import Cell, Ended, Grid, Processes, make_cells, train_cell
from papi.experiments.results import read_runs
from papi.experiments.suites import Entry, Suite


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
    table = rendering.comma_separated(suite, read_runs(tmp_path / "reference"))
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
    assert "Run the same command to continue" in said
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
    todo = make_cells([missing, fine], tmp_path / "runs", 1)
    ended = {each.cell.key: each for each in Grid(jobs=1).run(todo)}
    assert "missing.npz" in ended[cells.key(missing)].error
    assert ended[cells.key(fine)].error == ""
    assert not any(each.stopped for each in ended.values())


def test_a_run_twice_in_a_suite_is_one_cell(toy_npz: Path, tmp_path: Path) -> None:
    suite = tiny_suite(toy_npz)
    twice = Suite("twice", "", suite.tables * 2)
    todo = make_cells(twice.cells(), tmp_path, 1)
    assert len(todo) == 8 < len(list(twice.cells()))
    assert len({cell.folder for cell in todo}) == 8
    assert {cell.epochs for cell in todo} == {1}


def test_the_ceiling_is_one_run_for_all_tasks_on_the_same_images(toy_npz: Path, tmp_path: Path) -> None:
    table = tiny_suite(toy_npz).tables[0]
    ceiling = replace(table, entries=(Entry("Supervised", "supervised", ceiling=True),))
    assert len(make_cells(ceiling.cells(), tmp_path, 1)) == 2  # one a seed


def wait_until(happened: Callable[[], object], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def some_cells(toy_npz: Path, folder: Path, count: int = 1, epochs: int | None = None) -> list[Cell]:
    configs = list(tiny_suite(toy_npz).cells())[:count]
    return make_cells([replace(each, epochs=epochs or each.epochs) for each in configs], folder / "runs", 1)


def is_locked(cell: Cell) -> bool:
    with cell.lock.open("r+") as file:
        return not lock_descriptor(file.fileno(), blocking=False)


@contextmanager
def trained_by_another(*todo: Cell) -> Iterator[None]:
    """As long as this lasts, somebody else has the cells."""
    files = []
    for cell in todo:
        cell.lock.parent.mkdir(parents=True, exist_ok=True)
        files.append(cell.lock.open("w"))
        assert lock_descriptor(files[-1].fileno(), blocking=False)
    try:
        yield
    finally:
        for file in files:
            file.close()


def test_runs_of_a_killed_grid_are_waited_for(toy_npz: Path, tmp_path: Path) -> None:
    """The process that trains goes on and keeps the lock of its cell, so that nobody trains it a second time."""
    (cell,) = some_cells(toy_npz, tmp_path, epochs=100_000)
    code = "import pickle, sys; from papi.experiments.grid import train_cell; train_cell(pickle.load(sys.stdin.buffer))"
    grid = subprocess.Popen([sys.executable, "-c", code], env=environment(tmp_path), stdin=subprocess.PIPE)
    assert grid.stdin is not None
    grid.stdin.write(pickle.dumps(cell))
    grid.stdin.close()
    processes = Processes()
    try:
        wait_until(lambda: (cell.folder / "metrics.jsonl").exists())
        grid.kill()
        grid.wait()
        (orphan,) = children_of(tmp_path / "runs")
        assert is_locked(cell)
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(processes.train, cell)
            time.sleep(1)
            assert not second.done()
            assert children_of(tmp_path / "runs") == [orphan]
            os.kill(orphan, signal.SIGKILL)
            wait_until(lambda: set(children_of(tmp_path / "runs")) - {orphan})  # and now it is trained on
            processes.stop()
            assert second.result().stopped
    finally:
        processes.stop()
        for pid in children_of(tmp_path / "runs"):
            os.kill(pid, signal.SIGKILL)
    assert not is_locked(cell)


def test_a_run_that_is_told_to_stop_saves(toy_npz: Path, tmp_path: Path) -> None:
    (cell,) = some_cells(toy_npz, tmp_path, epochs=100_000)
    processes = Processes()
    with ThreadPoolExecutor(1) as pool:
        training = pool.submit(processes.train, cell)
        wait_until(lambda: (cell.folder / "metrics.jsonl").exists() or training.done())
        assert is_locked(cell)
        processes.stop()
        ended = training.result()
    assert ended.stopped, ended
    assert ended.cell == cell
    assert (cell.folder / "checkpoint.pt").exists()
    assert not (cell.folder / "summary.json").exists()
    assert not is_locked(cell)
    assert not children_of(tmp_path / "runs")


def test_who_waits_for_a_cell_can_be_stopped(toy_npz: Path, tmp_path: Path) -> None:
    (cell,) = some_cells(toy_npz, tmp_path)
    processes = Processes()
    with trained_by_another(cell), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(processes.train, cell)
        time.sleep(0.2)
        assert not waiting.done()
        processes.stop()
        assert waiting.result(timeout=30) == Ended(cell, stopped=True)
    assert not cell.folder.exists()


def test_after_a_stop_nothing_is_started(toy_npz: Path, tmp_path: Path) -> None:
    (cell,) = some_cells(toy_npz, tmp_path)
    processes = Processes()
    processes.stop()
    assert processes.train(cell) == Ended(cell, stopped=True)
    assert not cell.folder.exists()
    assert not is_locked(cell)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_signal_stops_the_grid_and_is_remembered(
    toy_npz: Path, tmp_path: Path, number: signal.Signals, jobs: int
) -> None:
    todo = some_cells(toy_npz, tmp_path, count=3)
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    grid = Grid(jobs=jobs)
    with trained_by_another(*todo):
        timer = threading.Timer(0.3, os.kill, (os.getpid(), number))
        timer.start()
        ended = list(grid.run(todo))
        timer.join()
    assert {each.cell.key for each in ended} == {cell.key for cell in todo}
    assert all(each.stopped and not each.error for each in ended)
    assert grid.stopped_by == number
    assert {each: signal.getsignal(each) for each in before} == before
    assert not any(cell.folder.exists() for cell in todo)


def test_grids_know_nothing_of_each_other(toy_npz: Path, tmp_path: Path) -> None:
    todo = some_cells(toy_npz, tmp_path)
    first = Grid(jobs=1)
    with trained_by_another(*todo):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
        assert [each.stopped for each in first.run(todo)] == [True]
    second = Grid(jobs=1)
    assert list(second.run(todo)) == [Ended(todo[0])]
    assert second.stopped_by is None
    assert (todo[0].folder / "summary.json").exists()


def test_a_grid_without_cells_gives_the_signals_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    grid = Grid()
    assert list(grid.run([])) == []
    assert grid.stopped_by is None
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_machine_of_a_cluster_gets_the_cell_alone(toy_npz: Path, tmp_path: Path) -> None:
    (cell,) = some_cells(toy_npz, tmp_path)
    sent = pickle.dumps((train_cell, cell))
    assert pickle.loads(sent) == (train_cell, cell)
    assert len(sent) < 2000


def test_a_cluster_needs_an_address() -> None:
    with pytest.raises(UserError, match="address of a scheduler: --address tcp://"):
        list(Grid(backend="dask").run([]))


@pytest.mark.slow
def test_a_cluster_that_does_not_answer() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(UserError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        list(Grid(backend="dask", address="tcp://127.0.0.1:9").run([]))


def test_a_cluster_whose_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("distributed", "ray"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=r"pip install 'papi-pll\[dask\]'"):
        list(Grid(backend="dask", address="tcp://127.0.0.1:9").run([]))
    with pytest.raises(UserError, match=r"pip install 'papi-pll\[ray\]'"):
        list(Grid(backend="ray").run([]))


@pytest.mark.slow
def test_a_signal_leaves_the_cluster_its_cells(toy_npz: Path, tmp_path: Path, dask_cluster: str) -> None:
    suite = as_module(tmp_path, toy_npz)
    cluster = ["--backend", "dask", "--address", dask_cluster]
    process = bench(tmp_path, suite, *cluster, "--device", "cpu", "--out", "runs", "--format", "csv")
    wait_until(lambda: children_of(tmp_path / "runs"))
    begun = len(children_of(tmp_path / "runs"))
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM, said
    assert "Run the same command to continue" in said
    wait_until(lambda: not children_of(tmp_path / "runs"))
    assert finished(tmp_path) >= begun


@pytest.mark.parametrize("name", ["the lock", "its folder"])
def test_a_lock_that_leads_elsewhere(toy_npz: Path, tmp_path: Path, name: str) -> None:
    (cell,) = some_cells(toy_npz, tmp_path / "runs")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / cell.folder.name).write_text("mine")
    if name == "the lock":
        cell.lock.parent.mkdir(parents=True)
        cell.lock.symlink_to(tmp_path / "elsewhere" / cell.folder.name)
    else:
        cell.lock.parent.parent.mkdir(parents=True)
        cell.lock.parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="is a link"):
        Processes().train(cell)
    assert (tmp_path / "elsewhere" / cell.folder.name).read_text() == "mine"
    assert not cell.folder.exists()
