"""python -m benchmarks [--quick] [--only ITEM] [--out FILE] [--threads N] | --page docs/performance.md"""

import argparse
import platform
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console

from benchmarks import candidates, checkpoints, embeddings, evaluation, image_cache, prototypes, state, step, views
from benchmarks.measure import TOLERANCE, Line
from benchmarks.table import cells, fill_page, print_table, read_lines, to_json, to_markdown
from papi.training.allocator import keep_freed_memory

ITEMS = {
    "views": views,
    "prototypes": prototypes,
    "candidates": candidates,
    "state": state,
    "evaluation": evaluation,
    "step": step,
    "cache": image_cache,
    "embeddings": embeddings,
    "checkpoints": checkpoints,
}
PARTS = {"weak + strong views", "prototypes, K=10,", "update of 256 rows"}  # of a step: the table says how large


def with_shares(lines: list[Line]) -> list[Line]:
    """Parts of a step with their share of a resnet18 step of 256 images, if that was measured."""
    steps = [line.ours for line in lines if line.item.startswith("whole step, resnet18, 32x32, B=256")]
    if not steps:
        return lines
    return [
        replace(line, share=line.ours / steps[0]) if any(line.item.startswith(part) for part in PARTS) else line
        for line in lines
    ]


def exit_code(lines: list[Line]) -> int:
    """1 if a target is missed by more than the tolerance."""
    return int(any(line.missed(TOLERANCE) for line in lines))


def processor() -> str:
    file = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in file.read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only what needs no long run: under a minute")
    parser.add_argument("--only", choices=ITEMS, action="append", help="one item, repeatable")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/bench.json"), help="where the figures go, as JSON")
    parser.add_argument("--page", type=Path, help="measure nothing: put the figures of --out into this page")
    asked = parser.parse_args(arguments)
    if asked.page:
        page = asked.page.read_text(encoding="utf-8")
        asked.page.write_text(fill_page(page, to_markdown(*read_lines(asked.out))), encoding="utf-8")
        return 0
    keep_freed_memory()
    torch.set_num_threads(asked.threads)
    console, start = Console(), time.monotonic()
    if not console.is_terminal:
        console = Console(width=130)  # a log has no width of its own
    machine = {"processor": processor(), "threads": asked.threads, "torch": torch.__version__}
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    lines: list[Line] = []
    for name in asked.only or ITEMS:
        for line in ITEMS[name].measure(asked.quick):
            lines = with_shares([*lines, line])
            asked.out.write_text(to_json(lines, machine), encoding="utf-8")  # whoever stops it keeps what was measured
            console.print(f"{time.monotonic() - start:4.0f} s  {line.item}: {cells(line)[3]}", style="dim")
    print_table(lines, console)
    missed = [line.item for line in lines if line.missed(TOLERANCE)]
    for item in missed:
        console.print(f"Target missed by more than {TOLERANCE:.0%}: {item}", style="red")
    console.print(f"{time.monotonic() - start:.0f} s; figures in {asked.out}")
    return exit_code(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
