"""python -m benchmarks [--quick] [--only ITEM] [--out FILE] [--threads N] | --page docs/performance.md"""

import argparse
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console

from benchmarks import (
    candidates,
    checkpoints,
    embeddings,
    evaluation,
    feature_table,
    image_cache,
    processes,
    prototypes,
    state,
    step,
    views,
)
from benchmarks.machine import free_share
from benchmarks.measure import FREE, TOLERANCE, Line, better
from benchmarks.table import cells, fill_page, print_table, read_lines, to_json, to_markdown
from papi.training.allocator import keep_freed_memory

ITEMS = {
    "views": views,
    "prototypes": prototypes,
    "candidates": candidates,
    "state": state,
    "evaluation": evaluation,
    "step": step,
    "table": feature_table,
    "processes": processes,
    "cache": image_cache,
    "embeddings": embeddings,
    "checkpoints": checkpoints,
}
ATTEMPTS = 3
PARTS = {"weak and strong views", "prototype update, K=10,", "update of 256 rows"}  # shown as a share of a step


def with_shares(lines: list[Line]) -> list[Line]:
    """Add to each part its share of a resnet18 step of 256 images, if that step was measured."""
    steps = [line.ours for line in lines if line.item.startswith("whole step, resnet18, 32x32, B=256")]
    if not steps:
        return lines
    return [
        replace(line, share=line.ours / steps[0]) if any(line.item.startswith(part) for part in PARTS) else line
        for line in lines
    ]


def exit_code(lines: list[Line]) -> int:
    """1 if a target is missed by more than the tolerance on a machine that was not busy."""
    return int(any(line.failed() for line in lines))


def judged(measure: Callable[[bool], Iterator[Line]], quick: bool) -> Iterator[Line]:
    """The lines of an item. If a line misses its target, the whole item is measured again; the best result counts.

    If the machine was busy before and after a measurement, it is not repeated: it cannot be judged.
    """
    best: dict[str, Line] = {}
    for _ in range(ATTEMPTS):
        before = free_share()
        found = [*measure(quick)]
        after = free_share()
        for line in (replace(each, free=min(before, after)) for each in found):
            best[line.item] = better(best[line.item], line) if line.item in best else line
        if max(before, after) < FREE or not any(line.missed(TOLERANCE) for line in best.values()):
            break
    yield from best.values()


def processor() -> str:
    file = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in file.read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the short benchmarks: under a minute")
    parser.add_argument("--only", choices=ITEMS, action="append", help="measure only this item (repeatable)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/bench.json"), help="JSON file to write the results to")
    parser.add_argument("--page", type=Path, help="measure nothing: write the results of --out into this page")
    asked = parser.parse_args(arguments)
    if asked.page:
        page = asked.page.read_text(encoding="utf-8")
        asked.page.write_text(fill_page(page, to_markdown(*read_lines(asked.out))), encoding="utf-8")
        return 0
    keep_freed_memory()
    torch.set_num_threads(asked.threads)
    console, start = Console(), time.monotonic()
    if not console.is_terminal:
        console = Console(width=130)  # a log file has no width
    machine = {"processor": processor(), "threads": asked.threads, "torch": torch.__version__}
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    lines: list[Line] = []
    for name in asked.only or ITEMS:
        for line in judged(ITEMS[name].measure, asked.quick):
            lines = with_shares([*lines, line])
            asked.out.write_text(to_json(lines, machine), encoding="utf-8")  # kept if the run is interrupted
            console.print(f"{time.monotonic() - start:4.0f} s  {line.item}: {cells(line)[3]}", style="dim")
    print_table(lines, console)
    for line in lines:
        if line.failed():
            console.print(f"Target missed by more than {TOLERANCE:.0%}: {line.item}", style="red")
        elif line.unjudged():
            console.print(f"Not judged, because other processes used {1 - line.free:.0%} of the CPU: {line.item}")
    console.print(f"{time.monotonic() - start:.0f} s; results in {asked.out}")
    return exit_code(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
