"""What SECURITY.md promises: no code out of files, nothing outside of folders, names are only text."""

import ast
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import papi
from command import papi_exit_code
from papi.data.known.published import Remote
from papi.data.known.sources import SOURCES
from papi.report import read_run, run_page
from papi.runs.folder import RunFolder
from run_folders import write_run

ROOT = Path(__file__).parents[1]
SOURCE = Path(papi.__file__).parent
CODE_LOADERS = {
    "pickle": {"load", "loads", "Unpickler"},
    "_pickle": {"load", "loads", "Unpickler"},
    "torch": {"load"},
    "joblib": {"load"},
    "marshal": {"load", "loads"},
    "shelve": {"open"},
    "dill": {"load", "loads"},
    "cloudpickle": {"load", "loads"},
    "yaml": {"load", "unsafe_load"},
    "builtins": {"eval", "exec", "compile"},
    "os": {"system", "popen"},
}
# The places where a pickle is read: two admit tensors and plain values, the other the few names of CIFAR's files.
GUARDED = {
    ("runs/checkpoint.py", "torch.load"),
    ("networks/weights.py", "torch.load"),
    ("data/known/pickles.py", "pickle.Unpickler"),
}


def dotted(node: ast.expr) -> str:
    """`pickle.load` of the expression that says so."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def code_loaders(file: Path) -> Iterator[str]:
    """What a file uses that could run code out of data, under whatever name it was imported."""
    tree = ast.parse(file.read_text())
    names = {name: f"builtins.{name}" for name in CODE_LOADERS["builtins"]}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {(each.asname or each.name): each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {(each.asname or each.name): f"{node.module}.{each.name}" for each in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            first, *rest = dotted(node).split(".")
            module, _, function = ".".join([names.get(first, ""), *rest]).rpartition(".")
            if function in CODE_LOADERS.get(module, ()):
                yield f"{module}.{function}"


def test_no_code_is_loaded_outside_the_guarded_places() -> None:
    found = {(str(file.relative_to(SOURCE)), use) for file in SOURCE.rglob("*.py") for use in code_loaders(file)}
    assert found == GUARDED


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import pickle\npickle.load(f)", "pickle.load"),
        ("import pickle as p\np.loads(b)", "pickle.loads"),
        ("from pickle import load as read\nread(f)", "pickle.load"),
        ("from torch import load\nload(f)", "torch.load"),
        ("eval(text)", "builtins.eval"),
    ],
)
def test_the_search_finds_what_it_looks_for(code: str, found: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(code)
    assert found in list(code_loaders(tmp_path / "module.py"))


def calls(name: str) -> Iterator[ast.Call]:
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and dotted(node.func) == name:
                yield node


def test_torch_load_takes_weights_only() -> None:
    options = [{word.arg: ast.unparse(word.value) for word in call.keywords} for call in calls("torch.load")]
    assert options
    assert all(each.get("weights_only") == "True" for each in options)


def test_numpy_loads_no_objects() -> None:
    options = [{word.arg: ast.unparse(word.value) for word in call.keywords} for call in calls("np.load")]
    assert options
    assert all(each.get("allow_pickle") == "False" for each in options)


def test_arrays_with_objects_are_refused(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path.touch, (tmp_path / "trace",))

    np.savez(tmp_path / "mine.npz", images=np.array([Evil()] * 4, object), labels=np.arange(4))
    with zipfile.ZipFile(tmp_path / "mine.npz") as opened:
        assert opened.namelist() == ["images.npy", "labels.npy"]
    assert papi_exit_code("train", "--data", tmp_path / "mine.npz", "--out", tmp_path / "run") == 2
    assert not (tmp_path / "trace").exists()


# Published over http alone: what arrives is compared with the published checksum before anything reads it.
HTTP_ONLY = ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/", "http://ufldl.stanford.edu/housenumbers/")
REMOTES = [remote for source in SOURCES.values() for remote in source.remotes]


@pytest.mark.parametrize("remote", REMOTES, ids=lambda remote: str(remote.target))
def test_downloads_are_encrypted_or_named_here_and_have_a_checksum(remote: Remote) -> None:
    assert remote.url.startswith(("https://", *HTTP_ONLY))
    assert len(bytes.fromhex(remote.md5)) == 16
    assert not Path(remote.target).is_absolute()
    assert ".." not in Path(remote.target).parts


EVIL = (
    "\x1b[2J\x1b]0;owned\x07clear",
    "[red]markup[/red] :bug:",
    "$\\frac{$",
    "\u202egpj.exe",
    "<img src=x onerror=1>",
)


def assert_harmless(text: str) -> None:
    bad = {character for character in text if not character.isprintable() and character != "\n"}
    assert not bad, f"the terminal would obey {bad}"


def test_the_terminal_shows_names_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Classes, data, and the folder of the run have names that would clear the screen."""
    path = tmp_path / "\x1b[31m[bold]run"
    write_run(path, names=EVIL)
    data = path.with_name("data-known.npz")
    new = tmp_path / "\x1b[32mnew"
    commands = {
        ("train", "--data", data, "--out", new, "--epochs", 1, "--batch-size", 60, "--threads", 1): 0,
        ("evaluate", new): 0,
        ("doctor", new): 0,
        ("labels", new): 0,
        ("labels", new, "--out", data / "\x1b[33m"): 2,
        ("watch", new): 0,
        ("report", path, "--out", tmp_path / "\x1b[34mpage.html"): 0,
        ("compare", path, new): 0,
        ("predict", new, data, "--out", tmp_path / "\x1b[37mpredicted.csv"): 0,
        ("check", data): 0,
        ("check", tmp_path / "\x1b[35mmissing.npz"): 2,
        ("datasets", "cifar10", "--data-dir", tmp_path / "\x1b[36mdata"): 0,
    }
    said = ""
    for command, code in commands.items():
        assert papi_exit_code(*command) == code, command
        out, err = capsys.readouterr()
        assert_harmless(out + err)
        said += out
    assert "[red]markup[/red] :bug:" in said, "brackets and colons are not obeyed either"


def test_there_is_one_way_to_the_terminal() -> None:
    """What the console of `terminal.py` cleans, no command may go round."""
    makers = {file.name for file in SOURCE.rglob("*.py") if re.search(r"Console\(|rich\.print", file.read_text())}
    assert makers == {"terminal.py"}


def test_the_page_shows_names_as_text(tmp_path: Path) -> None:
    write_run(tmp_path / "run", names=EVIL)
    page = run_page(read_run(tmp_path / "run"))
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page
    assert not {character for character in page if ord(character) < 32} - {"\n", "\t"}


def test_names_of_files_are_text(tmp_path: Path) -> None:
    folder: RunFolder = write_run(tmp_path / "run")
    sets = folder.read_sets()
    names = np.array([f"<b>{k}</b>\x1b[2J\x00.png" for k in range(len(sets.candidates))])
    folder.write_sets(replace(sets, file_names=names))
    page = run_page(read_run(folder.path))
    assert "<b>0</b>" not in page
    assert not {character for character in page if ord(character) < 32} - {"\n", "\t"}


def test_the_promises_are_written_down() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    for url in HTTP_ONLY:
        assert url.split("/")[2] in text
