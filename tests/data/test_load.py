"""From what a person typed to a dataset: known data by name, own data by path, ready to train on."""

from pathlib import Path

import numpy as np
import pytest

import published_files as published
from papi.data.load import load
from papi.data.own.reading import Reading
from papi.errors import UserError


def test_a_name_is_a_known_dataset_even_if_a_file_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    assert load("digits", tmp_path).name == "digits"
    assert load("digits", tmp_path).samples.shape[1:] == (1, 8, 8)


def test_a_path_is_data_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published.write_images(tmp_path / "photos", [f"{name}/{k}.png" for name in ("cat", "dog") for k in range(5)])
    monkeypatch.chdir(tmp_path)
    for data in ("photos", "./photos", str(tmp_path / "photos")):
        assert load(data, Path("data")).class_names == ("cat", "dog")


@pytest.mark.parametrize("data", ["photos/", "nothing.npz", "a/b", "/nowhere/at/all"])
def test_what_looks_like_a_path_is_one(data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="does not exist: specify a known dataset, a folder of images, or a file"):
        load(data, tmp_path)


def test_a_misspelt_name_is_corrected() -> None:
    with pytest.raises(UserError, match="unknown dataset 'cifar11': did you mean 'cifar10'"):
        load("cifar11", Path())
    with pytest.raises(UserError, match="a path to your own data"):
        load("photographs", Path())


def test_published_constants_are_kept_and_others_are_measured(tmp_path: Path) -> None:
    published.write_cifar10(tmp_path)
    assert load("cifar10", tmp_path).mean == (0.4914, 0.4822, 0.4465)
    digits = load("digits", tmp_path)
    assert digits.mean == pytest.approx((digits.samples.mean() / 255,))
    assert digits.std == pytest.approx((digits.samples.std() / 255,))


def test_constants_are_those_of_the_training_part(tmp_path: Path) -> None:
    features = np.arange(40, dtype=float).reshape(20, 2)
    np.savez(tmp_path / "f.npz", features=features, labels=np.arange(20) % 2)
    data = load(str(tmp_path / "f.npz"), tmp_path, Reading(test_share=0.5))
    assert data.test_samples is not None
    assert len(data.samples) == len(data.test_samples) == 10
    assert data.mean == pytest.approx(tuple(data.samples.mean(0)))


def test_digits_hold_out_a_fifth_of_each_class() -> None:
    data = load("digits", Path("nowhere"))
    assert data.labels is not None
    assert data.test_labels is not None
    assert len(data.samples) + len(data.test_labels) == 1797
    everything = np.bincount(np.concatenate((data.labels, data.test_labels)))
    assert np.abs(np.bincount(data.test_labels) - everything / 5).max() <= 1
    again = load("digits", Path("nowhere"))
    assert np.array_equal(data.samples, again.samples)
    other = load("digits", Path("nowhere"), Reading(seed=1))
    assert not np.array_equal(data.test_labels, other.test_labels) or not np.array_equal(data.samples, other.samples)


def test_published_test_samples_are_not_replaced(tmp_path: Path) -> None:
    published.write_svhn(tmp_path, train=20, test=10)
    data = load("svhn", tmp_path, Reading(test_share=0.5))
    assert data.test_samples is not None
    assert (len(data.samples), len(data.test_samples)) == (20, 10)


def test_a_split_is_for_known_data(tmp_path: Path) -> None:
    published.write_images(tmp_path / "photos", ["cat/0.png", "dog/0.png"])
    with pytest.raises(UserError, match=r"--data.split requires a known dataset, and .*photos is your own"):
        load(str(tmp_path / "photos"), tmp_path, Reading(split="test"))


def test_rules_for_votes_need_votes(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"digits has no votes: leave out --candidates.votes"):
        load("digits", tmp_path, Reading(votes="at-least-2"))
    with pytest.raises(UserError, match="digits has neither votes nor weights"):
        load("digits", tmp_path, Reading(weigh="auto"))


def test_sets_for_a_known_dataset(tmp_path: Path) -> None:
    published.write_cifar10(tmp_path)
    sets = np.eye(10, dtype=bool)[np.arange(50) % 10] | (np.arange(10) == 3)
    np.savez(tmp_path / "sets.npz", candidates=sets)
    data = load("cifar10", tmp_path, Reading(tmp_path / "sets.npz"))
    assert data.candidates is not None
    np.testing.assert_array_equal(data.candidates, sets)
    assert data.labels is not None  # still there to measure by


def test_data_without_rows(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", features=np.zeros((0, 3)), labels=np.zeros(0, int), class_names=np.array(["a", "b"]))
    with pytest.raises(UserError, match=r"f.npz has no usable rows"):
        load(str(tmp_path / "f.npz"), tmp_path)


def test_problems_can_be_collected(tmp_path: Path) -> None:
    features = np.eye(6)
    features[2, 1] = np.nan
    np.savez(tmp_path / "f.npz", features=features, labels=np.arange(6) % 2)
    problems: list[str] = []
    load(str(tmp_path / "f.npz"), tmp_path, report=problems.append)
    assert len(problems) == 1
    assert "row 3 has nan in feature 2" in problems[0]
