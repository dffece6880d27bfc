"""What is installed works away from the source tree, and what is published as source passes its own tests."""

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

import papi

ROOT = Path(__file__).parents[1]
DEPENDENCIES = [path for path in sys.path if path.endswith("site-packages")]


def build(kind: str, source: Path, folder: Path) -> Path:
    """Build an archive with this environment's hatchling."""
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(folder), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = folder.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


def members(sdist: Path) -> set[str]:
    """The files in an sdist, without its one folder."""
    with tarfile.open(sdist) as archive:
        names = [Path(name) for name in archive.getnames()]
    assert len({name.parts[0] for name in names}) == 1
    return {name.relative_to(name.parts[0]).as_posix() for name in names}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


def unpack(sdist: Path, folder: Path) -> Path:
    """Return the root of the unpacked sources."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    return root


def make_environment(folder: Path, package: Path) -> Path:
    """A new environment with the package. Its dependencies are those of this one."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    site = next((folder / "lib").glob("python*/site-packages"))
    (site / "dependencies.pth").write_text("".join(f"{path}\n" for path in DEPENDENCIES))
    install = [python, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--force-reinstall"]
    done = subprocess.run([*install, str(package)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return python


def tracked() -> set[str]:
    """The files of the project, as git knows them."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    return {name for name in names if name and (ROOT / name).is_file()}


def test_the_wheel_holds_the_package_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    (metadata,) = {name.split("/")[0] for name in names} - {"papi"}
    assert metadata.endswith(".dist-info")
    installed = {name for name in names if name.startswith("papi/")}
    ignored = {"__pycache__", ".mypy_cache"}
    source = ROOT / "src"
    here = {file.relative_to(source) for file in source.glob("papi/**/*") if file.is_file()}
    assert installed == {file.as_posix() for file in here if not ignored & set(file.parts)}
    assert {"papi/py.typed", "papi/data/known/fashion_mini.npz"} <= installed
    assert wheel.stat().st_size < 9e6


def test_how_our_results_are_made_is_not_installed(wheel: Path) -> None:
    """The package knows no page of this repository and no module beside it."""
    with zipfile.ZipFile(wheel) as archive:
        code = {name: archive.read(name).decode() for name in archive.namelist() if name.endswith(".py")}
    assert not [name for name, text in code.items() if re.search(r"""["']docs/""", text)]
    assert not [name for name, text in code.items() if re.search(r"^\s*(from|import) recipes\b", text, re.MULTILINE)]


NEEDED = [
    "pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CITATION.cff", "LICENSE",
    "NOTICE", "Makefile", "constraints.txt", ".ci/run", "src/papi/py.typed", "src/papi/data/known/fashion_mini.npz",
    "recipes/results.py", "benchmarks/__main__.py", "examples/add_a_method.py", "docs/results.md",
    "docs/results/uniform.jsonl", "tests/conftest.py", "tests/experiments/paper_numbers.csv", "PKG-INFO",
]  # fmt: skip


@pytest.mark.parametrize("name", NEEDED)
def test_the_sdist_holds_what_its_tests_need(sdist: Path, name: str) -> None:
    assert name in members(sdist)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the sources are not a checkout")
def test_the_sdist_holds_every_file_of_the_project_and_no_other(sdist: Path) -> None:
    assert members(sdist) - {"PKG-INFO"} == tracked()


def test_an_sdist_of_an_sdist_is_the_same(sdist: Path, tmp_path: Path) -> None:
    """An environment in the folder is not taken for files of the project."""
    root = unpack(sdist, tmp_path / "unpacked")
    stray = root / ".venv" / "lib" / "package" / "tests"
    stray.mkdir(parents=True)
    (stray / "test_stray.py").touch()
    (stray.parent / "README.md").touch()
    assert members(build("sdist", root, tmp_path)) == members(sdist)


def test_a_wheel_trains_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    # The heavy dependencies come from this environment; PaPi itself only from the wheel.
    environment = tmp_path / "venv"
    python = make_environment(environment, wheel)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    arguments = ["train", "--limit", "200", "--epochs", "1", "--threads", "1", "--out", "run"]
    done = subprocess.run(
        [environment / "bin" / "papi", *arguments], cwd=elsewhere, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    where = [python, "-c", "import papi; print(papi.__file__)"]
    located = subprocess.run(where, cwd=elsewhere, capture_output=True, text=True, check=True).stdout
    assert located.startswith(str(environment))
    names = papi.load(elsewhere / "run").predict(np.zeros((2, 28, 28), np.uint8))
    assert names.shape == (2,)


def test_importing_the_package_loads_nothing_heavy() -> None:
    """`import papi` takes a moment: what takes seconds is loaded when it is used."""
    heavy = ["torch", "numpy", "scipy", "sklearn", "matplotlib", "pandas", "cyclopts", "rich", "PIL", "jinja2"]
    code = f"import sys, papi; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_the_tests_pass_from_an_unpacked_sdist(sdist: Path, tmp_path: Path) -> None:
    """Those that read files of the project: pages, rows, examples, recipes."""
    root = unpack(sdist, tmp_path / "unpacked")
    python = make_environment(tmp_path / "venv", root)
    parts = ["tests/docs", "tests/experiments", "tests/recipes", "tests/examples", "tests/test_security.py"]
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *parts]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:]
