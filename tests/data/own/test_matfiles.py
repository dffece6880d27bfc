"""MATLAB files, as the collection of partial-label tables has them and as people save them."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import savemat
from scipy.sparse import csc_matrix, csr_matrix

import published_files as published
from papi.data.own.matfiles import read_mat, read_partial_mat
from papi.errors import UserError


@pytest.mark.parametrize("kind", [np.asarray, csc_matrix, csr_matrix])
def test_sparse_variables_become_dense(kind: type, tmp_path: Path) -> None:
    savemat(tmp_path / "m.mat", {"eye": kind(np.eye(3)), "text": "hello"})
    found = read_mat(tmp_path / "m.mat", ("eye",))
    np.testing.assert_array_equal(found["eye"], np.eye(3))
    assert not any(name.startswith("__") for name in found)


def test_a_missing_variable_is_named(tmp_path: Path) -> None:
    savemat(tmp_path / "m.mat", {"partial_targets": np.eye(3)})
    with pytest.raises(UserError, match=r"no variable 'partial_target', .*did you mean 'partial_targets'"):
        read_mat(tmp_path / "m.mat", ("partial_target",))


@given(st.integers(1, 8), st.integers(1, 4), st.integers(1, 5), st.booleans(), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_tables_read_back(
    tmp_path: Path, samples: int, columns: int, classes: int, sparse: bool, labelled: bool
) -> None:
    random = np.random.default_rng(samples * 100 + columns * 10 + classes)
    features = random.normal(size=(samples, columns))
    labels = random.integers(0, classes, samples)
    sets = (random.random((samples, classes)) < 0.4) | (np.arange(classes) == labels[:, None])
    target = np.eye(classes)[labels].T
    published.write_partial_mat(
        tmp_path / "m.mat",
        data=features,
        partial_target=csc_matrix(sets.T.astype(float)) if sparse else sets.T,
        target=target if labelled else None,
    )
    found_features, found_sets, found_labels = read_partial_mat(tmp_path / "m.mat")
    np.testing.assert_array_equal(found_features, features.astype(np.float32))
    np.testing.assert_array_equal(found_sets, sets)
    if labelled:
        assert found_labels is not None
        np.testing.assert_array_equal(found_labels, labels)
    else:
        assert found_labels is None


def test_a_matrix_that_is_turned_is_told_of(tmp_path: Path) -> None:
    published.write_partial_mat(tmp_path / "m.mat", data=np.zeros((5, 60)))
    with pytest.raises(UserError, match="5 rows in data, but 60 columns in partial_target: data must be N x d"):
        read_partial_mat(tmp_path / "m.mat")


def test_texts_are_no_features(tmp_path: Path) -> None:
    published.write_partial_mat(tmp_path / "m.mat", data=np.array(["one", "two"]))
    with pytest.raises(UserError, match=r"data in .* must be a matrix of numbers"):
        read_partial_mat(tmp_path / "m.mat")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"m.mat cannot be read"):
        read_mat(tmp_path / "m.mat", ())


def test_sparse_variables_that_are_too_large_or_lead_outside(tmp_path: Path) -> None:
    huge = csc_matrix((2**30, 2**20))
    savemat(tmp_path / "m.mat", {"huge": huge})
    with pytest.raises(UserError, match=r"m.mat .* does not fit into memory"):
        read_mat(tmp_path / "m.mat", ("huge",))
    wild = csc_matrix(np.eye(3))
    wild.indices[1] = 10**6
    savemat(tmp_path / "w.mat", {"wild": wild})
    with pytest.raises(UserError, match=r"w.mat"):
        read_mat(tmp_path / "w.mat", ("wild",))


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), min_size=1, max_size=3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@pytest.mark.filterwarnings("ignore")
def test_wrong_bytes_are_read_or_refused(tmp_path: Path, changes: list[tuple[int, int]]) -> None:
    published.write_partial_mat(tmp_path / "m.mat", 6, 2, 3)
    content = bytearray((tmp_path / "m.mat").read_bytes())
    for place, value in changes:
        content[place % len(content)] = value
    (tmp_path / "m.mat").write_bytes(content)
    try:
        features, sets, labels = read_partial_mat(tmp_path / "m.mat")
    except UserError:
        return
    assert len(features) == len(sets)
    assert labels is None or len(labels) == len(sets)
