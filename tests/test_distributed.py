"""Two processes against one: the same losses, the same state in both; and what is left when one of them dies."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from process_pair import BATCH_NORM, EPOCHS, EXACT, ROUNDED, start_pair, title, train

from papi.runfolder import RunFolder

PAIR = Path(__file__).with_name("process_pair.py")
STEPS = 5 * EPOCHS

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
            assert other == pytest.approx(mine, rel=0, abs=tolerance)
        torch.testing.assert_close(together["state"], alone["state"], rtol=0, atol=tolerance)

    @pytest.mark.parametrize("values", EXACT + ROUNDED + BATCH_NORM, ids=case)
    def test_both_hold_the_same_after_every_step(self, values: Any, pair: list[dict[str, Any]]) -> None:
        """Bit for bit: network, batch-norm, memory and optimizer."""
        first, second = (seen[title(*values)]["digests"] for seen in pair)
        assert first == second
        assert len(set(first)) == len(first) == STEPS


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

    def test_nobody_gets_a_single_row(self, pair: list[dict[str, Any]]) -> None:
        assert pair[1]["gathered"]["split"] == [(3, 4), (2, 2), (3, 0), (2, 0), (1, 0)]
