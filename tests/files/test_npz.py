"""Archives of arrays: whole, damaged, or not there."""

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papi.files.npz import map_npy, read_npy, read_npz


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


def header(shape: str, kind: str = "<f8") -> bytes:
    """The beginning of an .npy file that promises any shape."""
    text = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (63 - (len(text) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


PROMISES = ["(4611686018427387904,)", "(2, 3)", "(99999999999999999999999,)", "(-1,)", "(10**9,)", "(3, -5, 7)", "3"]


@pytest.mark.parametrize("shape", PROMISES)
def test_more_is_promised_than_there_is(shape: str, tmp_path: Path) -> None:
    content = header(shape) + bytes(24)
    (tmp_path / "a.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as opened:
        opened.writestr("numbers.npy", content)
    with pytest.raises(ValueError, match=r"."):
        read_npy(tmp_path / "a.npy")
    with pytest.raises(ValueError, match=r"."):
        read_npz(tmp_path / "a.npz")


def test_what_is_promised_is_there(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(header("(3,)") + bytes(24))
    assert read_npy(tmp_path / "a.npy").tolist() == [0, 0, 0]


@pytest.mark.parametrize(("kind", "shape"), [("|V0", "(4611686018427387904,)"), ("<U0", "(10,)"), ("|O", "(1,)")])
def test_numbers_of_a_strange_size(kind: str, shape: str, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(header(shape, kind) + bytes(24))
    with pytest.raises(ValueError, match=r"."):
        read_npy(tmp_path / "a.npy")


@pytest.mark.parametrize("name", ["note.txt", "note.npy", "folder/"])
def test_a_member_that_is_no_array(name: str, tmp_path: Path) -> None:
    file = archive(tmp_path / "a.npz")
    with zipfile.ZipFile(file, "a") as opened:
        opened.writestr(name, "words")
    with pytest.raises(ValueError, match="not an array"):
        read_npz(file)


def test_an_encrypted_member(tmp_path: Path) -> None:
    file = archive(tmp_path / "a.npz")
    content = bytearray(file.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1  # in the directory of the archive
    file.write_bytes(content)
    with pytest.raises(ValueError, match="encrypted"):
        read_npz(file)


def test_an_archive_that_would_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its directory says how large the members become, and nothing is unpacked before that is known."""
    np.savez_compressed(tmp_path / "a.npz", zeros=np.zeros(10**6))
    assert read_npz(tmp_path / "a.npz")["zeros"].shape == (10**6,)
    monkeypatch.setattr("papi.files.npz.memory_bytes", lambda: 10**6)  # eight times as much is in it
    with pytest.raises(ValueError, match="more than this machine has"):
        read_npz(tmp_path / "a.npz")


@pytest.mark.parametrize("codes", [[0x110000], [0xFFFFFFFF], [0xD800], [65, 0xDFFF]])
def test_texts_that_are_not_unicode(codes: list[int], tmp_path: Path) -> None:
    """NumPy takes any four bytes for a character."""
    words = np.array(codes, np.uint32).view(f"<U{len(codes)}")
    np.save(tmp_path / "a.npy", words)
    with pytest.raises(ValueError, match="Unicode"):
        read_npy(tmp_path / "a.npy")


@pytest.mark.parametrize("order", ["<", ">"])
def test_texts_in_any_order_of_bytes(order: str, tmp_path: Path) -> None:
    words = np.array([["ant", "漢🦊"], ["", "é"]]).astype(f"{order}U3")
    np.save(tmp_path / "a.npy", words)
    np.testing.assert_array_equal(read_npy(tmp_path / "a.npy"), words)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.zeros((0, 4)),
        np.array(3),
        np.array(["a"]),
        np.array([], dtype="U1"),
    ],
    ids=str,
)
def test_one_array(array: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", array)
    np.testing.assert_array_equal(read_npy(tmp_path / "a.npy"), array)


def test_named_columns_are_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.zeros(2, dtype=[("é", "i4")]), version=(3, 0))
    (tmp_path / "a.npy").write_bytes(stream.getvalue())
    with pytest.raises(ValueError, match="named columns"):
        read_npy(tmp_path / "a.npy")


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read in (read_npy, read_npz, map_npy):
        with pytest.raises(OSError, match="a pipe"):
            read(tmp_path / "pipe")


def test_a_link_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.npz").symlink_to(archive(tmp_path / "a.npz"))
    assert read_npz(tmp_path / "folder" / "a.npz").keys() == {"numbers", "words", "empty"}
    with pytest.raises(OSError, match="out of its folder"):
        read_npz(tmp_path / "folder" / "a.npz", inside=tmp_path / "folder")


def test_a_mapped_array(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(6.0).reshape(2, 3))
    found = map_npy(tmp_path / "a.npy")
    found[0, 0] = 9
    assert found.tolist() == [[9, 1, 2], [3, 4, 5]]
    assert np.load(tmp_path / "a.npy")[0, 0] == 0


def test_a_mapped_array_that_is_damaged(tmp_path: Path) -> None:
    file = tmp_path / "a.npy"
    np.save(file, np.arange(6.0))
    whole = file.read_bytes()
    for spoilt in (b"", whole[:-1], whole.replace(b"}", b" "), whole.replace(b"'<f8'", b"'O'  "), b"PK" + whole):
        file.write_bytes(spoilt)
        with pytest.raises(ValueError):  # noqa: PT011
            map_npy(file)
