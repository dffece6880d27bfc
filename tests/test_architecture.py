"""The order of the parts: nothing imports what stands below it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import papi

ROOT = Path(papi.__file__).parent
# Upper lines know nothing of lower ones. Modules on one line may import each other.
ORDER = [
    ["errors", "durable", "allocator", "npz"],
    ["lock"],
    ["types"],
    ["schedules", "randomness", "options"],
    ["config"],
    ["runfolder"],
    ["labels"],
    ["distributed"],
    ["losses"],
    ["state"],
    ["packed"],
    ["data"],
    ["networks"],
    ["methods"],
    ["presets"],
    ["optim", "metrics", "calibration", "checkpoint", "tally"],
    ["engine"],
    ["selection"],
    ["evaluator", "inference"],
    ["parent", "export", "checkup"],
    ["hub"],
    ["annotator"],
    ["preparation"],
    ["record", "assembly"],
    ["run"],
    ["targets", "decisions"],
    ["estimator"],
    ["experiments"],
    ["report"],
    ["cli"],
]
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
NO_TORCH = [
    "errors",
    "durable",
    "npz",
    "lock",
    "allocator",
    "options",
    "config",
    "runfolder",
    "presets",
    "metrics",
    "calibration",
    "data.dataset",
    "data.digest",
    "data.sources",
    "data.candidates",
    "preparation",
    "labels",
    "report",
    "cli",
]


def part(module: str) -> str:
    """`papi.data.views` → `data`."""
    return module.split(".")[1]


def imports(file: Path) -> set[str]:
    """Modules of the package that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from papi import engine` names a module, `from papi.engine import fit` names one by its path.
            found |= {f"papi.{a.name}" for a in node.names} if node.module == "papi" else {node.module}
    return {name for name in found if name.startswith("papi.") and part(name) != "__version__"}


FILES = sorted(file for file in ROOT.rglob("*.py") if file.parent != ROOT or not file.stem.startswith("__"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_nothing_imports_what_stands_below_it(file: Path) -> None:
    own = part("papi." + ".".join(file.relative_to(ROOT).with_suffix("").parts))
    assert own in RANK, f"{own} has no place in the order"
    for name in imports(file):
        assert RANK[part(name)] <= RANK[own], f"{own} must not import {name}"


def test_no_room_for_odds_and_ends() -> None:
    assert not [f for f in FILES if f.stem in {"utils", "common", "misc", "core", "hooks", "helpers"}]


def test_one_module_talks_to_other_processes() -> None:
    touching = {file.stem for file in FILES if _names_torch_distributed(ast.parse(file.read_text()))}
    assert touching == {"distributed"}


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
