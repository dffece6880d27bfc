"""Known datasets from files in their published formats, small ones made here."""

from pathlib import Path

import numpy as np
import pytest
import torch

import published_files as published
from papi.data.known.sources import SOURCES, load_known
from papi.data.load import load
from papi.data.own.reading import Reading
from papi.data.views.autoaugment import AutoAugment
from papi.data.views.images import ImageViews
from papi.errors import UserError
from papi.randomness import draws


def test_fashion_mnist_gzipped_or_not(tmp_path: Path) -> None:
    published.write_fashion(tmp_path / "zipped" / "FashionMNIST" / "raw")
    published.write_fashion(tmp_path / "plain", suffix="")
    zipped = load("fashion-mnist", tmp_path / "zipped")
    plain = load("fashion-mnist", tmp_path / "plain")
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
    assert load("svhn", tmp_path).notes == ("this is only part of svhn: 20 + 10 of 73,257 + 26,032 published samples.",)


def test_svhn_calls_the_digit_zero_ten(tmp_path: Path) -> None:
    images = published.write_svhn(tmp_path)
    data = load("svhn", tmp_path)
    assert data.labels is not None
    assert data.labels.tolist() == [k % 10 for k in range(20)]
    assert np.array_equal(data.samples, images)


def test_cifar10(tmp_path: Path) -> None:
    images = published.write_cifar10(tmp_path / "cifar-10-batches-py")
    data = load("cifar10", tmp_path)
    assert np.array_equal(data.samples, images)
    assert data.class_names[3] == "cat"
    assert data.mean == (0.4914, 0.4822, 0.4465)  # the papers' constants, whatever the images are
    assert data.measured().mean == pytest.approx(images.transpose(1, 0, 2, 3).reshape(3, -1).mean(1) / 255)
    assert data.measured().std == pytest.approx(images.transpose(1, 0, 2, 3).reshape(3, -1).std(1) / 255)


def test_cifar100_knows_its_superclasses(tmp_path: Path) -> None:
    groups = published.write_cifar100(tmp_path / "cifar-100-python")
    for name in ("cifar100", "cifar100-h"):
        data = load(name, tmp_path)
        assert data.groups is not None
        assert np.array_equal(data.groups, groups)
        assert data.class_names[7] == "fine7"


def test_test_images_can_be_trained_on(tmp_path: Path) -> None:
    published.write_cifar10(tmp_path)
    data = load("cifar10", tmp_path, Reading(split="test"))
    assert data.test_samples is not None
    assert (len(data.samples), len(data.test_samples)) == (8, 2)


@pytest.mark.parametrize("name", [name for name in SOURCES if name not in ("fashion-mini", "fashion-mnist", "digits")])
def test_missing_files_are_asked_for(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"{name} is not on this machine: .*put .* into {tmp_path}"):
        load(name, tmp_path)


def test_feature_table_by_name(tmp_path: Path) -> None:
    published.write_partial_mat(tmp_path / "Lost.mat", 1122, 108, 16)
    data = load("lost", tmp_path)
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
        data = load(name, tmp_path)
        assert data.class_names == tuple(str(k) for k in range(16) if k not in (3, 15))
        assert data.notes == ("removed classes of lost without samples: 3, 15.",)
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
    data = load(str(tmp_path / "mine.mat"), tmp_path, Reading(allow_missing_truth=True))
    assert len(data.class_names) == 4
    assert data.notes == (f"1 of 30 rows in {tmp_path}/mine.mat have a true label that is not a candidate.",)


def test_a_file_of_another_dataset_is_refused(tmp_path: Path) -> None:
    published.write_partial_mat(tmp_path / "lost.mat", 50, 7, 16)
    with pytest.raises(UserError, match=r"have samples of shape \(7,\) instead of \(108,\)"):
        load("lost", tmp_path)


@pytest.mark.parametrize("name", SOURCES)
def test_the_table_fits_together(name: str) -> None:
    source = SOURCES[name]
    assert len(source.class_names) in (0, source.classes)
    assert len(source.mean) == len(source.std)
    assert len(source.mean) in (0, source.shape[0])
    assert source.counts[0] > 0
    assert source.published.startswith("http")
    if source.recipe.policy is not None:
        AutoAugment(source.recipe.policy)
    for remote in source.remotes:
        assert len(bytes.fromhex(remote.md5)) == 16
        assert not Path(remote.target).is_absolute()


@pytest.mark.parametrize("name", [name for name, source in SOURCES.items() if len(source.shape) == 3])
def test_views_fit_the_images(name: str) -> None:
    source = SOURCES[name]
    images = torch.zeros((2, *source.shape), dtype=torch.uint8)
    seen = (source.shape[0], *[source.recipe.resized_crop] * 2) if source.recipe.resized_crop else source.shape
    for view in ("weak", "strong"):
        assert ImageViews(source.recipe)(view, images, draws(0, "view")).shape == (2, *seen)


def test_only_data_with_superclasses_are_hierarchical(tmp_path: Path) -> None:
    published.write_cifar100(tmp_path)
    hierarchical = [name for name, source in SOURCES.items() if source.hierarchical]
    assert hierarchical == ["cifar100-h"]
    for name in hierarchical:
        assert load_known(name, tmp_path, Reading()).groups is not None


def test_other_images_than_published_are_refused(tmp_path: Path) -> None:
    published.write_fashion(tmp_path, train=60_001, test=1)
    with pytest.raises(UserError, match=r"have 60,001 \+ 1 samples instead of 60,000 \+ 10,000"):
        load_known("fashion-mnist", tmp_path, Reading())


def test_labels_outside_the_classes_are_refused(tmp_path: Path) -> None:
    published.write_fashion(tmp_path)
    published.write_idx(tmp_path / "t10k-labels-idx1-ubyte.gz", np.arange(1, 11))
    with pytest.raises(UserError, match="fashion-mnist have labels that are not between 0 and 9"):
        load_known("fashion-mnist", tmp_path, Reading())


def test_sets_for_another_number_of_classes_are_refused(tmp_path: Path) -> None:
    published.write_partial_mat(tmp_path / "lost.mat", 1122, 108, 15)
    with pytest.raises(UserError, match="lost have 15 classes instead of 16"):
        load_known("lost", tmp_path, Reading())


def test_known_data_have_a_size_and_splits_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--data.size is only for your own images, and digits has a fixed size"):
        load_known("digits", tmp_path, Reading(size=32))
    with pytest.raises(UserError, match=r"digits has no published test .*: leave out --data.split"):
        load_known("digits", tmp_path, Reading(split="test"))


def test_names_of_classes_come_from_the_files_or_the_table_or_are_numbers(tmp_path: Path) -> None:
    published.write_cifar10(tmp_path)
    published.write_partial_mat(tmp_path / "lost.mat", 1122, 108, 16)
    assert load_known("cifar10", tmp_path, Reading()).class_names[0] == "airplane"
    assert load_known("fashion-mini", tmp_path, Reading()).class_names[0] == "T-shirt/top"
    assert load_known("lost", tmp_path, Reading()).class_names == tuple(map(str, range(16)))
