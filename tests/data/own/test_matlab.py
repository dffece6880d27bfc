"""MATLAB's format as SciPy writes it, read back to the same numbers; damaged files end in a ValueError."""

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.io import loadmat, savemat
from scipy.sparse import csc_matrix

from papi.data.own.matlab import read_variables

MOST = 10**8
TYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"]


def saved(compress: bool = False, **variables: Any) -> bytes:
    stream = io.BytesIO()
    savemat(stream, variables, do_compression=compress)
    return stream.getvalue()


@given(
    st.sampled_from(TYPES).flatmap(
        lambda kind: arrays.arrays(np.dtype(kind), arrays.array_shapes(min_dims=2, max_dims=4, min_side=0, max_side=5))
    ),
    st.booleans(),
)
def test_matrices_are_read_as_scipy_reads_them(matrix: np.ndarray, compress: bool) -> None:
    content = saved(compress, first=np.eye(2), m=matrix, after=np.float32(3))
    found = read_variables(content, MOST)
    assert list(found) == ["first", "m", "after"]
    expected = loadmat(io.BytesIO(content))
    for name, value in found.items():
        np.testing.assert_array_equal(value, expected[name])
        assert value is not None
        assert value.dtype == expected[name].dtype


@given(arrays.arrays(np.float64, arrays.array_shapes(min_dims=2, max_dims=2, max_side=8)), st.booleans())
def test_sparse_matrices(matrix: np.ndarray, compress: bool) -> None:
    matrix[matrix < 0] = 0
    for kind in (np.float64, bool):
        sparse = csc_matrix(matrix.astype(kind))
        found = read_variables(saved(compress, m=sparse), MOST)["m"]
        np.testing.assert_array_equal(found, sparse.toarray())


def test_what_is_no_matrix_of_numbers_is_named_only() -> None:
    content = saved(text="hello", cell=np.array([1, "a"], object), both=np.array([1j]), struct={"a": 1}, x=np.eye(2))
    found = read_variables(content, MOST)
    assert [name for name, value in found.items() if value is None] == ["text", "cell", "both", "struct"]
    np.testing.assert_array_equal(found["x"], np.eye(2))


@pytest.mark.parametrize("content", [b"", b"MATLAB", bytes(128), b"x" * 500])
def test_other_files(content: bytes) -> None:
    with pytest.raises(ValueError, match="does not have the header"):
        read_variables(content, MOST)


def test_another_version() -> None:
    content = bytearray(saved(x=np.eye(2)))
    content[125] = 2
    with pytest.raises(NotImplementedError):
        read_variables(bytes(content), MOST)


def test_nothing_is_reserved_that_a_file_only_promises() -> None:
    with pytest.raises(ValueError, match="does not fit into memory"):
        read_variables(saved(m=csc_matrix((2**30, 2**20))), MOST)
    with pytest.raises(ValueError, match="does not fit into memory"):
        read_variables(saved(compress=True, m=np.zeros((1000, 1000))), 10_000)


DENSE = saved(data=np.arange(12.0).reshape(3, 4), small=np.uint8(7))
SPARSE = saved(m=csc_matrix(np.eye(4)))
PACKED = saved(compress=True, data=np.arange(12.0).reshape(3, 4))


@given(
    st.sampled_from([DENSE, SPARSE, PACKED]),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4),
    st.integers(0, 10_000),
)
@settings(max_examples=500)
def test_any_damage_is_read_or_is_a_value_error(content: bytes, changes: list[tuple[int, int]], end: int) -> None:
    damaged = bytearray(content)
    for place, value in changes:
        damaged[place % len(damaged)] = value
    try:
        found = read_variables(bytes(damaged[: end if end > 128 else None]), MOST)
    except (ValueError, NotImplementedError):
        return
    assert all(value is None or value.nbytes <= MOST for value in found.values())
