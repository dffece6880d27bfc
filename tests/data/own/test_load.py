"""People's own data, from folders and files to a dataset."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import published_files as published
from papi.data.dataset import Dataset
from papi.data.load import load as load_any
from papi.data.own.reading import Reading
from papi.errors import UserError

NAMES = ["a.png", "b.png", "sub/c.png", "d.png"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    published.write_images(tmp_path / "images", NAMES)
    return tmp_path / "images"


def load(path: Path, **how: object) -> Dataset:
    return load_any(str(path), Path("data"), Reading(**how))  # type: ignore[arg-type]


def table(folder: Path, text: str, name: str = "labels.csv") -> Path:
    path = folder.parent / name
    path.write_text(text)
    return path


def test_folder_with_a_table(folder: Path) -> None:
    file = table(folder, "file_name,candidates\nb.png,cat|dog\nsub/c.png,dog\n")
    data = load(folder, annotations=file)
    assert data.name == "images"
    assert data.samples.shape == (2, 3, 16, 16)
    assert data.candidates is not None
    assert data.candidates.tolist() == [[True, True], [False, True]]
    assert data.labels is None
    assert data.test_samples is None  # nothing to measure by
    assert data.file_names == ("b.png", "sub/c.png")
    assert data.notes == (f"skipped 2 images in {folder} that have no row in {file}.",)
    assert data.mean == pytest.approx(data.samples.transpose(1, 0, 2, 3).reshape(3, -1).mean(1) / 255)


@pytest.mark.parametrize("name", ["metadata.csv", "metadata.jsonl"])
def test_metadata_of_hugging_face(name: str, folder: Path) -> None:
    rows = [{"file_name": "a.png", "candidates": "cat|dog"}, {"file_name": "b.png", "candidates": "cat"}]
    text = "file_name,candidates\na.png,cat|dog\nb.png,cat\n"
    (folder / name).write_text(text if name.endswith("csv") else "".join(json.dumps(row) + "\n" for row in rows))
    data = load(folder)
    assert data.class_names == ("cat", "dog")
    assert data.file_names == ("a.png", "b.png")


def test_metadata_in_each_split(tmp_path: Path) -> None:
    for split in ("train", "test"):
        published.write_images(tmp_path / split, ["0.png", "1.png"])
        text = "file_name,candidates,label\n0.png,cat|dog,cat\n1.png,dog,dog\n"
        (tmp_path / split / "metadata.csv").write_text(text)
    data = load(tmp_path)
    assert data.file_names == ("train/0.png", "train/1.png")
    assert data.test_labels is not None
    assert data.test_labels.tolist() == [0, 1]


def test_rows_for_testing(folder: Path) -> None:
    text = "file_name,candidates,label,split\na.png,,cat,test\nb.png,cat|dog,dog,train\nd.png,dog,dog,\n"
    data = load(folder, annotations=table(folder, text))
    assert data.file_names == ("b.png", "d.png")
    assert data.labels is not None
    assert data.labels.tolist() == [1, 1]
    assert data.test_labels is not None
    assert data.test_labels.tolist() == [0]
    assert data.test_samples is not None
    assert np.array_equal(data.test_samples[0], load_all(folder)[0])


def load_all(folder: Path) -> np.ndarray:
    text = "file_name,candidates\n" + "".join(f"{name},x|y\n" for name in NAMES)
    return load(folder, annotations=table(folder, text, "all.csv")).samples


def test_a_part_is_held_out_where_labels_are_known(folder: Path) -> None:
    text = "file_name,candidates,label\n" + "".join(f"{name},cat|dog,cat\n" for name in NAMES)
    data = load(folder, annotations=table(folder, text), test_share=0.5)
    assert data.test_samples is not None
    assert (len(data.samples), len(data.test_samples)) == (2, 2)
    assert load(folder, annotations=table(folder, text), test_share=0).test_samples is None


def test_some_true_labels_are_noted(folder: Path) -> None:
    data = load(folder, annotations=table(folder, "file_name,candidates,label\na.png,cat|dog,cat\nb.png,dog,\n"))
    assert data.labels is None
    assert "1 of 2 training rows" in data.notes[-1]


def test_a_folder_for_each_class(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        published.write_images(tmp_path / name, [f"{k}.png" for k in range(5)])
    data = load(tmp_path)
    assert data.class_names == ("cat", "dog")
    assert data.candidates is None
    assert data.labels is not None
    assert data.labels.tolist() == [0] * 4 + [1] * 4


def test_a_folder_for_each_class_and_split(tmp_path: Path) -> None:
    for split, count in (("train", 3), ("test", 2)):
        for name in ("cat", "dog"):
            published.write_images(tmp_path / split / name, [f"{k}.png" for k in range(count)])
    data = load(tmp_path)
    assert data.test_samples is not None
    assert (len(data.samples), len(data.test_samples)) == (6, 4)


def test_an_empty_folder_is_noted(tmp_path: Path) -> None:
    published.write_images(tmp_path, ["train/cat/0.png", "train/dog/0.png", "test/cat/0.png", "test/dog/0.png"])
    assert load(tmp_path).notes == ()
    for name in ("ant", "zebra"):
        (tmp_path / "train" / name).mkdir()
    data = load(tmp_path)
    assert data.class_names == ("ant", "cat", "dog", "zebra")
    place = tmp_path / "train"
    assert data.notes == (f"folders in {place} without images still count as classes: ant, zebra.",)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes among files")
def test_only_regular_files_are_images(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(folder / "sub" / "p.png")
    file = table(folder, "file_name,candidates\na.png,cat|dog\nsub/p.png,dog\n")
    with pytest.raises(UserError, match=r"line 3 names 'sub/p.png', which is not a regular file in"):
        load(folder, annotations=file)
    with pytest.raises(UserError, match=r"sub names 'sub/p.png', which is not a regular file in"):
        load(folder)


def test_names_no_file_can_have(folder: Path) -> None:
    for name in ("a\0.png", "a\udcff.png"):
        names = np.array([*NAMES, f"{name}.png"])
        np.savez(folder.parent / "l.npz", candidates=np.eye(2)[[0, 1, 0, 1, 0]], file_names=names)
        with pytest.raises(UserError, match=r"which is not valid UTF-8|texts that are not Unicode"):
            load(folder, annotations=folder.parent / "l.npz")


def test_test_rows_alone(folder: Path) -> None:
    file = table(folder, "file_name,candidates,label,split\na.png,cat|dog,cat,test\n")
    with pytest.raises(UserError, match=r"labels.csv has no usable training rows"):
        load(folder, annotations=file)


def test_listed_classes_fix_the_order(folder: Path) -> None:
    (folder / "classes.txt").write_text("zebra\ndog\ncat\n")
    file = table(folder, "file_name,candidates\na.png,cat|dog\nb.png,zebra\n")
    assert load(folder, annotations=file).class_names == ("zebra", "dog", "cat")
    file = table(folder, "file_name,candidates\na.png,cat|dgo\nb.png,zebra\n")
    with pytest.raises(UserError, match="line 2: unknown label 'dgo': did you mean 'dog'"):
        load(folder, annotations=file)
    (folder / "classes.txt").write_text("zebra\ndog\nzebra\n")
    with pytest.raises(UserError, match=r"classes.txt lists the class 'zebra' twice"):
        load(folder, annotations=file)


def test_votes_are_a_prior(folder: Path) -> None:
    text = "file_name,annotator,label\na.png,x,cat\na.png,y,cat\na.png,z,dog\nb.png,x,dog\n"
    data = load(folder, annotations=table(folder, text), weigh="auto")
    assert data.prior is not None
    assert data.prior == pytest.approx(np.array([[2.5 / 4, 1.5 / 4], [0, 1]]))
    with pytest.raises(UserError, match="has neither votes nor weights"):
        load(folder, annotations=table(folder, "file_name,candidates\na.png,cat|dog\n"), weigh="auto")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"weigh": "auto"}, "has neither votes nor weights: leave out --candidates.weigh"),
        ({"votes": "at-least-2"}, "has no votes: leave out --candidates.votes"),
        ({"votes": "vaguest"}, "has no votes: leave out --candidates.votes"),
    ],
)
def test_options_for_votes_without_votes(how: dict[str, object], message: str, tmp_path: Path) -> None:
    published.write_images(tmp_path / "by-class", ["cat/0.png", "dog/0.png"])
    np.savez(tmp_path / "labels.npz", features=FEATURES, labels=np.arange(20) % 3)
    np.savez(tmp_path / "sets.npz", features=FEATURES, candidates=np.eye(3)[np.arange(20) % 3])
    published.write_partial_mat(tmp_path / "mine.mat")
    (tmp_path / "f.csv").write_text("x,y,candidates\n1,2,a|b\n3,4,a\n")
    for name in ("by-class", "labels.npz", "sets.npz", "mine.mat", "f.csv"):
        with pytest.raises(UserError, match=f"{name} {message}"):
            load(tmp_path / name, **how)


def test_counts_of_one_are_votes_too(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", features=np.eye(2), counts=np.array([[1, 0], [1, 1]]))
    data = load(tmp_path / "f.npz", weigh="auto")
    assert data.prior == pytest.approx(np.array([[1, 0], [0.5, 0.5]]))


def test_votes_on_a_known_dataset(tmp_path: Path) -> None:
    published.write_cifar10(tmp_path)
    votes = tmp_path / "votes.npz"
    np.savez(votes, counts=np.eye(10, dtype=np.uint8) * 50 + 1)
    data = load_any("cifar10", tmp_path, Reading(votes, votes="at-least-2", split="test", test_share=0))
    assert data.candidates is not None
    assert np.array_equal(data.candidates, np.eye(10, dtype=bool))
    with pytest.raises(UserError, match=r"has 10 rows, but cifar10 has 50 .*add --data.split test"):
        load_any("cifar10", tmp_path, Reading(votes))


def test_arrays(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (6, 5, 7), np.uint8)
    np.savez(tmp_path / "a.npz", images=images, candidates=np.eye(3)[[0, 1, 2, 0, 1, 2]])
    data = load(tmp_path / "a.npz")
    assert data.samples.shape == (6, 1, 5, 7)
    assert data.class_names == ("0", "1", "2")
    np.savez(tmp_path / "b.npz", images=images)
    with pytest.raises(UserError, match="neither candidates nor labels"):
        load(tmp_path / "b.npz")
    file = table(tmp_path / "x", "candidates\ncat|dog\ncat\ncat\ncat\ncat\ndog\n")
    assert load(tmp_path / "b.npz", annotations=file).class_names == ("cat", "dog")


FEATURES = np.random.default_rng(0).normal(size=(20, 4))


def test_features_as_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", features=FEATURES, candidates=np.ones((20, 3)), labels=np.arange(20) % 3)
    data = load(tmp_path / "f.npz")
    assert data.kind == "features"
    assert data.samples.shape == (16, 4)
    assert data.mean == pytest.approx(data.samples.mean(0))


def test_weights_as_arrays_are_a_prior(tmp_path: Path) -> None:
    weights = np.array([[3, 1, 0], [0, 0, 0], [0, 1, 1]])
    np.savez(tmp_path / "f.npz", features=FEATURES[:3], weights=weights)
    data = load(tmp_path / "f.npz", unlabelled=True)
    assert data.candidates is not None
    assert data.prior is not None
    assert data.candidates.tolist() == [[True, True, False], [True, True, True], [False, True, True]]
    np.testing.assert_allclose(data.prior, [[0.75, 0.25, 0], [1 / 3, 1 / 3, 1 / 3], [0, 0.5, 0.5]], rtol=1e-6)
    assert load(tmp_path / "f.npz", unlabelled=True, weigh="off").prior is None
    np.savez(tmp_path / "g.npz", features=FEATURES[:3], labels=[0, 1, 2])
    beside = load(tmp_path / "g.npz", annotations=tmp_path / "f.npz", unlabelled=True, test_share=0)
    np.testing.assert_array_equal(beside.prior, data.prior)


IMAGES = np.zeros((4, 8, 8), np.uint8)
NUMBERS = np.eye(4)
FOUR = np.array([0, 1, 0, 1])

BAD_ARRAYS = {
    "no columns": ({"features": NUMBERS[:, :0]}, r"features in .*f.npz .*got float64 of shape \(4, 0\)"),
    "no pixels": (
        {"images": IMAGES[:, :0]},
        r"images in .*f.npz must have a height and a width .*got shape \(4, 0, 8\)",
    ),
    "both kinds": ({"features": NUMBERS, "images": IMAGES}, r"f.npz has both features and images: leave one out"),
    "other height": (
        {"images": IMAGES, "test_images": IMAGES[:, 2:], "test_labels": FOUR},
        r"test_images in .*f.npz have shape \(1, 6, 8\), but images have \(1, 8, 8\)",
    ),
    "other channels": (
        {"images": IMAGES, "test_images": np.zeros((4, 8, 8, 3), np.uint8), "test_labels": FOUR},
        r"test_images in .* have shape \(3, 8, 8\), but images have \(1, 8, 8\)",
    ),
    "other width": (
        {"features": NUMBERS, "test_features": NUMBERS[:, 1:]},
        r"test_features in .* have shape \(3,\), but features have \(4,\)",
    ),
    "tests misspelt": (
        {"features": NUMBERS, "test_feature": NUMBERS, "test_labels": FOUR},
        r"f.npz, which has test_labels, has no array 'test_features', .*did you mean 'test_feature'",
    ),
    "class twice": ({"features": NUMBERS, "class_names": ["cat", "dog", "cat"]}, r"f.npz lists the class 'cat' twice"),
    "nameless class": ({"features": NUMBERS, "class_names": ["cat", ""]}, r"name 2 of class_names in .* got ''"),
    "too large": ({"features": NUMBERS * 1e300}, r"f.npz, features, row 1 has 1e\+300 in feature 1"),
    "too large a test": (
        {"features": NUMBERS, "test_features": NUMBERS * 1e300},
        r"f.npz, test_features, row 1 has 1e\+300 in feature 1",
    ),
}


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_bad_arrays(name: str, tmp_path: Path) -> None:
    arrays, message = BAD_ARRAYS[name]
    np.savez(tmp_path / "f.npz", labels=FOUR, **arrays)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=message):
        load(tmp_path / "f.npz")


def test_tests_without_labels_are_noted(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", features=NUMBERS, labels=FOUR, test_features=NUMBERS)
    data = load(tmp_path / "f.npz")
    assert data.notes == (
        f"test_features in {tmp_path / 'f.npz'} have no test_labels, so they are not used to measure accuracy.",
    )
    np.savez(tmp_path / "f.npz", features=NUMBERS, labels=FOUR, test_features=NUMBERS, test_labels=FOUR)
    assert load(tmp_path / "f.npz").notes == ()


def test_features_in_a_table(tmp_path: Path) -> None:
    rows = "".join(f"{k % 2},{x},{y},cat|dog\n" for k, (x, y) in enumerate(FEATURES[:, :2]))
    (tmp_path / "f.csv").write_text("constant,x,y,candidates\n" + rows)
    data = load(tmp_path / "f.csv")
    assert data.samples == pytest.approx(np.column_stack((np.arange(20) % 2, FEATURES[:, :2])))
    assert data.class_names == ("cat", "dog")


def test_features_in_matlab_files(tmp_path: Path) -> None:
    published.write_partial_mat(tmp_path / "mine.mat")
    data = load(tmp_path / "mine.mat")
    assert data.samples.shape == (48, 5)
    published.write_partial_mat(tmp_path / "mine.mat", target=None)
    assert load(tmp_path / "mine.mat").labels is None


def test_a_constant_feature_does_no_harm(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", features=np.ones((4, 2)), candidates=np.eye(2)[[0, 1, 0, 1]])
    assert load(tmp_path / "f.npz").std == (1.0, 1.0)


BAD_MATS = {
    "no sets": ({"partial_target": None}, "has no variable 'partial_target'"),
    "other counts": ({"partial_target": np.ones((4, 7))}, "60 rows in data, but 7 columns in partial_target"),
    "nan": ({"data": np.where(np.arange(300).reshape(60, 5) == 13, np.nan, 1.0)}, "row 3 has nan in feature 4"),
    "infinite": ({"data": np.where(np.arange(300).reshape(60, 5) == 13, np.inf, 1.0)}, "row 3 has inf in feature 4"),
    "too large": ({"data": np.where(np.arange(300).reshape(60, 5) == 13, 1e300, 1)}, "row 3 has inf in feature 4"),
    "two truths": ({"target": np.ones((4, 60))}, "column 1 of target in .* must have one true label; got 4"),
    "other target": ({"target": np.ones((3, 60))}, "make them equal"),
}


@pytest.mark.parametrize("name", BAD_MATS)
def test_bad_matlab_files(name: str, tmp_path: Path) -> None:
    changes, message = BAD_MATS[name]
    published.write_partial_mat(tmp_path / "mine.mat", **changes)
    with pytest.raises(UserError, match=message):
        load(tmp_path / "mine.mat")


def test_no_matlab_file(tmp_path: Path) -> None:
    (tmp_path / "mine.mat").write_bytes(b"MATLAB 7.3 MAT-file" + b" " * 105 + b"\x00\x02IM" + b"\x89HDF")
    with pytest.raises(UserError, match=r"mine.mat is in MATLAB's format 7.3: save it again with the option -v7"):
        load(tmp_path / "mine.mat")
    (tmp_path / "mine.mat").write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"mine.mat is not a readable .mat file"):
        load(tmp_path / "mine.mat")
