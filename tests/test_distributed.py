"""Two processes against one: the same losses, the same state in both; and what is left when one of them dies."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import papi
import tiny_encoder
from papi.runs.folder import RunFolder
from process_pair import BATCH_NORM, EPOCHS, EXACT, ROUNDED, start_pair, title, train

PAIR = Path(__file__).with_name("process_pair.py")
STEPS = 5 * EPOCHS

# Two processes meet; then the second is killed, or does nothing for longer than the first is ready to wait.
WAITING = """
import os, signal, sys, time
from datetime import timedelta
import torch
from papi import distributed

try:
    with distributed.joined(torch.device("cpu"), timedelta(seconds=10)):
        distributed.any_of(True)
        if distributed.rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL) if sys.argv[1] == "killed" else time.sleep(600)
        distributed.gather_rows(torch.zeros(3))
except distributed.LostProcessError as error:
    print(error)
    sys.exit(3)
"""

pytestmark = pytest.mark.xdist_group("processes")  # one pair for all of these


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of two processes has seen of all cases."""
    folder = tmp_path_factory.mktemp("pair")
    processes = start_pair(PAIR, folder)
    said = [process.communicate(timeout=300)[0] for process in processes]
    assert said == ["", ""]
    assert [process.returncode for process in processes] == [0, 0]
    return [torch.load(folder / f"{rank}.pt") for rank in (0, 1)]


def case(values: tuple[str, dict[str, str], str]) -> str:
    return title(*values)


class TestOneAndTwo:
    """The batches are uneven, and the last of an epoch is too small for two."""

    @pytest.mark.parametrize("values", EXACT, ids=case)
    def test_equal_losses_rows_and_state(self, values: Any, pair: list[dict[str, Any]]) -> None:
        self.compare(train(*values), pair[0][title(*values)], 1e-9)

    @pytest.mark.parametrize("values", ROUNDED, ids=case)
    def test_equal_in_single_precision(self, values: Any, pair: list[dict[str, Any]]) -> None:
        self.compare(train(*values), pair[0][title(*values)], 1e-4)

    def compare(self, alone: dict[str, Any], together: dict[str, Any], tolerance: float) -> None:
        assert len(alone["losses"]) == STEPS
        assert together["losses"] == pytest.approx(alone["losses"], rel=0, abs=tolerance)
        for mine, other in zip(alone["rows"], together["rows"], strict=True):
            assert other == pytest.approx(mine, rel=0, abs=max(tolerance, 1e-7))  # some are logged in single precision
        torch.testing.assert_close(together["state"], alone["state"], rtol=0, atol=tolerance)

    @pytest.mark.parametrize("values", EXACT + ROUNDED + BATCH_NORM, ids=case)
    def test_both_hold_the_same_after_every_step(self, values: Any, pair: list[dict[str, Any]]) -> None:
        """Bit for bit: network, batch-norm, memory and optimizer."""
        first, second = (seen[title(*values)]["digests"] for seen in pair)
        assert first == second
        assert len(set(first)) == len(first) == STEPS


