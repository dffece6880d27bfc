"""Archives of arrays: whole, damaged, or not there."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papi.files.npz import read_npz


def archive(file: Path) -> Path:
    np.savez_compressed(file, numbers=np.arange(12).reshape(3, 4), words=np.array(["ant", "bee"]), empty=np.zeros(0))
    return file


def test_what_was_written_is_read(tmp_path: Path) -> None:
    found = read_npz(archive(tmp_path / "a.npz"))
    assert set(found) == {"numbers", "words", "empty"}
    np.testing.assert_array_equal(found["numbers"], np.arange(12).reshape(3, 4))
    assert found["words"].tolist() == ["ant", "bee"]
    assert found["empty"].shape == (0,)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_npz(tmp_path / "missing.npz")
    with pytest.raises(IsADirectoryError):
        read_npz(tmp_path)


def test_objects_are_refused(tmp_path: Path) -> None:
    """They are pickles, and a pickle could run any code."""
    np.savez(tmp_path / "a.npz", objects=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="pickle"):
        read_npz(tmp_path / "a.npz")


@pytest.mark.parametrize("content", [b"", b"PK", b"not an archive", b"\x93NUMPY"])
def test_what_is_no_archive(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r".*"):
        read_npz(tmp_path / "a.npz")


def test_an_archive_that_points_before_its_own_beginning(tmp_path: Path) -> None:
    """The archive says that its directory begins behind the end, so its files seem to begin before the start."""
    file = archive(tmp_path / "a.npz")
    whole = bytearray(file.read_bytes())
    end = whole.index(b"PK\x05\x06")
    whole[end + 16 : end + 20] = (len(whole)).to_bytes(4, "little")  # where it says that the directory begins
    file.write_bytes(whole)
    with pytest.raises(ValueError, match=r".*"):
        read_npz(file)


@settings(max_examples=200)
@given(data=st.data())
def test_damage_is_an_error_of_one_kind(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A cut or a changed byte gives the same arrays, where it does not matter, or a ValueError."""
    file = archive(tmp_path_factory.mktemp("damaged") / "a.npz")
    whole = file.read_bytes()
    if data.draw(st.booleans(), label="cut"):
        file.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    else:
        place = data.draw(st.integers(0, len(whole) - 1))
        changed = whole[place] ^ data.draw(st.integers(1, 255))
        file.write_bytes(whole[:place] + bytes([changed]) + whole[place + 1 :])
    try:
        found = read_npz(file)
    except ValueError:
        return
    assert all(isinstance(each, np.ndarray) for each in found.values())
