"""Every number that is shown as the paper's stands in the paper."""

import os
import re
from pathlib import Path

import pytest

from papi.experiments import SUITES
from papi.experiments.paper import FEW, MANY
from papi.experiments.suites import Published

ROOT = Path(__file__).parents[2]
PAPER = Path(os.environ.get("PAPI_PAPER_TEX", ROOT.parent / "shared/spec/paper.tex"))
pytestmark = pytest.mark.skipif(not PAPER.exists(), reason="the paper's source is not here: set PAPI_PAPER_TEX")

NUMBER = re.compile(r"([\d.]+) \$\\pm\$ ([\d.]+)\\%")
Rows = list[tuple[str, list[Published]]]


def table(label: str) -> str:
    """The source of the table with this label, between its rules."""
    before = PAPER.read_text().split(rf"\label{{{label}}}")[0]
    return before.rsplit(r"\toprule", 1)[1].split(r"\bottomrule")[0]


def rows(source: str) -> Rows:
    """The name and the numbers of each row that has numbers: the name is the last cell before them."""
    found = []
    for line in source.split(r"\\"):
        numbers = [Published(float(mean), float(std)) for mean, std in NUMBER.findall(line)]
        if numbers:
            named = [cell for cell in line.split("&") if not NUMBER.search(cell)][-1]
            plain = re.sub(r"\\midrule|\\cellcolor\{\w+\}|\\emph|\(ours\)|[{}]", "", named)
            found.append((plain.replace(r"$\times$", "×").strip(), numbers))
    return found


def ours(suite: str, place: int = 0) -> dict[tuple[str, str, str], Published]:
    return SUITES["paper"][suite].tables[place].published


@pytest.mark.parametrize(
    ("label", "place", "rates", "datasets"),
    [
        ("tab:benchmark_result1", 0, FEW, ["Fashion-MNIST", "SVHN", "CIFAR-10", "CIFAR-100-H"]),
        ("tab:benchmark_result2", 1, MANY, ["CIFAR-100", "Mini-Imagenet"]),
    ],
)
def test_uniform(label: str, place: int, rates: tuple[float, ...], datasets: list[str]) -> None:
    theirs = {}
    blocks = re.split(r"\\multirow\{8\}\*", table(label))[1:]
    for block in blocks:
        data = block[1 : block.index("}")]
        for name, numbers in rows(block):
            repeated = numbers * 4 if name == "Supervised" else numbers
            for rate, number in zip(rates, repeated, strict=True):
                theirs[name, data, f"q = {rate:g}"] = number
    assert [block[1 : block.index("}")] for block in blocks] == datasets
    assert len(theirs) == 8 * 4 * len(datasets)
    assert ours("uniform", place) == theirs


def test_instance_dependent() -> None:
    datasets = ["Fashion-MNIST", "SVHN", "CIFAR-10", "CIFAR-100"]
    theirs = {
        (name, data, "instance-dependent"): number
        for name, numbers in rows(table("tab:instance_dependent_result1"))
        for data, number in zip(datasets, numbers, strict=True)
    }
    assert len(theirs) == 8 * 4
    assert ours("instance-dependent") == theirs


@pytest.mark.parametrize(
    ("suite", "label", "columns", "count"),
    [
        (
            "ablation",
            "tab:variants_result1",
            [("CIFAR-10", 0.5), ("CIFAR-10", 0.7), ("CIFAR-100", 0.1), ("CIFAR-100", 0.2)],
            4,
        ),
        ("augmentation", "tab:da_result1", [("CIFAR-10", 0.5), ("CIFAR-100", 0.1)], 6),
    ],
)
def test_ablation_and_augmentation(suite: str, label: str, columns: list[tuple[str, float]], count: int) -> None:
    source = table(label)
    assert re.findall(r"\$q\$ = ([\d.]+)", source) == [str(rate) for _, rate in columns]
    theirs = {
        (name, data, f"q = {rate:g}"): number
        for name, numbers in rows(source)
        for (data, rate), number in zip(columns, numbers, strict=True)
    }
    assert len(theirs) == count * len(columns)
    assert ours(suite) == theirs


def test_rates_are_those_of_the_headers() -> None:
    for label, rates in (("tab:benchmark_result1", FEW), ("tab:benchmark_result2", MANY)):
        assert re.findall(r"\$q\$ = ([\d.]+)", table(label)) == [str(rate) for rate in rates]