class Torchrun:
    """`torchrun --nproc-per-node N -m papi train`, a few hundred steps on the toy data with a checkpoint after each."""

    EPOCHS = 12

    def __init__(
        self, data: Path, folder: Path, processes: int = 2, restarts: int = 0, more: tuple[object, ...] = ()
    ) -> None:
        self.folder, self.processes, self.restarts = RunFolder(folder), processes, restarts
        self.options = ["train", "--data", data, "--out", folder, "--epochs", self.EPOCHS, "--batch-size", 20]
        self.options += ["--threads", 1, "--device", "cpu", "--checkpoint.every", 1, *more]

    def start(self) -> "subprocess.Popen[str]":
        launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", self.processes]
        return self._popen(*launcher, "--max-restarts", self.restarts, "-m", "papi")

    def start_alone(self) -> "subprocess.Popen[str]":
        return self._popen("papi")

    def _popen(self, *module: object) -> "subprocess.Popen[str]":
        words = [sys.executable, "-m", *map(str, module), *map(str, self.options)]
        places = os.pathsep.join((str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")))  # of the encoder
        return subprocess.Popen(
            words,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": places},
        )

    def kill_second(self, launcher: "subprocess.Popen[str]") -> None:
        """SIGKILL for the process of rank 1, once an epoch is on disk."""
        self.wait_for_rows(1)
        children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
        (second,) = [pid for pid in children if b"\0RANK=1\0" in Path(f"/proc/{pid}/environ").read_bytes()]
        os.kill(int(second), signal.SIGKILL)

    def wait_for_rows(self, count: int) -> None:
        end = time.monotonic() + 240
        while len(self.folder.read_rows()) < count:
            assert time.monotonic() < end, "it does not get on"
            time.sleep(0.02)

    def check_finished(self) -> None:
        """Complete, and no row lost or doubled."""
        assert [row.epoch for row in self.folder.read_rows()] == list(range(self.EPOCHS))
        summary = self.folder.read_summary()
        assert summary is not None
        assert summary.test_accuracy == self.folder.read_rows()[-1].test_accuracy


class TestTorchrun:
    @pytest.mark.slow
    @pytest.mark.parametrize("tune", ["head", "all"])
    def test_photos_with_a_pretrained_encoder(self, tune: str, toy_npz: Path, tmp_path: Path) -> None:
        """Frozen, its embeddings are made by both; tuned, both train all of it. One process alone does the same."""
        more = ("--network", tiny_encoder.NAME, "--tune", tune)
        together = Torchrun(toy_npz, tmp_path / "together", more=more)
        alone = Torchrun(toy_npz, tmp_path / "alone", more=more)
        said = together.start().communicate(timeout=240)[0]
        assert "2 x cpu" in said
        alone.start_alone().communicate(timeout=240)
        together.check_finished()
        alone.check_finished()
        ours, theirs = (papi.load(each.folder.path) for each in (together, alone))
        images = np.random.default_rng(0).integers(0, 256, (20, 30, 30, 3), np.uint8)
        np.testing.assert_allclose(ours.predict_proba(images), theirs.predict_proba(images), atol=1e-3)

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_stopped_and_continued(self, number: signal.Signals, toy_npz: Path, tmp_path: Path) -> None:
        """The signal goes to all processes, as from a terminal or a cluster, and `torchrun` passes it on once more."""
        runs = Torchrun(toy_npz, tmp_path / "run")
        launcher = runs.start()
        runs.wait_for_rows(1)
        os.killpg(launcher.pid, number)
        said = launcher.communicate(timeout=120)[0]
        assert launcher.returncode != 0
        assert said.count("Stopped in epoch") == 1
        assert "torchrun --nproc-per-node 2 -m papi train --data" in said
        again = runs.start()
        said = again.communicate(timeout=240)[0]
        assert again.returncode == 0, said
        assert "continuing in epoch" in said
        runs.check_finished()

    def test_one_of_two_killed_without_restart(self, toy_npz: Path, tmp_path: Path) -> None:
        """The other ends with a sentence; what is there is whole, and one process finishes what two began."""
        runs = Torchrun(toy_npz, tmp_path / "run")
        launcher = runs.start()
        runs.kill_second(launcher)
        said = launcher.communicate(timeout=240)[0]
        assert launcher.returncode != 0
        assert "papi: another process of this run has ended" in said
        assert runs.folder.read_summary() is None
        alone = runs.start_alone()
        said = alone.communicate(timeout=240)[0]
        assert alone.returncode == 0, said
        assert "continuing in epoch" in said
        runs.check_finished()

    def test_one_of_three_killed_and_restarted(self, toy_npz: Path, tmp_path: Path) -> None:
        """Ends bit-equal to a run of three processes that was left alone, in which the first alone talks.

        Of two numbers the sum does not depend on the order, of three it does.
        """
        undisturbed = Torchrun(toy_npz, tmp_path / "a", processes=3)
        runs = Torchrun(toy_npz, tmp_path / "b", processes=3, restarts=1)
        said = []
        for each in (undisturbed, runs):
            launcher = each.start()
            if each is runs:
                each.kill_second(launcher)
            said.append(launcher.communicate(timeout=240)[0])
            assert launcher.returncode == 0, said[-1]
        assert said[0].count("Test accuracy") == 1
        assert f"{runs.EPOCHS} epochs of 5 steps on 3 x cpu" in " ".join(said[0].split())
        assert "continuing in epoch" in said[1]
        for each in (undisturbed, runs):
            each.check_finished()
        assert undisturbed.folder.model_file.read_bytes() == runs.folder.model_file.read_bytes()


class TestTogether:
    def test_rows_and_their_gradients(self, pair: list[dict[str, Any]]) -> None:
        for rank, seen in enumerate(pair):
            got, rows = seen["gathered"], slice(3, 8) if rank else slice(0, 3)
            assert got["whole"].tolist() == [[1, 1]] * 3 + [[2, 2]] * 5
            assert got["own"] == [rows.start, rows.stop]
            # The first process has weighted every row once, the second twice.
            torch.testing.assert_close(got["gradient"], 3 * torch.arange(16).view(8, 2).double()[rows])
            assert got["flags"].tolist() == [True, False]
            assert got["one holds none"].tolist() == [0, 1]

    def test_numbers_and_decisions(self, pair: list[dict[str, Any]]) -> None:
        for seen in pair:
            got = seen["gathered"]
            assert got["mean"] == 2.5
            assert got["any"] == (True, False)
            assert got["total"] == {"a": 3, "b": 5}
            assert got["from first"] == {"said": [0]}
            assert got["error of first"] == "no folder"
            assert got["other data"].startswith("the processes of this run have read different data")

    def test_one_annotator(self, pair: list[dict[str, Any]]) -> None:
        """Both know what it says, of every image, when it is trained and when it is read again."""
        trained, *others = [logits for seen in pair for logits in seen["annotators"]]
        assert trained.shape == (46, 4)
        assert trained.unique(dim=0).shape == trained.shape
        assert all(torch.equal(logits, trained) for logits in others)

    @pytest.mark.parametrize("end", ["killed", "silent"])
    def test_a_lost_process_is_not_waited_for_for_ever(self, end: str) -> None:
        """Nobody but the other process sees it: there is no torchrun that would end them all."""
        first, second = start_pair("-c", WAITING, end)
        try:
            said = first.communicate(timeout=240)[0]
        finally:
            for process in (first, second):
                process.kill()
                process.communicate()
        assert first.returncode == 3
        assert said.startswith("another process of this run has ended or no longer responds.")

    def test_nobody_gets_a_single_row(self, pair: list[dict[str, Any]]) -> None:
        assert pair[1]["gathered"]["split"] == [(3, 4), (2, 2), (3, 0), (2, 0), (1, 0)]
