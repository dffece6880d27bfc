"""`papi doctor` on whole, damaged and unfinished runs: what it says, its exit code, and that it changes nothing."""

import json
import re
import shlex
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from command import papi_exit_code
from papi import train as run
from papi.config import RunConfig
from papi.data import candidates as generators
from papi.errors import UserError
from papi.runs import checkpoint
from papi.runs.folder import RunFolder
from papi.runs.identity import identity_hash
from toy_data import make_toy_dataset, write_toy_npz

CONFIG = RunConfig(data="toy", epochs=2, batch_size=48, device="cpu", threads=1, network="small", method="proden")


def train(folder: Path) -> None:
    data = make_toy_dataset()
    assert data.labels is not None
    mask = generators.uniform(data.labels, len(data.class_names), 0.3, seed=0)
    list(run.fit(data, mask, run.settings_for(CONFIG, data), RunFolder(folder)))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "run"
    train(folder)
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """A finished run to be damaged."""
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()}


def examine(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and output; the folder is the same before and after."""
    before = content(folder)
    code = papi_exit_code("doctor", folder)
    assert content(folder) == before
    return code, capsys.readouterr().out


def test_a_whole_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = examine(folder, capsys)
    assert code == 0
    assert "error" not in said
    for part in ("config:", "checkpoint.pt is intact", "2 of 2 epochs", "candidates.npz is intact",
                 "arrays.npz is intact", "model.safetensors is intact", "no process is", "complete"):  # fmt: skip
        assert part in said
    assert said.endswith(f"Next: papi report {folder} --open\n")


@pytest.mark.parametrize("out", [("--out", "first"), ("--out=first",), ()])
def test_a_copy_is_advised_about_itself(
    out: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is advised makes the copy whole, and leaves the run it was copied from alone."""
    monkeypatch.chdir(tmp_path)
    write_toy_npz(Path("toy.npz"))
    words = ["train", "--data", "toy.npz", *out, "--epochs", "1", "--batch-size", "48", "--method", "proden"]
    monkeypatch.setattr("sys.argv", ["papi", *words])  # what the run takes down
    assert papi_exit_code(*words) == 0
    (first,) = (file.parent for file in Path().rglob("summary.json"))
    shutil.copytree(first, "a copy")
    Path("a copy/model.safetensors").unlink()
    before = content(first)
    code, said = examine(Path("a copy"), capsys)
    assert code == 1
    advised = re.search(r"Delete summary.json; then `papi (.*)` restores", said)
    assert advised is not None
    Path("a copy/summary.json").unlink()
    assert papi_exit_code(*shlex.split(advised[1])) == 0
    assert content(first) == before
    assert Path("a copy/model.safetensors").read_bytes() == (first / "model.safetensors").read_bytes()
    capsys.readouterr()
    assert examine(Path("a copy"), capsys)[0] == 0


def cut(name: str) -> None:
    file = Path(name)
    file.write_bytes(file.read_bytes()[:100])


def row_doubled(name: str) -> None:
    file = Path(name)
    file.write_text(file.read_text() + file.read_text().splitlines(keepends=True)[0])


DAMAGES = {
    "model cut": ("model.safetensors", cut, "model.safetensors is not a model", "Delete summary.json; then"),
    "arrays cut": ("arrays.npz", cut, "arrays.npz cannot be read", "Delete summary.json; then"),
    "arrays gone": ("arrays.npz", lambda name: Path(name).unlink(), "arrays.npz is missing", "Delete summary.json"),
    "sets cut": ("candidates.npz", cut, "candidates.npz cannot be read", "Delete candidates.npz and summary.json"),
    "row cut": ("metrics.jsonl", cut, "metrics.jsonl ends with an incomplete line", "Delete summary.json; then"),
    "row doubled": (
        "metrics.jsonl",
        row_doubled,
        "[0, 1, 0]: some are missing or repeated",
        "Delete summary.json; then",
    ),
    "row not JSON": ("metrics.jsonl", lambda name: Path(name).write_text("{x\n"), "line 1", "Delete"),
    "summary cut": ("summary.json", cut, "summary.json is damaged", "Delete summary.json; then"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_and_its_cure(
    name: str, folder: Path, finished: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is advised makes the run whole again, with the same bits."""
    file, harm, says, advice = DAMAGES[name]
    harm(str(folder / file))
    code, said = examine(folder, capsys)
    assert code == 1
    assert said.count("error  ") >= 1
    assert says in said
    assert advice in said
    (folder / "summary.json").unlink()
    if "candidates.npz" in advice:
        (folder / "candidates.npz").unlink()
    train(folder)
    assert examine(folder, capsys)[0] == 0
    assert (folder / "model.safetensors").read_bytes() == (finished / "model.safetensors").read_bytes()
    assert {each.name for each in folder.iterdir()} == {each.name for each in finished.iterdir()}


def test_without_settings_the_model_is_still_of_use(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "config.json").write_text('{"identity"')
    code, said = examine(folder, capsys)
    assert code == 1
    assert "config.json is damaged" in said
    assert "train again in a new folder" in said
    assert "papi.load(" in said
    (folder / "config.json").unlink()
    code, said = examine(folder, capsys)
    assert code == 1
    assert "config.json is missing" in said


def test_a_run_that_had_hardly_begun(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in folder.iterdir():
        if file.name != "candidates.npz":
            file.unlink()
    code, said = examine(folder, capsys)
    assert code == 0
    assert "`papi train` in this folder starts the run" in said


def test_rows_that_are_not_those_of_the_checkpoint(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, *rest = RunFolder(folder).read_rows()
    RunFolder(folder).write_rows([replace(first, loss=first.loss + 1), *rest])
    code, said = examine(folder, capsys)
    assert code == 1
    assert "does not agree with the checkpoint" in said


def test_rows_with_what_is_no_number(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where all test images are of one class, there is no similarity between classes."""
    parts = RunFolder(folder)
    identity = identity_hash(parts.begun().identity)
    state = checkpoint.load(parts.checkpoint_file, identity, torch.device("cpu"))
    state["rows"][0]["inter_similarity"] = float("nan")
    checkpoint.save(parts.checkpoint_file, state, identity)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in state["rows"]))
    assert examine(folder, capsys)[0] == 0


def test_arrays_damaged_anywhere(folder: Path) -> None:
    """A broken archive fails in many ways, and each is one sentence."""
    file = folder / "candidates.npz"
    whole = file.read_bytes()
    for place in range(0, len(whole), 3):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with suppress(UserError):  # some bytes, as dates, do not matter
            RunFolder(folder).read_sets()


def test_a_checkpoint_of_another_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = json.loads((folder / "config.json").read_text())
    record["identity"]["seed"] = 7
    (folder / "config.json").write_text(json.dumps(record))
    code, said = examine(folder, capsys)
    assert code == 1
    assert said.count("belongs to a run with other settings") == 2


@pytest.mark.parametrize("what", ["nowhere", "empty", "file"])
def test_no_run_is_wrong_usage(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    assert papi_exit_code("doctor", tmp_path / what) == 2
    assert "does not contain a run" in capsys.readouterr().err
