"""Decisions are read with care, and a run that starts from another goes on from its weights."""

import csv
import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from command import papi_exit_code
from papi import train as run
from papi.errors import UserError
from papi.runs.decisions import COLUMNS, Answer, fixed_folder, read_answers, read_decisions, table_of
from papi.runs.folder import RunFolder
from papi.runs.parent import read_parent
from papi.train import train_on
from papi.training import engine

CLASSES = ("ant", "bee", "cat")
FILES = ("a.png", "b,1.png", "c.png", "d.png")


def table(folder: Path, text: str) -> Path:
    path = folder / "decisions.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        'index,file,label\n3,d.png,bee\n1,"b,1.png",cat\n',
        'file,label\nd.png,bee\n"b,1.png",cat\n',
        "index,label\n3,bee\n1,cat\n3,bee\n",  # said twice alike is no contradiction
        'label,note,index,file\nbee,sure,3,\ncat,,,"b,1.png"\n',
    ],
)
def test_images_are_found_by_index_or_file(tmp_path: Path, text: str) -> None:
    found = read_decisions(table(tmp_path, text), 4, CLASSES, FILES)
    assert found == {3: Answer("label", (1,)), 1: Answer("label", (2,))}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("index,file,label\n0,a.png,be\n", "line 2: unknown label 'be': did you mean 'bee'"),
        ("index,file,label\n0,a.png,\n", "line 2: unknown label ''"),
        ("index,file,label\n4,,ant\n", "line 2 has the index '4': training images are numbered from 0 to 3"),
        ("index,file,label\n-1,,ant\n", "line 2 has the index '-1'"),
        ("index,file,label\n1.5,,ant\n", "line 2 has the index '1.5'"),
        ("index,file,label\n,e.png,ant\n", "line 2 names 'e.png', which is not a training image"),
        ("index,file,label\n0,c.png,ant\n", "line 2 has the index 0, but 'c.png' is image 2"),
        ("index,file,label\n,,ant\n", "line 2 has neither index nor file"),
        ("index,label\n0,ant\n2,ant\n0,cat\n", "line 4 calls image 0 'cat', and .*line 2 calls it 'ant'"),
        ("index,file,label\n", "contains no decisions"),
        ("index,file\n0,a.png\n", "has no column 'label'"),
        ("image,label\n0,ant\n", "does not identify the images"),
        ("index,file,label\n0,a.png\n", "line 2 has 2 cells"),
        ("", "is empty"),
    ],
)
def test_wrong_decisions_are_explained(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        read_decisions(table(tmp_path, text), 4, CLASSES, FILES)


def test_files_of_a_run_on_arrays(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="of this run have no file names: use an index"):
        read_decisions(table(tmp_path, "index,file,label\n0,a.png,ant\n"), 4, CLASSES, None)


def test_every_kind_of_answer(tmp_path: Path) -> None:
    text = "index,label,answer,note\n0,ant,label,sure\n1,ant|cat,several,\n2,,none,'=odd\n3,,bad,blurred\n"
    found = read_decisions(table(tmp_path, text), 4, CLASSES, FILES)
    assert found == {0: Answer("label", (0,)), 1: Answer("several", (0, 2)), 2: Answer("none"), 3: Answer("bad")}
    assert [answer.note for answer in found.values()] == ["sure", "", "=odd", "blurred"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("index,label,answer\n0,ant,perhaps\n", "unknown answer 'perhaps'"),
        ("index,label,answer\n0,ant,several\n", "fewer than two labels"),
        ("index,label,answer\n0,ant|ant,several\n", "fewer than two labels"),
        ("index,label,answer\n0,,several\n", "fewer than two labels"),
        ("index,label,answer\n0,ant|be,several\n", "unknown label 'be'"),
        ("index,label,answer\n0,ant,none\n", "has the answer 'none' and the label 'ant'"),
        ("index,label,answer\n0,,bad\n0,ant,label\n", "line 3 calls image 0 'ant', and .*line 2 calls it 'bad'"),
        ("index,label,answer\n0,,skip\n", "contains no decisions"),
    ],
)
def test_wrong_answers_are_explained(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        read_decisions(table(tmp_path, text), 4, CLASSES, FILES)


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)


