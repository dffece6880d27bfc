"""The embedded images are the first of each class, in the published order."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papi.data.known.readers import read_idx_folder
from published_files import write_fashion
from recipes import make_fashion_mini
from recipes.make_fashion_mini import TEST_PER_CLASS, TRAIN_PER_CLASS, first_of_each_class


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(1, 6))
def test_the_first_of_each_class(classes: list[int], count: int) -> None:
    labels = np.array(classes)
    chosen = first_of_each_class(labels, count)
    assert np.all(np.diff(chosen) > 0), "the published order"
    for k in range(labels.max() + 1):
        assert list(chosen[labels[chosen] == k]) == list(np.flatnonzero(labels == k)[:count])


def test_it_keeps_the_published_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_fashion(tmp_path, train=40, test=20)
    monkeypatch.setattr("sys.argv", ["make_fashion_mini", str(tmp_path), str(tmp_path / "mini.npz")])
    make_fashion_mini.main()
    assert "40 + 20 images" in capsys.readouterr().out
    with np.load(tmp_path / "mini.npz", allow_pickle=False) as made:
        for split in ("train", "test"):
            images, labels = read_idx_folder(tmp_path, split)
            np.testing.assert_array_equal(made[f"{split}_images"], images[:, 0])
            np.testing.assert_array_equal(made[f"{split}_labels"], labels)


def test_the_embedded_images_have_the_numbers_it_says() -> None:
    with np.load(make_fashion_mini.DEFAULT_OUT, allow_pickle=False) as embedded:
        for split, count in (("train", TRAIN_PER_CLASS), ("test", TEST_PER_CLASS)):
            assert np.bincount(embedded[f"{split}_labels"]).tolist() == [count] * 10
            assert embedded[f"{split}_images"].shape == (10 * count, 28, 28)


def test_a_folder_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["make_fashion_mini"])
    with pytest.raises(SystemExit, match="FOLDER"):
        make_fashion_mini.main()
