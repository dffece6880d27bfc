"""The order of the rooms: nothing imports what stands below it, also inside a room."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import papi

ROOT = Path(papi.__file__).parent
# One rank for each room and each module at the top. Upper ones know nothing of lower ones.
ORDER = [
    "errors", "types", "randomness", "config", "files", "distributed", "networks", "methods", "data", "runs",
    "training", "inference", "setup", "train", "export", "estimator", "experiments", "report", "cli",
]  # fmt: skip
INSIDE_DATA = [
    "ahead",
    "packed_rows",
    "dataset",
    "candidates",
    "views",
    "images",
    "own",
    "known",
    "digest",
    "load",
    "loader",
]
NO_TORCH = [
    "errors", "files.durable", "files.npz", "files.lock", "files.places", "files.reading", "files.outside",
    "config", "runs.folder", "runs.labels",
    "setup.data", "training.metrics", "training.calibration", "training.allocator", "data.dataset", "data.digest",
    "data.candidates", "data.load", "data.known.sources", "networks.preparation", "report", "cli",
]  # fmt: skip
AT_THE_TOP = 10  # modules; everything else has a room


def name_of(file: Path) -> str:
    """`src/papi/data/views/images.py` → `data.views.images`; a room is named like its folder."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(file): file for file in sorted(ROOT.rglob("*.py")) if file.parent != ROOT or file.stem[:2] != "__"}


def nodes(module: str) -> Iterator[ast.AST]:
    """The syntax of a module, without what only type checkers read."""
    waiting: list[ast.AST] = [ast.parse(FILES[module].read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        waiting += ast.iter_child_nodes(node)


@cache
def imports(module: str) -> frozenset[str]:
    """Modules of the package that a module imports, also inside functions."""
    found = set()
    for node in nodes(module):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from papi.data import loader` names a module, `from papi.data.loader import Loader` is in one.
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    names = {name.removeprefix("papi.") for name in found if name.startswith("papi.")}
    return frozenset(name for name in names if name in FILES and name != module)


@pytest.mark.parametrize("module", FILES)
def test_nothing_imports_what_stands_below_it(module: str) -> None:
    room = module.split(".")[0]
    assert room in ORDER, f"{room} has no place in the order"
    for name in imports(module):
        assert ORDER.index(name.split(".")[0]) <= ORDER.index(room), f"{module} must not import {name}"


@pytest.mark.parametrize("module", [name for name in FILES if name.startswith("data.")])
def test_the_order_inside_the_data(module: str) -> None:
    own = INSIDE_DATA.index(module.split(".")[1])
    for name in imports(module):
        if name.startswith("data."):
            assert INSIDE_DATA.index(name.split(".")[1]) <= own, f"{module} must not import {name}"


def test_there_is_an_order_inside_every_room() -> None:
    """No module imports itself through others, in no room and across none; imports inside functions count."""
    graph = {module: {name for name in imports(module) if name != module.rpartition(".")[0]} for module in FILES}
    list(TopologicalSorter(graph).static_order())  # raises CycleError with the modules in question


def test_few_modules_at_the_top() -> None:
    assert len(list(ROOT.glob("*.py"))) <= AT_THE_TOP


@pytest.mark.parametrize("room", [path.parent for path in ROOT.rglob("__init__.py") if path.parent != ROOT])
def test_every_room_says_what_lives_there(room: Path) -> None:
    told = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
    assert "\n\n" in told, f"{room.name}/__init__.py says what lives there, and below what it may import"


def test_no_room_for_odds_and_ends() -> None:
    assert not {name.rpartition(".")[2] for name in FILES} & {"utils", "common", "misc", "core", "hooks", "helpers"}


def test_one_module_talks_to_other_processes() -> None:
    assert {name for name in FILES if _names_torch_distributed(ast.parse(FILES[name].read_text()))} == {"distributed"}


def _names_torch_distributed(tree: ast.AST) -> bool:
    """Whether a file imports torch.distributed, in any form, or reaches it through torch."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            named = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            named = [ast.unparse(node)]
        else:
            continue
        if any(f"{name}.".startswith("torch.distributed.") for name in named):
            return True
    return False


@pytest.mark.parametrize("module", NO_TORCH)
def test_starts_without_torch(module: str) -> None:
    code = f"import sys, papi.{module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_help_answers_at_once() -> None:
    """`papi --help` imports little: counted in modules, because seconds depend on the machine."""
    code = "import sys, papi.cli; print(*(m for m in ('torch', 'numpy', 'matplotlib', 'scipy') if m in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert loaded == []