@given(st.data())
def test_what_is_written_is_read_back(data: st.DataObject) -> None:
    """Whatever classes, files and notes are called; the order in which people decided stays."""
    classes = tuple(data.draw(st.lists(NAMES, min_size=2, max_size=5, unique=True)))
    files = tuple(data.draw(st.lists(NAMES.filter(str.strip), min_size=6, max_size=6, unique=True)))
    labels = st.sets(st.integers(0, len(classes) - 1), min_size=1)
    answer = st.one_of(
        labels.map(lambda chosen: Answer("label" if len(chosen) == 1 else "several", tuple(sorted(chosen)))),
        st.sampled_from([Answer("none"), Answer("bad"), Answer("skip")]),
    )
    answers = data.draw(st.dictionaries(st.integers(0, 5), answer))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "decisions.csv")
        file.write_bytes(table_of(answers, classes, files))
        found = read_answers(file, 6, classes, files)
    assert list(found.items()) == list(answers.items())


def test_notes_are_kept_and_harmless(tmp_path: Path) -> None:
    answers = {2: Answer("skip", note='=HYPERLINK("x"),\nline two'), 0: Answer("label", (1,), "ünïcode 🦊")}
    content = table_of(answers, CLASSES, FILES)
    assert content.startswith(",".join(COLUMNS).encode())
    assert b"\"'=HYPERLINK" in content
    (tmp_path / "decisions.csv").write_bytes(content)
    found = read_answers(tmp_path / "decisions.csv", 4, CLASSES, FILES)
    assert [answer.note for answer in found.values()] == [answer.note for answer in answers.values()]


@pytest.mark.parametrize(
    ("parent", "child"), [("mine", "mine-fixed"), ("mine-fixed", "mine-fixed2"), ("a-fixed9", "a-fixed10")]
)
def test_folder_names(tmp_path: Path, parent: str, child: str) -> None:
    assert fixed_folder(tmp_path / parent) == tmp_path / child


