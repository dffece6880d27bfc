"""The bill of materials: what an installation of PaPi consists of."""

import json
from importlib.metadata import distribution
from pathlib import Path

import pytest

import papi
from recipes import sbom


@pytest.fixture(scope="module")
def bill() -> dict:
    return sbom.bill()


def test_it_is_about_this_version(bill: dict) -> None:
    about = bill["metadata"]["component"]
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    assert about["name"] == "papi-pll"
    assert about["purl"] == f"pkg:pypi/papi-pll@{papi.__version__}"


def test_every_package_has_its_version(bill: dict) -> None:
    listed = {part["name"]: part["version"] for part in bill["components"]}
    for name in ("torch", "numpy", "scipy", "scikit-learn", "pillow", "safetensors", "cyclopts", "jinja2"):
        assert listed[name] == distribution(name).version
    assert "markupsafe" in listed, "what Jinja needs belongs to it"
    assert not {"pytest", "mypy", "ruff", "bandit", "onnx", "pyarrow"} & set(listed)


def test_what_depends_on_what(bill: dict) -> None:
    known = {part["bom-ref"] for part in (bill["metadata"]["component"], *bill["components"])}
    depends = {entry["ref"]: entry["dependsOn"] for entry in bill["dependencies"]}
    assert set(depends) == known
    assert all(set(others) <= known for others in depends.values())
    jinja = next(ref for ref in known if ref.startswith("pkg:pypi/jinja2@"))
    assert [ref.partition("@")[0] for ref in depends[jinja]] == ["pkg:pypi/markupsafe"]


def test_the_same_packages_give_the_same_bill(tmp_path: Path, bill: dict) -> None:
    sbom.main(tmp_path / "new" / "sbom.json")
    assert json.loads((tmp_path / "new" / "sbom.json").read_text()) == bill
