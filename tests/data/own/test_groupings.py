"""What users say about classes: groups, and matrices of confusions."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from papi.data.own.groupings import read_groups, read_matrix
from papi.errors import UserError


def write(folder: Path, text: str, name: str = "groups.csv") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_groups_are_numbered_as_they_come(tmp_path: Path) -> None:
    path = write(tmp_path, "class,group\ncat,pet\ndog,pet\noak,tree\n")
    groups = read_groups(path, ("oak", "cat", "dog"))
    assert groups.tolist() == [1, 0, 0]
    assert groups.dtype == np.int64


@given(st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, max_size=6), st.randoms())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_classes_share_a_number_if_they_share_a_group(tmp_path: Path, groups: list[str], random: Random) -> None:
    names = [f"class{k}" for k in range(len(groups))]
    rows = [f"{name},{group}" for name, group in zip(names, groups, strict=True)]
    random.shuffle(rows)
    numbers = read_groups(write(tmp_path, "\n".join(["class,group", *rows])), tuple(names))
    for a in range(len(groups)):
        for b in range(len(groups)):
            assert (numbers[a] == numbers[b]) == (groups[a] == groups[b])
    assert set(numbers.tolist()) == set(range(len(set(groups))))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("class,group\ncat,pet\ndgo,pet\n", r"line 3: unknown class 'dgo': did you mean 'dog'"),
        ("class,group\ncat,pet\n", "has no group for the class 'dog'"),
        ("class,group\ncat,pet\ndog,pet\ncat,wild\n", r"line 4 assigns a second group to the class 'cat'"),
        ("class,groups\ncat,pet\n", "has no column 'group', .*did you mean 'groups'"),
    ],
)
def test_groups_that_do_not_fit(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=says):
        read_groups(write(tmp_path, text), ("cat", "dog"))


@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_matrix_in_either_format(tmp_path: Path, classes: int, seed: int) -> None:
    matrix = np.random.default_rng(seed).random((classes, classes))
    np.fill_diagonal(matrix, 1)
    np.save(tmp_path / "m.npy", matrix)
    write(tmp_path, "\n".join(",".join(map(repr, row)) for row in matrix.tolist()) + "\n\n", "m.csv")
    np.testing.assert_array_equal(read_matrix(tmp_path / "m.npy", classes), matrix)
    np.testing.assert_array_equal(read_matrix(tmp_path / "m.csv", classes), matrix)


def test_a_matrix_of_integers_becomes_one_of_probabilities(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.eye(3, dtype=np.int8))
    assert read_matrix(tmp_path / "m.npy", 3).dtype == np.float64


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1,0.5,0\n0,1,0\n0,0,1\n", "must contain 2 x 2 numbers"),
        ("1,0.5\n0,x\n", r"m.csv, line 2 must be a row of numbers"),
        ("1,0.5\n\n0\n", r"m.csv, line 3 has 1 numbers, but the first row has 2"),
        ("1,1.5\n0,1\n", r"row 1 must contain probabilities; got 1.5 in column 2"),
        ("1,-0.1\n0,1\n", r"row 1 must contain probabilities; got -0.1 in column 2"),
        ("1,nan\n0,1\n", r"row 1 must contain probabilities; got nan in column 2"),
        ("1,0.5\n0,0.9\n", "row 2 must have 1 on the diagonal"),
        ("", "must contain 2 x 2 numbers"),
    ],
)
def test_matrices_that_do_not_fit(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=says):
        read_matrix(write(tmp_path, text, "m.csv"), 2)


def test_matrices_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "m.npy").write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"m.npy cannot be read .*numpy.save, without objects"):
        read_matrix(tmp_path / "m.npy", 2)
    np.save(tmp_path / "m.npy", np.array([["a", "b"]] * 2))
    with pytest.raises(UserError, match=r"m.npy .* got <U1 of shape \(2, 2\)"):
        read_matrix(tmp_path / "m.npy", 2)
    with pytest.raises(UserError, match=r"other.csv cannot be read"):
        read_matrix(tmp_path / "other.csv", 2)
