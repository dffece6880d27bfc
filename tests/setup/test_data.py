"""A run is not written among the classes of its own data."""

from pathlib import Path

import pytest

import published_files as published
from papi.config import CandidatesConfig, RunConfig
from papi.errors import UserError
from papi.setup.data import require_apart


def test_a_run_among_the_classes_is_refused(tmp_path: Path) -> None:
    published.write_images(tmp_path / "photos", ["cat/a.png", "dog/a.png"])
    config = RunConfig(data=str(tmp_path / "photos"))
    (tmp_path / "elsewhere").symlink_to("photos")
    for out in ("photos/run", "photos/cat/run", "photos", "elsewhere/run"):
        with pytest.raises(UserError, match="where each subfolder is a class: choose a folder outside"):
            require_apart(config, tmp_path / out)
    for out in ("run", "photos-2/run", "photos/../run"):
        require_apart(config, tmp_path / out)


@pytest.mark.parametrize("table", ["metadata.csv", "train/metadata.jsonl"])
def test_a_run_beside_a_table_is_not(table: str, tmp_path: Path) -> None:
    published.write_images(tmp_path, ["train/a.png", "train/b.png"])
    (tmp_path / table).write_text("")
    require_apart(RunConfig(data=str(tmp_path)), tmp_path / "run")


def test_data_by_name_or_with_a_table_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published.write_images(tmp_path, ["digits/cat/a.png", "digits/dog/a.png"])
    monkeypatch.chdir(tmp_path)
    require_apart(RunConfig(data="digits"), Path("digits/run"))  # the known dataset, not the folder
    require_apart(RunConfig(data="./digits", candidates=CandidatesConfig(file=Path("t.csv"))), Path("digits/run"))
    with pytest.raises(UserError, match="choose a folder outside"):
        require_apart(RunConfig(data="./digits"), Path("digits/run"))
