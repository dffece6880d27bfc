"""The benchmark's own logic: what counts as missed, the table and files it writes, its exit code; on tiny inputs."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from benchmarks import __main__ as command
from benchmarks import evaluation, prototypes, state, step, table
from benchmarks.machine import convolutions_alone
from benchmarks.measure import Apart, Line, fastest_apart, in_turns, speedup
from benchmarks.training import PlainTraining, Task, Training

TINY = Task("small", 1, 16, 8, None)
MET = speedup("quick thing : slow thing", (3.0, 1.0), 2.5)
CLOSE = speedup("nearly : there", (2.1, 1.0), 2.5)
MISSED = speedup("far : off", (1.9, 1.0), 2.5)
SHARE = Line("all but the encoder", 1.0, 0.11, 0.11, 0.1, at_most=True, share=0.11)


@pytest.mark.parametrize(
    ("line", "missed", "failed"),
    [(MET, False, False), (CLOSE, True, False), (MISSED, True, True), (SHARE, True, False)],
)
def test_a_target_is_missed(line: Line, missed: bool, failed: bool) -> None:
    assert (line.missed(), line.missed(0.2)) == (missed, failed)


def test_without_target_nothing_is_missed() -> None:
    assert not speedup("a : b", (1.0, 9.0), None).missed()


def test_the_fastest_call_counts_and_calls_take_turns() -> None:
    calls: list[str] = []
    seconds = in_turns([lambda: calls.append("a"), lambda: calls.append("b")], 3)
    assert calls == ["a", "b"] * 3
    assert all(0 <= each < 1 for each in seconds)


def measured(monkeypatch: pytest.MonkeyPatch, out: Path, *lines: Line) -> int:
    """The command with an item that gives these lines."""
    monkeypatch.setattr(command, "ITEMS", {"thing": SimpleNamespace(measure=lambda quick: iter(lines))})
    threads = torch.get_num_threads()
    try:
        return command.main(["--quick", "--threads", "1", "--out", str(out)])
    finally:
        torch.set_num_threads(threads)


def test_exit_code_table_and_json(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "bench.json"
    assert measured(monkeypatch, out, MET, CLOSE, SHARE) == 0
    said = capsys.readouterr().out
    for shown in ("quick thing", "3.00 s", "1.00 s", "≥ 2.5", "11.0%", "≤ 10%", "share of a step"):
        assert shown in said
    assert measured(monkeypatch, out, MET, MISSED) == 1
    assert "missed by more than 20%: far : off" in capsys.readouterr().out
    rows = json.loads(out.read_text())["lines"]
    assert [(row["ratio"], row["missed"], row["failed"]) for row in rows] == [(3.0, False, False), (1.9, True, True)]


def test_parts_get_their_share_of_the_large_step() -> None:
    large = speedup("whole step, resnet18, 32x32, B=256 : plain", (30.0, 20.0), 1.35)
    part = speedup("weak + strong views, 32x32x3, B=256 : Pillow", (2.0, 0.1), 15)
    assert [line.share for line in command.with_shares([part, large])] == [0.1 / 20, None]
    assert command.with_shares([part]) == [part]


def test_the_page_is_filled_between_its_marks(tmp_path: Path) -> None:
    figures, page = tmp_path / "bench.json", tmp_path / "page.md"
    figures.write_text(table.to_json([MET, SHARE], {"processor": "a machine", "threads": 2}))
    page.write_text(f"# Before\n{table.BEGIN}\nold\n{table.END}\nAfter\n")
    for _ in range(2):
        assert command.main(["--page", str(page), "--out", str(figures)]) == 0
    text = page.read_text()
    assert text.startswith("# Before\n")
    assert text.endswith(f"{table.END}\nAfter\n")
    assert "old" not in text
    assert "Measured with processor a machine, threads 2." in text
    assert text.count("| quick thing : slow thing | 3.00 s | 1.00 s | 3 | ≥ 2.5 | – |") == 1


def test_the_plain_step_does_what_ours_does() -> None:
    """From one start, with everything that makes ours fast and without: equal up to rounding."""
    for task in (TINY, Task("resnet18", 3, 16, 6, "cifar10")):
        plain, ours = PlainTraining(task), Training(task)
        torch.testing.assert_close(ours.step(), plain.step(), rtol=1e-4, atol=1e-5)
        for mine, theirs in zip(ours.state(), plain.state(), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)


def test_work_in_other_processes() -> None:
    with Apart(Training, TINY, ours=True) as first, Apart(Training, TINY, ours=False) as second:
        assert first.call("step")[1] == second.call("step")[1]  # memory settings change no bit
        assert all(seconds > 0 for seconds in fastest_apart([first, second], "step", times=1, calls=2))
    assert not first.process.is_alive()


def test_shares_of_a_step() -> None:
    line = step.outside_encoder(TINY, Training(TINY), 2, 0.12)
    assert line.reference is not None
    assert 0 < line.ours < line.reference


def test_the_machines_limit() -> None:
    training = Training(TINY)
    convolutions_alone(training.method.network.encoder, training.normalise(training.images[:8]))()
    rate, alone = step.limits(TINY, training, 1, 0.8)
    assert 0 < rate.ratio < 1.5
    assert alone.ratio > 0


def test_items_assert_equal_results() -> None:
    assert [line.target for line in prototypes.measure(True)] == [20, 10]
    task = evaluation.Task("small", 1, 16, 70)
    for mine, theirs in zip(evaluation.Ours(task).run(), evaluation.Plain(task).run(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)
    memory, time = state.packed_against_dense(2_000, 500, 1_000, 1)
    assert memory.ratio < 1 / 20
    assert time.ours > 0
    assert state.growth(1_000, 10, 1).ours > 0
