"""Where the files of published datasets are found, and what is said when they are not there."""

from dataclasses import replace
from pathlib import Path

import pytest

import published_files as published
from papi.data.dataset import silent
from papi.data.known.published import Remote, feature_source, holding, inside_package
from papi.data.known.sources import SOURCES


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_all_files_must_lie_in_one_folder(tmp_path: Path) -> None:
    find = holding("one", "two", also=("below", "deeper/still"))
    assert find(tmp_path) is None
    touch(tmp_path / "one", tmp_path / "below" / "two")
    assert find(tmp_path) is None
    touch(tmp_path / "deeper" / "still" / "one", tmp_path / "deeper" / "still" / "two.gz")
    assert find(tmp_path) == tmp_path / "deeper" / "still"
    touch(tmp_path / "two")
    assert find(tmp_path) == tmp_path  # the data folder comes first


def test_an_absolute_place_does_not_depend_on_the_data_folder(tmp_path: Path) -> None:
    touch(tmp_path / "system" / "one")
    assert holding("one", also=(str(tmp_path / "system"),))(tmp_path / "data") == tmp_path / "system"


def test_what_comes_with_the_package_is_always_there(tmp_path: Path) -> None:
    assert (inside_package(tmp_path) / "fashion_mini.npz").is_file()


@pytest.mark.parametrize("name", ["Soccer Player.mat", "soccer_player.mat", "SoccerPlayer.mat"])
@pytest.mark.parametrize("folder", [".", "realworld"])
def test_feature_tables_are_found_under_any_spelling(name: str, folder: str, tmp_path: Path) -> None:
    touch(tmp_path / folder / "other.mat", tmp_path / folder / name)
    source = feature_source("Soccer Player", 171, 17472, 279, "Soccer Player.mat")
    assert source.find(tmp_path) == tmp_path / folder / name


def test_a_feature_table_is_read_with_its_sets(tmp_path: Path) -> None:
    published.write_partial_mat(tmp_path / "mine.mat", samples=20, columns=5, classes=4)
    source = feature_source("Mine", 4, 20, 5, "mine.mat")
    found = source.find(tmp_path)
    assert found is not None
    arrays = source.read(found, silent)
    assert arrays.candidates is not None
    assert (arrays.samples.shape, arrays.candidates.shape) == ((20, 5), (20, 4))
    assert source.shape == arrays.samples.shape[1:]


def test_a_hint_says_what_to_do(tmp_path: Path) -> None:
    source = replace(SOURCES["lost"], remotes=())
    assert source.hint("lost", tmp_path) == f"put lost.mat (unpacked) into {tmp_path} (see {source.published})"
    remote = replace(source, remotes=(Remote("http://x", "lost.mat", "0" * 32),))
    assert remote.hint("lost", tmp_path).startswith(
        f"download it with `papi datasets get lost --data-dir {tmp_path}`, or"
    )
