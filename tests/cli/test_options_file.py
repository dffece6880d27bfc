"""papi.toml: the options of `papi train` in a file."""

from pathlib import Path

import pytest

from command import papi_exit_code
from papi.cli.options_file import option_names
from papi.config import RunConfig
from papi.runs.folder import RunFolder
from toy_data import write_toy_npz

Out = pytest.CaptureFixture[str]
WHOLE = """
data = "toy.npz"
epochs = 2
threads = 1
out = "run"
calibrate = true
"data.holdout" = 0.1
optim.lr = 0.01
option = ["temperature=0.5"]
[candidates]
flip_rate = 0.3
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data, in which commands are given."""
    write_toy_npz(tmp_path / "toy.npz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_command_without_arguments_takes_its_options_from_the_file(here: Path, capsys: Out) -> None:
    Path("papi.toml").write_text(WHOLE)
    assert papi_exit_code("train", "--epochs", 1, "--seed", 3) == 0
    assert "Options from papi.toml: data=toy.npz" in capsys.readouterr().out
    config = RunFolder(Path("run")).read_run_config()
    assert (config.data, config.calibrate, config.data_holdout, config.threads) == ("toy.npz", True, 0.1, 1)
    assert (config.optim.lr, config.candidates.flip_rate) == (0.01, 0.3)
    assert config.given_options["temperature"] == "0.5"
    assert (config.epochs, config.seed) == (1, 3)  # what is typed comes first


def test_checking_takes_what_it_knows_from_the_same_file(here: Path, capsys: Out) -> None:
    Path("papi.toml").write_text(WHOLE)
    assert papi_exit_code("check") == 0
    assert "96 images" in capsys.readouterr().out
    Path("papi.toml").unlink()
    assert papi_exit_code("check") == 2
    assert "no data to check" in capsys.readouterr().err


def test_another_file_or_none(here: Path, capsys: Out) -> None:
    Path("papi.toml").write_text("epochs = 0")
    Path("mine.toml").write_text('data = "toy.npz"\nlimit = 7')
    assert papi_exit_code("train", "--options-file", "mine.toml", "--limit", 1) == 2
    assert "--limit must be 2 or more; got 1" in capsys.readouterr().err
    assert papi_exit_code("train", "--options-file", "none", "--epochs", -1) == 2
    assert "--epochs must be 1 or more; got -1" in capsys.readouterr().err
    assert papi_exit_code("train", "--options-file", "absent.toml") == 2
    assert "absent.toml cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("epchs = 3", "did you mean 'epochs'?"),
        ('candidates.fil = "a.csv"', "did you mean 'candidates.file'?"),
        ("[optim]\nlearning-rate = 1", "unknown option 'optim.learning-rate'"),
        ("epochs = 'ten'", "epochs in papi.toml: expected a whole number; got ten"),
        ("epochs = 0", "--epochs must be 1 or more"),
        ("epochs = [1, 2]", "epochs must be a string, a number, true or false; got [1, 2]"),
        ("method = ''", "method must be a string"),
        ("option = 3", "option must be a table or a list"),
        ("select = 'best'", "select"),
        ("epochs =", "cannot be read as TOML"),
        ('data = "x"\ndata.size = 3', '"data.size" = 64'),
        ("a" + ".a" * 5000 + " = 1", "unknown option"),
        ("epochs = " + "[" * 100_000, "cannot be read as TOML"),
        ('method = "evil:Method"', "only allowed on the command line"),
        ('network = "os:system"', "only allowed on the command line"),
        ('candidates.annotator = "evil:network"', "only allowed on the command line"),
    ],
)
def test_what_is_wrong_in_the_file_is_told(here: Path, text: str, says: str, capsys: Out) -> None:
    Path("papi.toml").write_text(text)
    assert papi_exit_code("train") != 0
    told = capsys.readouterr().err
    assert says in " ".join(told.replace("│", " ").split())
    assert "Traceback" not in told
    assert sorted(each.name for each in here.iterdir()) == ["papi.toml", "toy.npz"]


def test_a_file_that_is_none(here: Path, capsys: Out) -> None:
    Path("papi.toml").mkdir()
    assert papi_exit_code("train") == 2
    assert "it is a folder" in capsys.readouterr().err
    Path("papi.toml").rmdir()
    Path("papi.toml").write_bytes(b"\xff")
    assert papi_exit_code("train") == 2
    assert "cannot be read" in capsys.readouterr().err


def test_other_commands_do_not_read_it(here: Path, capsys: Out) -> None:
    Path("papi.toml").write_text("nonsense")
    assert papi_exit_code("methods") == 0


def test_every_option_of_a_run_can_be_a_key() -> None:
    names = option_names()
    assert {"data", "data-dir", "data.size", "candidates.file", "optim.weight-decay", "checkpoint.every"} <= set(names)
    assert len(names) == len(set(names)) > len(RunConfig.__dataclass_fields__)
