"""Run folders that were edited, mixed up or made up: every command ends with a code it knows, and never with a crash.

Each case changes one thing in a whole run and gives the folder to the commands that read the file in question. The
exit code is 0, 1 (`papi doctor`) or 2; with 2 there is one sentence on standard error.
"""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from command import papi_exit_code
from papi.experiments.results import read_runs
from papi.runs.folder import RunFolder
from toy_data import write_toy_npz

Out = pytest.CaptureFixture[str]
PATIENCE = 60  # seconds for one command
READERS = ("doctor", "watch", "compare", "labels", "predict", "evaluate", "export", "report", "train")
OTHER_VALUES: list[object] = [
    None, "text", "", [], {}, [1, "x"], {"a": [1]}, True, -1, 0, 0.5, 1e300, float("nan"), 2**62, 10**30, ...,
]  # fmt: skip
"""What takes the place of a value; `...` removes it."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run in `run`, and beside it what commands need. Tests copy it."""
    place = tmp_path_factory.mktemp("whole")
    write_toy_npz(place / "toy.npz")
    np.save(place / "images.npy", np.zeros((3, 1, 8, 8), np.uint8))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setattr("sys.argv", ["papi", "train"])  # what the run takes down
        assert papi_exit_code(*TRAIN) == 0
    return place


TRAIN = (
    "train", "--data", "toy.npz", "--out", "run", "--epochs", "2", "--batch-size", "48", "--threads", "1",
    "--data.holdout", "0.1", "--select", "covering-rate",
)  # fmt: skip
COMMANDS: dict[str, tuple[str, ...]] = {
    "doctor": ("doctor", "run"),
    "watch": ("watch", "run"),
    "compare": ("compare", "run"),
    "labels": ("labels", "run", "--out", "labels.csv"),
    "predict": ("predict", "run", "images.npy", "--out", "predicted.csv"),
    "evaluate": ("evaluate", "run"),
    "export": ("export", "run", "--format", "safetensors", "--out", "exported.safetensors"),
    "report": ("report", "run", "--out", "report.html"),
    "train": TRAIN,
}


