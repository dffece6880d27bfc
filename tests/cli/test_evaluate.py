"""`papi evaluate`: on what it measures, and what it says of data that are not those of the run."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from command import papi_exit_code
from toy_data import make_toy_dataset, write_toy_npz

Out = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `toy.npz` and the finished run `run` on it."""
    place = tmp_path_factory.mktemp("evaluate")
    data = write_toy_npz(place / "toy.npz")
    options = ("--epochs", 1, "--batch-size", 48, "--threads", 1, "--device", "cpu", "--method", "proden")
    assert papi_exit_code("train", "--data", data, "--out", place / "run", *options) == 0
    return place


@pytest.fixture
def place(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the run, to whose side data can be put. Its own data are where they were."""
    shutil.copytree(trained / "run", tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def measured(said: str) -> int:
    """The number of images measured on."""
    found = re.search(r"Test accuracy [\d.]+% on (\d+) images", said)
    assert found is not None, said
    return int(found[1])


def save(file: str, **more: object) -> None:
    data = make_toy_dataset(seed=5)
    arrays = {"images": data.samples, "labels": data.labels, "class_names": np.array(data.class_names), **more}
    np.savez(file, **{name: value for name, value in arrays.items() if value is not None})  # type: ignore[arg-type]


def test_the_test_images_of_the_run(place: Path, capsys: Out) -> None:
    assert papi_exit_code("evaluate", "run") == 0
    said = capsys.readouterr().out
    assert measured(said) == 40
    assert "Warning" not in said
    assert said.endswith("Next: papi report run --open\n")


def test_all_labelled_images_of_other_data(place: Path, capsys: Out) -> None:
    save("other.npz")
    assert papi_exit_code("evaluate", "run", "--data", "other.npz") == 0
    said = capsys.readouterr().out
    assert measured(said) == 96
    assert "of other\n" in said


def test_test_images_of_other_data_come_first(place: Path, capsys: Out) -> None:
    tests = make_toy_dataset(seed=6)
    save("other.npz", test_images=tests.test_samples, test_labels=tests.test_labels)
    assert papi_exit_code("evaluate", "run", "--data", "other.npz") == 0
    assert measured(capsys.readouterr().out) == 40


def test_the_data_of_the_run_by_name_are_not_other_data(trained: Path, capsys: Out) -> None:
    """What it was trained on would tell nothing."""
    assert papi_exit_code("evaluate", trained / "run", "--data", trained / "." / "toy.npz") == 0
    assert measured(capsys.readouterr().out) == 40


def test_a_folder_of_images_of_another_size(place: Path, capsys: Out) -> None:
    data = make_toy_dataset()
    for number, (image, label) in enumerate(zip(data.samples, data.labels.tolist(), strict=True)):  # type: ignore[union-attr]
        file = Path("photos", data.class_names[label], f"{number}.png")
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image[0]).resize((20, 20)).save(file)
    assert papi_exit_code("evaluate", "run", "--data", "photos") == 0
    assert measured(capsys.readouterr().out) == 96


def test_nothing_to_measure_by(place: Path, capsys: Out) -> None:
    save("other.npz", labels=None, candidates=np.eye(4)[np.arange(96) % 4])
    assert papi_exit_code("evaluate", "run", "--data", "other.npz") == 2
    said = capsys.readouterr().err
    assert "other has no true labels" in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize("part", ["images", "test_images", "fewer"])
def test_data_that_have_changed(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    """Both commands that read the data of a finished run say so, and go on."""
    monkeypatch.chdir(tmp_path)
    write_toy_npz(Path("toy.npz"))
    options = ("--epochs", 1, "--batch-size", 48, "--threads", 1, "--device", "cpu", "--method", "proden")
    assert papi_exit_code("train", "--data", "toy.npz", "--limit", 80, "--out", "run", *options) == 0
    assert papi_exit_code("evaluate", "run") == 0
    assert papi_exit_code("report", "run") == 0
    assert "changed" not in capsys.readouterr().out
    with np.load("toy.npz") as file:
        arrays = dict(file)
    if part == "fewer":
        arrays |= {"images": arrays["images"][:40], "labels": arrays["labels"][:40]}
    else:
        arrays[part] = arrays[part][::-1]
    np.savez("toy.npz", **arrays)
    assert papi_exit_code("evaluate", "run") == 0
    said = capsys.readouterr().out
    assert "Warning: toy.npz may have changed since the run was trained" in said
    assert measured(said) == 40
    assert papi_exit_code("report", "run") == 0
    said = capsys.readouterr().out
    if part == "fewer":
        assert "Note on run: The data cannot be loaded" in said
    else:
        assert "Note on run: toy.npz may have changed since the run" in said
        assert "<img" in Path("run/report.html").read_text()


def test_candidate_sets_that_cannot_be_read(place: Path, capsys: Out) -> None:
    Path("run/candidates.npz").write_bytes(b"PK")
    assert papi_exit_code("evaluate", "run") == 0
    said = capsys.readouterr().out
    assert "Warning: candidates.npz cannot be read" in said
    assert "`papi doctor run`" in said
    assert measured(said) == 40