@pytest.fixture(scope="module")
def trained(lasting_toy_npz: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on toy data, made once."""
    return train(lasting_toy_npz, tmp_path_factory.mktemp("trained") / "parent")


@pytest.fixture
def toy_npz(lasting_toy_npz: Path) -> Path:
    return lasting_toy_npz


@pytest.fixture
def parent(trained: Path, tmp_path: Path) -> Path:
    """A copy of the run, to stand in a folder of its own."""
    return Path(shutil.copytree(trained, tmp_path / "parent"))


def train(data: Path, folder: Path, *options: str) -> Path:
    settings = ("--epochs", 4, "--batch-size", 20, "--threads", 1, "--device", "cpu")
    assert papi_exit_code("train", "--data", data, *settings, "--out", folder, *options) == 0
    return folder


def truth(data: Path, count: int = 20) -> str:
    with np.load(data) as arrays:
        names = arrays["class_names"][arrays["labels"]]
    return "index,file,label\n" + "".join(f"{i},,{names[i]}\n" for i in range(count))


def stop_after(steps: int) -> Callable[[], bool]:
    calls = iter(range(10**9))
    return lambda: next(calls) + 1 >= steps


def model(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


@pytest.mark.parametrize("method", ["papi", "pico", "cc", "valen"])
def test_it_starts_from_its_parent(toy_npz: Path, tmp_path: Path, method: str, monkeypatch: Any) -> None:
    """Before the first step the network, the prototypes and, but for decided rows, the confidence are the parent's."""
    parent = train(toy_npz, tmp_path / "parent", "--method", method)
    seen: dict[str, Any] = {}

    def watched(started: Any, *arguments: Any, **named: Any) -> Any:
        seen["state"] = {name: value.clone() for name, value in started.state_dict().items()}
        return original(started, *arguments, **named)

    original = engine.fit
    monkeypatch.setattr(engine, "fit", watched)
    file = table(tmp_path, truth(toy_npz))
    events = list(train_on(parent, file, tmp_path / "child"))
    assert isinstance(events[-1], run.Finished)
    before, state = RunFolder(parent), seen["state"]
    for name, value in read_parent(parent).weights.items():
        torch.testing.assert_close(state[f"network.{name}"], value, rtol=0, atol=0)
    arrays = before.read_arrays()
    if arrays.prototypes is not None:
        np.testing.assert_array_equal(state["prototypes.value"], arrays.prototypes)
    if "confidence.value" in state:
        confidence = state["confidence.value"].numpy()
        np.testing.assert_array_equal(confidence[20:], arrays.confidence[20:])
        assert confidence[:20].max(1).tolist() == [1] * 20
    sets = RunFolder(tmp_path / "child").read_sets().candidates
    with np.load(toy_npz) as data:
        assert sets[:20].argmax(1).tolist() == data["labels"][:20].tolist()
    assert sets[:20].sum() == 20
    np.testing.assert_array_equal(sets[20:], before.read_sets().candidates[20:])
    options = RunFolder(tmp_path / "child").begun().identity["option"]
    assert options.get("warmup_epochs", 0) == 0  # what it is for has been learned


def test_from_the_command_line(parent: Path, toy_npz: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = table(parent.parent, truth(toy_npz))
    assert papi_exit_code("labels", parent, "--fix", file) == 0
    said = capsys.readouterr().out
    child = parent.with_name("parent-fixed")
    assert parent.name in said
    record = RunFolder(child).read_record()
    assert record is not None
    assert record.parent is not None
    assert record.parent.folder == str(parent)
    assert record.parent.model == hashlib.sha256(model(parent)).hexdigest()
    assert record.identity["parent"] == record.parent.model
    assert (record.config["epochs"], record.config["seed"]) == (1, 0)
    with (child / "labels.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    with np.load(toy_npz) as data:
        assert [row["label"] for row in rows[:20]] == data["class_names"][data["labels"][:20]].tolist()
    # Again: it is complete. Then decisions about what came out, in a third folder.
    assert papi_exit_code("labels", parent, "--fix", file) == 0
    assert "already complete" in capsys.readouterr().out
    assert papi_exit_code("labels", child, "--fix", file) == 0
    assert RunFolder(parent.with_name("parent-fixed2")).read_summary() is not None
    assert papi_exit_code("report", child) == 0
    page = (child / "report.html").read_text()
    assert f"continues <bdi>{parent}</bdi>" in page
    assert "data:image" in page, "pictures are found although the candidates differ from those of the data"


@pytest.mark.parametrize("steps", [1, 5, 7])
def test_stopped_and_continued_equals_uninterrupted(parent: Path, toy_npz: Path, tmp_path: Path, steps: int) -> None:
    file = table(tmp_path, truth(toy_npz))
    list(train_on(parent, file, tmp_path / "whole", epochs=2))
    stopped = list(train_on(parent, file, tmp_path / "parts", epochs=2, stop_requested=stop_after(steps)))
    assert isinstance(stopped[-1], run.Stopped)
    assert isinstance(list(train_on(parent, file, tmp_path / "parts", epochs=2))[-1], run.Finished)
    assert model(tmp_path / "whole") == model(tmp_path / "parts")


def test_the_parent_is_part_of_what_a_run_is(parent: Path, toy_npz: Path, tmp_path: Path) -> None:
    file = table(tmp_path, truth(toy_npz))
    list(train_on(parent, file, tmp_path / "child"))
    other = train(toy_npz, tmp_path / "other", "--optim.lr", "0.01")
    with pytest.raises(
        UserError, match=r"contains a run with other settings \(.*parent is [0-9a-f]{64} here and [0-9a-f]{64} there"
    ):
        list(train_on(other, file, tmp_path / "child"))
    with pytest.raises(UserError, match=r"contains a run with other settings \(data_hash"):
        list(train_on(parent, table(tmp_path, truth(toy_npz, 19)), tmp_path / "child"))


def test_a_label_outside_the_candidates_is_taken_and_told(parent: Path, toy_npz: Path, tmp_path: Path) -> None:
    sets = RunFolder(parent).read_sets().candidates
    image = int(np.flatnonzero(~sets.all(1))[0])
    outside = int(np.flatnonzero(~sets[image])[0])
    file = table(tmp_path, f"index,label\n{image},bar {outside}\n")
    started = next(iter(train_on(parent, file, tmp_path / "child")))
    assert isinstance(started, run.Started)
    assert any("1 decision: 1 with one label" in problem for problem in started.problems)
    assert any("was not a candidate before" in problem for problem in started.problems)


def test_all_kinds_of_answers_train(parent: Path, tmp_path: Path) -> None:
    """Bad images leave, sets stay sets; the page and further decisions still find the images of the child."""
    before = RunFolder(parent).read_sets().candidates
    excluded = int(np.flatnonzero(~before.all(1))[3])
    several, bad, skipped = (int(i) for i in np.setdiff1d(np.arange(8), [excluded])[[1, 2, 4]])
    lines = [f"{several},bar 0|bar 2,several", f"{bad},,bad", f"{skipped},,skip", f"{excluded},,none"]
    file = table(tmp_path, "index,label,answer\n" + "\n".join(lines) + "\n")
    child, grandchild = tmp_path / "child", tmp_path / "grandchild"
    assert papi_exit_code("labels", parent, "--fix", file, "--out", child) == 0
    sets = RunFolder(child).read_sets()
    assert sets.rows is not None
    assert sets.rows.tolist() == [i for i in range(len(before)) if i != bad]
    now = dict(zip(sets.rows.tolist(), sets.candidates, strict=True))
    assert np.flatnonzero(now[several]).tolist() == [0, 2]
    np.testing.assert_array_equal(now[excluded], ~before[excluded])
    np.testing.assert_array_equal(now[skipped], before[skipped])
    assert papi_exit_code("report", child) == 0
    assert "data:image" in (child / "report.html").read_text()
    assert (
        papi_exit_code("labels", child, "--fix", table(tmp_path, "index,label,answer\n0,,bad\n"), "--out", grandchild)
        == 0
    )
    assert RunFolder(grandchild).read_sets().rows.tolist() == sets.rows[1:].tolist()  # type: ignore[union-attr]
    assert papi_exit_code("evaluate", grandchild) == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--fix", "no.csv"), "no.csv cannot be read"),
        (("--fix", "bad.csv"), "bad.csv, line 2: unknown label 'x'"),
        (("--fix", "bad.csv", "--out", "new.csv"), "looks like a file"),
        (("--fix", "bad.csv", "--epochs", "0"), "--epochs must be 1 or more"),
        (("--epochs", "3"), "--fix"),
    ],
)
def test_mistakes_write_nothing(
    parent: Path, options: tuple[str, ...], says: str, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(parent.parent)
    Path("bad.csv").write_text("index,label\n0,x\n")
    before = sorted(parent.parent.rglob("*"))
    capsys.readouterr()
    assert papi_exit_code("labels", "parent", *options) == 2
    said = capsys.readouterr().err
    assert says in said
    assert len(said.strip().splitlines()) == 1
    assert sorted(parent.parent.rglob("*")) == before


def test_runs_that_cannot_be_gone_on_from(parent: Path, toy_npz: Path, tmp_path: Path) -> None:
    record = json.loads((parent / "config.json").read_text())
    record["config"]["data"] = str(tmp_path / "changed.npz")
    (parent / "config.json").write_text(json.dumps(record))
    file = table(tmp_path, truth(toy_npz))
    with pytest.raises(UserError, match="does not contain a finished run"):
        list(train_on(tmp_path / "nowhere", file, tmp_path / "child"))
    with np.load(toy_npz) as arrays:
        changed = dict(arrays)
    changed["images"] = changed["images"][::-1]
    np.savez(tmp_path / "changed.npz", **changed)
    with pytest.raises(UserError, match="have changed since it was trained"):
        list(train_on(parent, file, tmp_path / "child"))
    assert not (tmp_path / "child").exists()
