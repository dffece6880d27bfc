"""Code that a file names: used if it is in this process already, never imported because of the name."""

import sys
from pathlib import Path

import pytest

from outside_networks import NETWORK, new_module
from papi.files.outside import needs_import
from papi.methods import METHODS
from papi.networks import NETWORKS, build


@pytest.mark.parametrize("name", [*NETWORKS, *METHODS, "no such name", ""])
def test_names_of_tables_need_none(name: str) -> None:
    assert not needs_import(name)


@pytest.mark.parametrize("name", [NETWORK, "outside_networks:Tied", "papi.networks.small:SmallResNet"])
def test_what_is_imported_needs_none(name: str) -> None:
    build("small", (1, 8, 8), 2, project=False)  # imports its module
    assert not needs_import(name)


def test_until_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = new_module(tmp_path, "def mine(shape): ...", monkeypatch)
    assert needs_import(f"{name}:mine")
    assert name not in sys.modules, "the question itself imports nothing"
    __import__(name)
    assert not needs_import(f"{name}:mine")


@pytest.mark.parametrize("name", ["os:system", "builtins:exec", "sys:exit", "shutil:rmtree", "__main__:main"])
def test_what_is_always_imported_does_not_count(name: str) -> None:
    assert needs_import(name)


@pytest.mark.parametrize("name", ["outside_networks:nn", "outside_networks:WIDTH", "outside_networks:Path"])
def test_what_a_module_only_uses_does_not_count(name: str) -> None:
    assert needs_import(name)


@pytest.mark.parametrize("name", [":", ":main", "..:x", "outside_networks:", "outside_networks:Tied.forward", "a:b:c"])
def test_names_that_lead_nowhere(name: str) -> None:
    assert needs_import(name)


def test_a_package_may_hand_on_its_own() -> None:
    assert not needs_import("papi.networks:build")


@pytest.mark.parametrize("name", ["papi:load", "papi.cli:main", "papi.files.durable:replacing"])
def test_of_this_package_networks_and_methods_alone(name: str) -> None:
    import papi.cli  # noqa: F401

    assert needs_import(name)
