"""A grid of eight runs that take a moment each: two methods, two flip rates, two seeds, one epoch."""

from pathlib import Path

from papi.experiments.suites import Entry, Suite, Table, Task


def tiny_suite(data: Path) -> Suite:
    tasks = tuple(Task(str(data), "toy", f"q = {rate:g}", rate, batch_size=8) for rate in (0.1, 0.3))
    entries = (Entry("PRODEN", "proden"), Entry("CC", "cc"))
    return Suite("tiny", "Two methods on a toy", (Table("equal epochs", entries, tasks, (0, 1), epochs=1),))


def as_module(folder: Path, data: Path) -> str:
    """A module with the suite in it, for `papi bench tiny_module:SUITE` with the folder on PYTHONPATH."""
    here = str(Path(__file__).parent)
    text = f"import sys\nfrom pathlib import Path\nsys.path.insert(0, {here!r})\nfrom tiny import tiny_suite\n"
    (folder / "tiny_module.py").write_text(f"{text}SUITE = tiny_suite(Path({str(data)!r}))\n")
    return "tiny_module:SUITE"
