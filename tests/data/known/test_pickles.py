"""Pickles are read without running what they ask for."""

import os
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import published_files as published
from papi.data.known.pickles import as_text, read_pickle
from papi.errors import UserError


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_texts_numbers_lists_and_arrays(protocol: int, tmp_path: Path) -> None:
    content = {"data": np.arange(6, dtype=np.uint8).reshape(2, 3), "labels": [1, 2], "names": ["a", "b"], "one": 1.5}
    (tmp_path / "file").write_bytes(pickle.dumps(content, protocol=protocol))
    found = read_pickle(tmp_path / "file")
    assert list(found) == list(content)
    np.testing.assert_array_equal(found["data"], content["data"])  # type: ignore[arg-type]
    assert found["labels"] == [1, 2]


def test_keys_of_python_2_are_texts(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(published.python2_pickle({"fine_labels": [3], "names": ["apple"]}))
    assert read_pickle(tmp_path / "file") == {"fine_labels": [3], "names": [b"apple"]}


class Runs:
    """Asks for a call when it is read."""

    def __init__(self, function: Any, *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Any, tuple[object, ...]]:
        return self.call


@pytest.mark.parametrize(
    "value",
    [
        Runs(os.system, "true"),
        Runs(eval, "1 + 1"),
        Runs(getattr, "x", "upper"),
        OrderedDict(a=1),
        np.random.default_rng(0),
        Path("x"),
    ],
    ids=["system", "eval", "getattr", "ordered dict", "generator", "path"],
)
def test_everything_else_is_refused(value: object, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(pickle.dumps({"data": value}))
    with pytest.raises(UserError, match=r"file tries to run code \(.*\), so it is not the published file: delete it"):
        read_pickle(tmp_path / "file")


def test_nothing_has_been_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(pickle.dumps({"data": Runs(os.mkdir, str(tmp_path / "made"))}))
    with pytest.raises(UserError, match="tries to run code"):
        read_pickle(tmp_path / "file")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is damaged"),
        (b"\x80\x02}q\x01(U\x04da", "is damaged"),
        (b"\x80\x02]q\x01.", "contains a list instead of a dict"),
        (b"\x8d\x00\x00\x00\x00\x00\x00\x00\x80", "is damaged"),  # a text of 2**63 bytes
    ],
)
def test_damaged_files(content: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UserError, match=rf"file {says}.* download"):
        read_pickle(tmp_path / "file")


@given(st.binary(max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_any_bytes_end_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UserError, match="file "):
        read_pickle(tmp_path / "file")


@given(st.integers(0, 400), st.integers(0, 255))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_one_wrong_byte_is_read_or_refused(tmp_path: Path, place: int, value: int) -> None:
    good = published.python2_pickle({"data": np.arange(20, dtype=np.uint8), "labels": list(range(20))})
    content = bytearray(good)
    content[place % len(content)] = value
    (tmp_path / "file").write_bytes(content)
    try:
        found = read_pickle(tmp_path / "file")
    except UserError:
        return
    assert all(isinstance(key, str) for key in found)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"file cannot be read \(No such file .*replace it with the published file"):
        read_pickle(tmp_path / "file")


def test_text_of_either_python() -> None:
    assert as_text("caf\u00e9") == "caf\u00e9"
    assert as_text("caf\u00e9".encode()) == "caf\u00e9"
    assert as_text(b"caf\xe9") == "caf\ufffd"
    assert as_text(7) == "7"


def test_an_array_with_columns_first(tmp_path: Path) -> None:
    array = np.asfortranarray(np.arange(6, dtype=np.uint8).reshape(2, 3))
    (tmp_path / "file").write_bytes(pickle.dumps({"data": array}, protocol=2))
    np.testing.assert_array_equal(read_pickle(tmp_path / "file")["data"], array)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02}r\xff\xff\xff\x7f.",  # an object with the number 2**31 - 1: a table of 16 gigabytes
        b"\x80\x05\x96\xff\xff\xff\xff\x00\x00\x00\x00.",  # a buffer of four gigabytes
        b"\x80\x02cnumpy\ndtype\nX\x02\x00\x00\x00u1\x85R(K\x03X\x01\x00\x00\x00|]NNJ\xff\xff\xff\xff"
        b"J\xff\xff\xff\xffJ\xff\xff\xff\x7ftb.",  # a type of bytes that is said to have fields and flags
    ],
)
def test_what_would_break_the_reader(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UserError, match="file "):
        read_pickle(tmp_path / "file")
    assert np.dtype("u1").fields is None


def test_arrays_of_other_types_are_refused(tmp_path: Path) -> None:
    for array in (np.arange(3), np.array(["a"]), np.array([{}], object), np.zeros(2, [("a", "u1")])):
        (tmp_path / "file").write_bytes(pickle.dumps({"data": array}, protocol=2))
        with pytest.raises(UserError, match="file "):
            read_pickle(tmp_path / "file")
