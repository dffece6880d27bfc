"""What docs/networks.md and CONTRIBUTING.md say of networks is so."""

import re
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from papi.networks import NETWORKS, build
from papi.networks.registry import OUTSIDE_PROJECTION, make_encoder

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "networks.md").read_text()
LIST = PAGE.partition("\n## ")[0]  # the networks with a name, before the first heading
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in LIST.splitlines() if line.startswith("| `")]


def test_the_table_lists_all() -> None:
    assert [row[0].strip("`") for row in ROWS] == [*NETWORKS, "package.module:factory"]


@pytest.mark.parametrize("row", ROWS[:-1], ids=lambda row: row[0])
def test_a_row_is_right(row: list[str]) -> None:
    name, takes, parameters, width, projection = row
    entry = NETWORKS[name.strip("`")]
    assert (takes, int(projection)) == (entry.takes, entry.projection)
    assert (None if width == "number of columns" else int(width)) == entry.features
    encoder = make_encoder(name.strip("`"), (3, 32, 32) if takes == "images" else (100,))
    millions = parameters.split()[0]
    digits = len(millions.partition(".")[2])
    assert f"{sum(p.numel() for p in encoder.parameters()) / 1e6:.{digits}f}" == millions


def test_the_projector_of_other_networks() -> None:
    assert ROWS[-1][-1] == ", ".join(f"{width} for {kind}" for kind, width in OUTSIDE_PROJECTION.items())


def test_the_example_to_add_a_network() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("## Add a network")[2].partition("\n## ")[0]
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, object] = {"nn": nn, "Tensor": Tensor}
    exec("\n".join(line.removeprefix("   ") for line in program.splitlines()), names)
    network = build(names["Yours"], (3, 8, 8), 4, project=True)  # type: ignore[arg-type]
    assert network(torch.rand(2, 3, 8, 8)).logits.shape == (2, 4)
    assert network(torch.rand(0, 3, 8, 8)).logits.shape == (0, 4)
