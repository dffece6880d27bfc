"""Known datasets from files in their published formats, small ones made here."""

from pathlib import Path

import numpy as np
import pytest

import published_files as published
from papi.data.known import sources
from papi.data.known.sources import SOURCES
from papi.data.own.load import Reading
from papi.errors import UserError


def test_fashion_mnist_gzipped_or_not(tmp_path: Path) -> None:
    published.write_fashion(tmp_path / "zipped" / "FashionMNIST" / "raw")
    published.write_fashion(tmp_path / "plain", suffix="")
    zipped = sources.load("fashion-mnist", tmp_path / "zipped")
    plain = sources.load("fashion-mnist", tmp_path / "plain")
    assert zipped.samples.shape == (20, 1, 28, 28)
    assert zipped.test_samples is not None
    assert zipped.test_samples.shape == (10, 1, 28, 28)
    assert np.array_equal(zipped.samples, plain.samples)
    assert zipped.labels is not None
    assert np.bincount(zipped.labels).tolist() == [2] * 10
    assert zipped.class_names[9] == "Ankle boot"
    assert zipped.samples.flags.writeable  # torch wants that


def test_a_part_of_a_dataset_is_noted(tmp_path: Path) -> None:
    published.write_svhn(tmp_path)
    assert sources.load("svhn", tmp_path).notes == (
        "this is not the whole of svhn: 20 + 10 of 73,257 + 26,032 published samples.",
    )


def test_svhn_calls_the_digit_zero_ten(tmp_path: Path) -> None:
    images = published.write_svhn(tmp_path)
    data = sources.load("svhn", tmp_path)
    assert data.labels is not None
    assert data.labels.tolist() == [k % 10 for k in range(20)]
    assert np.array_equal(data.samples, images)


def test_cifar10(tmp_path: Path) -> None:
    images = published.write_cifar10(tmp_path / "cifar-10-batches-py")
    data = sources.load("cifar10", tmp_path)
    assert np.array_equal(data.samples, images)
    assert data.class_names[3] == "cat"
    assert data.mean == (0.4914, 0.4822, 0.4465)  # the papers' constants, whatever the images are
    assert data.measured().mean == pytest.approx(images.transpose(1, 0, 2, 3).reshape(3, -1).mean(1) / 255)
    assert data.measured().std == pytest.approx(images.transpose(1, 0, 2, 3).reshape(3, -1).std(1) / 255)


def test_cifar100_knows_its_superclasses(tmp_path: Path) -> None:
    groups = published.write_cifar100(tmp_path / "cifar-100-python")
    for name in ("cifar100", "cifar100-h"):
        data = sources.load(name, tmp_path)
        assert data.groups is not None
        assert np.array_equal(data.groups, groups)
        assert data.class_names[7] == "fine7"


def test_test_images_can_be_trained_on(tmp_path: Path) -> None:
    published.write_cifar10(tmp_path)
    data = sources.load("cifar10", tmp_path, Reading(split="test"))
    assert data.test_samples is not None
    assert (len(data.samples), len(data.test_samples)) == (8, 2)


def test_digits_hold_out_a_fifth_of_each_class() -> None:
    data = sources.load("digits", Path("nowhere"))
    assert data.labels is not None
    assert data.test_labels is not None
    assert len(data.samples) + len(data.test_labels) == 1797
    everything = np.bincount(np.concatenate((data.labels, data.test_labels)))
    assert np.abs(np.bincount(data.test_labels) - everything / 5).max() <= 1
    again = sources.load("digits", Path("nowhere"))
    assert np.array_equal(data.samples, again.samples)
    other = sources.load("digits", Path("nowhere"), Reading(seed=1))
    assert not np.array_equal(data.test_labels, other.test_labels) or not np.array_equal(data.samples, other.samples)


@pytest.mark.parametrize("name", [name for name in SOURCES if name not in ("fashion-mini", "fashion-mnist", "digits")])
def test_missing_files_are_asked_for(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"{name} is not on this machine: .*put .* into {tmp_path}"):
        sources.load(name, tmp_path)


def test_unknown_name() -> None:
    with pytest.raises(UserError, match="no dataset 'cifar11': did you mean 'cifar10'"):
        sources.load("cifar11", Path())


def test_feature_table_by_name(tmp_path: Path) -> None:
    published.write_partial_mat(tmp_path / "Lost.mat", 1122, 108, 16)
    data = sources.load("lost", tmp_path)
    assert data.kind == "features"
    assert data.test_samples is not None
    assert data.samples.shape == (898, 108)
    assert data.test_samples.shape == (224, 108)
    assert data.candidates is not None
    assert data.candidates.shape == (898, 16)
    assert not data.notes