@pytest.fixture
def run(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run, to be edited, in the current folder."""
    place = tmp_path / "place"
    shutil.copytree(whole, place)
    monkeypatch.chdir(place)
    return place / "run"


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    def late(_: int, __: FrameType | None) -> None:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def codes(run: Path, capsys: Out, readers: tuple[str, ...] = READERS) -> dict[str, int]:
    """The exit code of each command on the run. A crash is raised."""
    found = {}
    for name in readers:
        capsys.readouterr()
        with at_most(PATIENCE):
            found[name] = papi_exit_code(*COMMANDS[name])
        said = capsys.readouterr().err.strip()
        assert found[name] in (0, 1, 2), name
        assert found[name] != 1 or name == "doctor", name
        if found[name] == 2:
            assert said.startswith("papi: "), said
            assert len(said.splitlines()) == 1, said
            assert len(said) < 1500, said
    with at_most(PATIENCE):
        read_runs(run.parent)
    return found


def fields(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path to everything in a value of JSON; of a list, to its first member."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*path, key)
        yield from fields(each, (*path, key))


def edited(value: object, path: tuple[str | int, ...], other: object) -> str:
    """The JSON of a value with something else at one place."""
    copy = json.loads(json.dumps(value))
    part = copy
    for key in path[:-1]:
        part = part[key]
    if other is ...:
        del part[path[-1]]
    else:
        part[path[-1]] = other
    return json.dumps(copy)


# What takes the place of a field goes round: over all fields, every value is tried often.
ROUNDS = range(4)


@pytest.mark.parametrize("turn", ROUNDS)
def test_fields_of_the_record(turn: int, run: Path, capsys: Out) -> None:
    file = run / "config.json"
    record = json.loads(file.read_text())
    (run / "checkpoint.previous.pt").unlink()  # the doctor would read it each time
    for place, path in enumerate(fields(record)):
        if place % len(ROUNDS) == turn:
            file.write_text(edited(record, path, OTHER_VALUES[(place // len(ROUNDS)) % len(OTHER_VALUES)]))
            codes(run, capsys, ("compare", "labels", "evaluate", "train", "doctor" if place % 3 else "watch"))
    codes(run, capsys, ("report",))


def test_fields_of_the_summary(run: Path, capsys: Out) -> None:
    file = run / "summary.json"
    summary = json.loads(file.read_text())
    for place, path in enumerate(fields(summary)):
        file.write_text(edited(summary, path, OTHER_VALUES[place % len(OTHER_VALUES)]))
        codes(run, capsys, ("watch", "compare", "train"))
    codes(run, capsys, ("doctor", "report"))


@pytest.mark.parametrize("line", [0, 1])
def test_fields_of_the_rows(line: int, run: Path, capsys: Out) -> None:
    file = run / "metrics.jsonl"
    lines = file.read_text().splitlines()
    row = json.loads(lines[line])
    for place, path in enumerate(fields(row)):
        lines[line] = edited(row, path, OTHER_VALUES[place % len(OTHER_VALUES)])
        file.write_text("\n".join(lines) + "\n")
        codes(run, capsys, ("watch", "compare"))
    codes(run, capsys, ("doctor", "report"))


@pytest.mark.parametrize("epoch", [-1, 10**9, 2**62, 10**30, 0.5, "one", None, ...])
def test_rows_of_any_epoch(epoch: object, run: Path, capsys: Out) -> None:
    row = json.loads((run / "metrics.jsonl").read_text().splitlines()[1])
    for finished in (True, False):
        (run / "metrics.jsonl").write_text(edited(row, ("epoch",), epoch) + "\n")
        if not finished:
            (run / "summary.json").unlink()
        assert codes(run, capsys, ("watch", "compare", "doctor"))["doctor"] == 1


@pytest.mark.parametrize("value", [1e308, -1e308, float("nan"), float("inf")])
def test_rows_of_any_size(value: float, run: Path, capsys: Out) -> None:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    large = [{name: number if name == "epoch" else value for name, number in row.items()} for row in rows]
    opposite = [large[0], {name: number if name == "epoch" else -value for name, number in large[1].items()}]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in opposite))
    found = codes(run, capsys, ("watch", "compare", "report"))
    assert set(found.values()) == {0}


def model_of(run: Path) -> tuple[dict[str, torch.Tensor], dict[str, object]]:
    with safe_open(run / "model.safetensors", "pt") as opened:  # type: ignore[no-untyped-call]
        card = json.loads(opened.metadata()["papi"])
        return {name: opened.get_tensor(name) for name in opened.keys()}, card  # noqa: SIM118


CARDS: dict[str, list[object]] = {
    "network": ["mlp", "nothing", "", "resnet18", "os:system", "papi.cli:main", ":", "..:x", None, 3],
    "class_names": [[], ["a"], ["a"] * 5, ["a", 1, 2, 3], "abcd", ["a", "b", "c", "\ud800"], ["a", "b", "c", "\udcff"]],
    "shape": [[0, 0, 0], [1, 0, 8], [1, 8], [8], [3, 8, 8], [1, 10**6, 10**6], [10**9], [1.5, 8, 8], "188", [-1, 8, 8]],
    "mean": [[], [0.5, 0.5], ["0.5"], [float("nan")], [1e300], [True], 0.5],
    "std": [[], [0.0], [0], [-1.0], [float("inf")], [1e-320], [0.1, 0.1], ["x"], None],
    "temperature": ["1", 0, 0.0, -1, float("nan"), float("inf"), 10**30, None, [1], True],
    "projects": [False, None, 1, "yes"],
    "more": [1],
}


@pytest.mark.parametrize("field", CARDS)
def test_a_forged_model_card(field: str, run: Path, capsys: Out) -> None:
    weights, card = model_of(run)
    for value in CARDS[field]:
        text = json.dumps(card | {field: value})
        save_file(weights, run / "model.safetensors", metadata={"papi": text})
        found = codes(run, capsys, ("predict", "doctor", "evaluate", "export"))
        outside = field == "network" and ":" in str(value)  # weights of code that nobody has named are only read
        assert found == {"predict": 2, "doctor": 0 if outside else 1, "evaluate": 2, "export": 2}, value
        assert not Path("predicted.csv").exists()
    codes(run, capsys, ("report",))


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 5_000, '{"a":' * 3_000, "9" * 6_000])
def test_no_model_card(text: str, run: Path, capsys: Out) -> None:
    weights, _ = model_of(run)
    save_file(weights, run / "model.safetensors", metadata={"papi": text})
    assert codes(run, capsys, ("predict", "doctor")) == {"predict": 2, "doctor": 1}


WEIGHTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "not a number": lambda tensor: tensor * float("nan"),
    "infinite": lambda tensor: tensor / 0,
    "of another shape": lambda tensor: tensor[None],
    "of no size": lambda tensor: tensor.flatten()[:0],
    "in eight bits, not a number": lambda tensor: (tensor * float("nan")).to(torch.float8_e4m3fn),
}


@pytest.mark.parametrize("how", WEIGHTS)
def test_forged_weights(how: str, run: Path, capsys: Out) -> None:
    weights, card = model_of(run)
    for name in ("classifier.weight", "classifier.bias"):
        forged = weights | {name: WEIGHTS[how](weights[name]).contiguous()}
        save_file(forged, run / "model.safetensors", metadata={"papi": json.dumps(card)})
        found = codes(run, capsys, ("predict", "doctor", "evaluate", "export"))
        assert found == {"predict": 2, "doctor": 1, "evaluate": 2, "export": 2}


ARRAYS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "shorter": lambda array: array[:-1],
    "flat": lambda array: array.reshape(-1)[:7],
    "a number": lambda array: np.array(1.0),
    "empty": lambda array: array[:0],
    "text": lambda array: array.astype(str),
    "negative": lambda array: np.full(array.shape, -5),
    "far outside": lambda array: np.full(array.shape, 2**62),
    "not a number": lambda array: np.full(array.shape, np.nan),
    "an axis more": lambda array: array[..., None],
}


@pytest.mark.parametrize("how", ARRAYS)
@pytest.mark.parametrize("name", ["arrays.npz", "candidates.npz"])
def test_arrays_of_another_kind(name: str, how: str, run: Path, capsys: Out) -> None:
    with np.load(run / name, allow_pickle=False) as opened:
        arrays = dict(opened)
    for each in arrays:
        np.savez(run / name, **arrays | {each: ARRAYS[how](arrays[each])})  # type: ignore[arg-type]
        found = codes(run, capsys, ("labels",))
        same = (each == "held_out" and how in ("shorter", "flat", "empty")) or (
            how == "not a number" and arrays[each].dtype.kind == "f"
        )
        assert found["labels"] == (0 if same else 2), each
        wrong = not same
    assert codes(run, capsys, ("doctor", "evaluate", "train"))["doctor"] == int(wrong)
    if how in ("flat", "far outside", "not a number"):
        codes(run, capsys, ("report",))


def test_a_file_of_another_run(run: Path, capsys: Out) -> None:
    """Whole, but with fewer classes or samples than the rest."""
    record, sets, arrays = RunFolder(run).begun(), RunFolder(run).read_sets(), RunFolder(run).read_arrays()
    np.savez(run / "candidates.npz", candidates=np.ones((len(sets.candidates), 3), bool))
    assert codes(run, capsys, ("labels", "doctor")) == {"labels": 2, "doctor": 1}
    np.savez(run / "candidates.npz", candidates=sets.candidates)
    np.savez(run / "arrays.npz", confidence=arrays.confidence[:50])
    assert codes(run, capsys, ("labels", "doctor")) == {"labels": 2, "doctor": 1}
    np.savez(run / "arrays.npz", confidence=arrays.confidence)
    text = (run / "config.json").read_text()
    (run / "config.json").write_text(text.replace(f'"{record.classes[-1]}"', '"x", "y"'))
    assert codes(run, capsys, ("labels", "doctor")) == {"labels": 2, "doctor": 1}


FILES = (
    "config.json", "summary.json", "metrics.jsonl", "arrays.npz", "candidates.npz", "model.safetensors",
    "checkpoint.pt", "checkpoint.previous.pt",
)  # fmt: skip


def make_pipe(file: Path) -> None:
    os.mkfifo(file)


def make_folder(file: Path) -> None:
    file.mkdir()


def make_link_to_itself(file: Path) -> None:
    file.symlink_to(file)


def make_link_to_a_device(file: Path) -> None:
    file.symlink_to("/dev/zero")


def make_link_out(file: Path) -> None:
    outside = file.parent.parent / "outside"
    shutil.copyfile(file.parent.parent / "copy", outside)
    file.symlink_to(outside)


def make_nested(file: Path) -> None:
    file.write_text("[" * 100_000 + "\n")


def make_sparse(file: Path) -> None:
    file.touch()
    os.truncate(file, 2**31)


KINDS = (make_pipe, make_folder, make_link_to_itself, make_link_to_a_device, make_link_out, make_nested, make_sparse)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__.removeprefix("make_"))
@pytest.mark.parametrize("name", FILES)
def test_something_else_in_the_place_of_a_file(name: str, kind: Callable[[Path], None], run: Path, capsys: Out) -> None:
    shutil.copyfile(run / name, run.parent / "copy")
    (run / name).unlink()
    kind(run / name)
    before = {file.name: file.read_bytes() for file in run.parent.iterdir() if file.is_file()}
    found = codes(run, capsys, tuple(reader for reader in READERS if reader != "report"))
    exists = (run / name).exists()  # a link to itself does not: then the file is missing
    if exists and not name.startswith("checkpoint"):
        assert found["doctor"] == 1
    if exists and name == "model.safetensors":
        assert found["predict"] == found["evaluate"] == found["export"] == 2
    if exists and name in ("arrays.npz", "candidates.npz", "config.json"):
        assert found["labels"] == 2
    assert before == {name: Path(name).read_bytes() for name in before}, "nothing outside is touched"


@pytest.mark.parametrize("kind", [make_pipe, make_sparse, make_link_to_a_device])
def test_an_unfinished_run_goes_on_without_its_checkpoint(kind: Callable[[Path], None], run: Path, capsys: Out) -> None:
    model = (run / "model.safetensors").read_bytes()
    for name in ("summary.json", "model.safetensors", "arrays.npz", "checkpoint.pt"):
        (run / name).unlink()
    kind(run / "checkpoint.pt")
    assert codes(run, capsys, ("doctor", "train")) == {"doctor": 1, "train": 0}
    assert (run / "model.safetensors").read_bytes() == model


def test_a_pipe_that_a_person_names(run: Path, capsys: Out) -> None:
    os.mkfifo("pipe.safetensors")
    for command in (("predict", "pipe.safetensors", "images.npy"), ("export", "pipe.safetensors")):
        with at_most(PATIENCE):
            assert papi_exit_code(*command) == 2
        assert "a pipe" in capsys.readouterr().err


def test_a_link_that_a_person_names(run: Path, capsys: Out) -> None:
    Path("link.safetensors").symlink_to(run / "model.safetensors")
    Path("latest").symlink_to(run)
    assert papi_exit_code("predict", "link.safetensors", "images.npy") == 0
    assert papi_exit_code("predict", "latest", "images.npy") == 0


class TestAnotherVersion:
    def test_is_named(self, run: Path, capsys: Out) -> None:
        record = json.loads((run / "config.json").read_text())
        record["config"]["warp"] = 9
        record["versions"]["papi-pll"] = "77.1"
        (run / "config.json").write_text(json.dumps(record))
        found = codes(run, capsys, ("evaluate", "compare", "doctor"))
        assert found == {"evaluate": 2, "compare": 2, "doctor": 1}
        papi_exit_code("evaluate", "run")
        said = capsys.readouterr().err
        assert "PaPi 77.1" in said
        assert "'warp'" in said
        assert papi_exit_code("labels", "run") == 0, "labels need no settings"

    def test_in_a_group_of_settings(self, run: Path, capsys: Out) -> None:
        record = json.loads((run / "config.json").read_text())
        record["config"]["optim"]["warp"] = 9
        (run / "config.json").write_text(json.dumps(record))
        assert papi_exit_code("evaluate", "run") == 2
        assert "'warp'" in capsys.readouterr().err


class TestASummaryAlone:
    """A file that says that a run has finished does not make it one."""

    @pytest.mark.parametrize("kept", [(), ("config.json",), ("config.json", "arrays.npz")])
    def test_is_no_finished_run(self, kept: tuple[str, ...], run: Path, capsys: Out) -> None:
        for file in list(run.iterdir()):
            if file.name not in (*kept, "summary.json"):
                file.unlink()
        before = sorted(file.name for file in run.iterdir())
        assert papi_exit_code(*TRAIN) == 2
        out, said = capsys.readouterr()
        assert "already complete" not in out
        assert "model.safetensors" in said
        assert sorted(file.name for file in run.iterdir()) == before

    def test_the_advice_helps(self, run: Path, capsys: Out) -> None:
        model = (run / "model.safetensors").read_bytes()
        (run / "model.safetensors").unlink()
        assert papi_exit_code(*TRAIN) == 2
        (run / "summary.json").unlink()
        assert papi_exit_code(*TRAIN) == 0
        assert (run / "model.safetensors").read_bytes() == model
