from pathlib import Path

import numpy as np
import pytest

from papi.errors import UserError
from papi.runs.folder import RunFolder, identity_hash


def test_rows(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.read_rows() == []
    folder.write_rows([{"epoch": 0}])
    folder.append_row({"epoch": 1})
    assert folder.read_rows() == [{"epoch": 0}, {"epoch": 1}]
    with folder.metrics_file.open("a") as file:
        file.write('{"epoch": 2, "lo')  # a kill in the middle of a line
    assert folder.read_rows() == [{"epoch": 0}, {"epoch": 1}]


def test_arrays(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_arrays(folder.arrays_file, {"a": np.arange(3)})
    np.testing.assert_array_equal(folder.read_arrays(folder.arrays_file)["a"], np.arange(3))
    folder.arrays_file.write_bytes(b"PK half")
    with pytest.raises(UserError, match=r"arrays\.npz cannot be read"):
        folder.read_arrays(folder.arrays_file)


@pytest.mark.parametrize("content", ['{"identity": {', "[]", "{}", ""])
def test_a_damaged_config_is_named(tmp_path: Path, content: str) -> None:
    folder = RunFolder(tmp_path)
    folder.config_file.write_text(content)
    with pytest.raises(UserError, match=r"config\.json is damaged"):
        folder.read_config()


def test_another_run_is_refused_with_the_differences(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_config({"identity": {"seed": 0, "epochs": 3, "threads": 1}})
    folder.refuse_other_run({"seed": 0, "epochs": 3, "threads": 2})
    with pytest.raises(UserError, match="seed is 1 here and 0 there"):
        folder.refuse_other_run({"seed": 1, "epochs": 3})
    with pytest.raises(UserError, match="a longer run starts anew"):
        folder.refuse_other_run({"seed": 0, "epochs": 9})


def test_hash_ignores_what_has_no_effect() -> None:
    assert identity_hash({"seed": 1, "threads": 1}) == identity_hash({"seed": 1, "threads": 2})
    assert identity_hash({"seed": 1}) != identity_hash({"seed": 2})


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        RunFolder(tmp_path / "file" / "run").create()