def test_classes_that_nobody_belongs_to_are_left_out(tmp_path: Path) -> None:
    """Two of 16: candidates lose their columns, later classes move up, and the person is told."""
    labels = np.arange(1122) % 14
    labels[labels >= 3] += 1  # nobody is a 3, nor a 15
    target = np.eye(16)[labels].T
    partial = target.copy()
    partial[[3, 15]] = 1  # but everybody might be
    published.write_partial_mat(tmp_path / "lost.mat", 1122, 108, 16, target=target, partial_target=partial)
    for name in ("lost", str(tmp_path / "lost.mat")):
        data = sources.load(name, tmp_path)
        assert data.class_names == tuple(str(k) for k in range(16) if k not in (3, 15))
        assert data.notes == ("classes of lost that no sample belongs to are left out: 3, 15.",)
        assert data.labels is not None
        assert data.candidates is not None
        assert np.array_equal(data.candidates, np.eye(14, dtype=bool)[data.labels])
        assert np.bincount(data.labels).min() > 60


def test_a_class_without_samples_stays_where_a_set_would_become_empty(tmp_path: Path) -> None:
    labels = np.arange(30) % 3
    partial = np.eye(4)[labels].T
    partial[:, 0] = (0, 0, 0, 1)  # the first sample has nothing but the class that nobody belongs to
    target = np.eye(4)[labels].T
    published.write_partial_mat(tmp_path / "mine.mat", 30, 5, 4, target=target, partial_target=partial)
    data = sources.load(str(tmp_path / "mine.mat"), tmp_path)
    assert len(data.class_names) == 4
    assert not data.notes


def test_a_file_of_another_dataset_is_refused(tmp_path: Path) -> None:
    published.write_partial_mat(tmp_path / "lost.mat", 50, 7, 16)
    with pytest.raises(UserError, match=r"hold samples of shape \(7,\), not \(108,\)"):
        sources.load("lost", tmp_path)


def test_mini_imagenet_divides_every_class(tmp_path: Path) -> None:
    for k in range(100):
        split = ("train", "val", "test")[min(k // 64, 1) + (k >= 80)]  # classes by split, as for few-shot learning
        published.write_images(tmp_path / "mini-imagenet" / split / f"n{k:03}", [f"{i}.jpg" for i in range(6)], 90, k)
    data = sources.load("mini-imagenet", tmp_path)
    assert data.test_samples is not None
    assert data.labels is not None
    assert data.test_labels is not None
    assert data.samples.shape == (500, 3, 84, 84)
    assert data.test_samples.shape == (100, 3, 64, 64)
    assert np.bincount(data.labels).tolist() == [5] * 100
    assert np.bincount(data.test_labels).tolist() == [1] * 100
    assert data.input_shape == (3, 64, 64)
    assert data.recipe.resized_crop == 64


def test_mini_imagenet_needs_all_classes(tmp_path: Path) -> None:
    published.write_images(tmp_path / "mini-imagenet" / "n1", ["a.png"])
    with pytest.raises(UserError, match="1 folders of classes: 100 are needed"):
        sources.load("mini-imagenet", tmp_path)


class Malicious:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        import os

        return os.system, ("touch /tmp/papi-was-here",)


def test_a_pickle_that_asks_for_code(tmp_path: Path) -> None:
    import pickle

    published.write_cifar10(tmp_path)
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({"data": Malicious()}, protocol=2))
    with pytest.raises(UserError, match=r"data_batch_1 asks to run code \(.*system\)"):
        sources.load("cifar10", tmp_path)
    assert not Path("/tmp/papi-was-here").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is damaged"),
        (b"\x80\x02}q\x01(U\x04da", "is damaged"),
        (b"\x80\x02]q\x01.", "holds a list"),
        (b"\x80\x02}q\x01.", "has no `data`"),
    ],
)
def test_damaged_pickles(content: bytes, message: str, tmp_path: Path) -> None:
    published.write_cifar10(tmp_path)
    (tmp_path / "test_batch").write_bytes(content)
    with pytest.raises(UserError, match=rf"test_batch {message}"):
        sources.load("cifar10", tmp_path)


@pytest.mark.parametrize("cut", [2, 10, 50])
def test_damaged_idx(cut: int, tmp_path: Path) -> None:
    published.write_fashion(tmp_path, suffix="")
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(UserError, match=r"train-images-idx3-ubyte .*Fetch the file again"):
        sources.load("fashion-mnist", tmp_path)


def test_cut_gzip(tmp_path: Path) -> None:
    published.write_fashion(tmp_path)
    path = tmp_path / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(UserError, match=r"t10k-labels-idx1-ubyte.gz cannot be read"):
        sources.load("fashion-mnist", tmp_path)
