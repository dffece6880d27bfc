"""Networks by name: what is found, what is refused, and what a network is called."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import outside_networks
from outside_networks import NETWORK, Tied, new_module, plain
from papi.errors import UserError
from papi.networks import NETWORKS, reference, require_fitting
from papi.networks.registry import find, make_encoder, title
from papi.networks.small import SmallResNet

SHAPE = (1, 8, 8)


def complaint(work: Callable[[], object]) -> str:
    with pytest.raises(UserError) as raised:
        work()
    assert "\n" not in str(raised.value)
    return str(raised.value)


class TestFind:
    @pytest.mark.parametrize("name", NETWORKS)
    def test_a_name_and_its_path_lead_to_the_same(self, name: str) -> None:
        assert find(name) is find(NETWORKS[name].path)

    def test_from_outside(self) -> None:
        assert find(NETWORK) is plain
        assert find("outside_networks:Tied") is Tied

    def test_an_attribute_of_a_class(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        name = new_module(tmp_path, "class Zoo:\n    @staticmethod\n    def small(shape): return shape", monkeypatch)
        assert find(f"{name}:Zoo.small") is sys.modules[name].Zoo.small

    @pytest.mark.parametrize(("typed", "meant"), [("resnet", "resnet18"), ("smal", "small"), ("MLP", "mlp")])
    def test_a_misspelt_name(self, typed: str, meant: str) -> None:
        said = complaint(lambda: find(typed))
        assert f"did you mean '{meant}'" in said
        assert "package.module:factory" in said

    def test_no_such_module(self) -> None:
        said = complaint(lambda: find("no_such_package.networks:mine"))
        assert "no_such_package" in said
        assert "PYTHONPATH" in said

    def test_no_such_attribute(self) -> None:
        said = complaint(lambda: find("outside_networks:mine"))
        assert "'outside_networks' has no attribute 'mine'" in said
        assert "PYTHONPATH" in said

    @pytest.mark.parametrize("name", [":", ":mine", "outside_networks:", ".:mine", "own.py:mine", "a b:c", "x:y:z"])
    def test_what_is_no_path_at_all(self, name: str) -> None:
        assert "package.module:factory" in complaint(lambda: find(name))

    @given(st.text(max_size=12).filter(lambda name: ":" not in name and name not in NETWORKS))
    def test_any_other_text_is_refused(self, name: str) -> None:
        assert "choose from small, " in complaint(lambda: find(name)).lower()

    def test_a_module_that_cannot_be_imported(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        name = new_module(tmp_path, "import torch\n\nscale = 1 / 0\n", monkeypatch)
        said = complaint(lambda: find(f"{name}:mine"))
        assert "ZeroDivisionError: division by zero" in said
        assert f"line 3 of {name}.py" in said

    def test_a_module_with_a_mistake_in_its_syntax(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        name = new_module(tmp_path, "def mine(shape)\n    return None\n", monkeypatch)
        said = complaint(lambda: find(f"{name}:mine"))
        assert "SyntaxError" in said
        assert "line 1" in said

    def test_what_cannot_be_called(self) -> None:
        said = complaint(lambda: find("outside_networks:WIDTH"))
        assert "outside_networks:WIDTH is of type int" in said


class TestMakeEncoder:
    def test_a_factory_gets_the_shape_alone(self) -> None:
        seen: list[tuple[int, ...]] = []

        def factory(input_shape: tuple[int, ...]) -> nn.Module:
            seen.append(input_shape)
            return nn.Identity()

        assert isinstance(make_encoder(factory, (3, 4, 5)), nn.Identity)
        assert seen == [(3, 4, 5)]

    def test_a_class_is_a_factory(self) -> None:
        assert isinstance(make_encoder("outside_networks:Tied", SHAPE), Tied)
        assert isinstance(make_encoder(Tied, SHAPE), Tied)

    def test_a_module_is_copied(self) -> None:
        given = plain(SHAPE)
        copies = [make_encoder(given, SHAPE) for _ in range(2)]
        with torch.no_grad():
            for parameter in copies[0].parameters():
                parameter.zero_()
        for one, other in zip(given.parameters(), copies[1].parameters(), strict=True):
            assert one is not other
            assert one.equal(other)
            assert one.any()

    def test_a_module_by_name_is_copied_as_well(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        name = new_module(tmp_path, "from torch import nn\nready = nn.Flatten()", monkeypatch)
        made = make_encoder(f"{name}:ready", SHAPE)
        assert isinstance(made, nn.Flatten)
        assert made is not sys.modules[name].ready

    def test_a_factory_that_raises(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        text = "def mine(shape):\n    channels, height, width = shape\n    raise KeyError('depth')\n"
        name = new_module(tmp_path, text, monkeypatch)
        said = complaint(lambda: make_encoder(f"{name}:mine", SHAPE))
        assert f"{name}:mine cannot be built for samples of shape (1, 8, 8)" in said
        assert "KeyError: 'depth'" in said
        assert f"line 3 of {name}.py" in said

    def test_a_factory_that_wants_more(self) -> None:
        def mine(input_shape: tuple[int, ...], depth: int) -> nn.Module:
            return nn.Identity()

        said = complaint(lambda: make_encoder(mine, SHAPE))  # type: ignore[arg-type]
        assert "missing 1 required positional argument: 'depth'" in said
        assert "its only argument" in said

    def test_a_factory_with_a_sentence_of_its_own(self) -> None:
        def mine(input_shape: tuple[int, ...]) -> nn.Module:
            raise UserError("this network takes images of 224 pixels: give --data.size 224.")

        assert complaint(lambda: make_encoder(mine, SHAPE)).startswith("this network takes images of 224 pixels")

    @pytest.mark.parametrize("given", [None, 3, "small", {"encoder": nn.Identity()}, nn.Identity])
    def test_a_factory_that_returns_no_module(self, given: object) -> None:
        said = complaint(lambda: make_encoder(lambda shape: given, SHAPE))  # type: ignore[arg-type, return-value]
        assert f"returns {type(given).__name__}" in said
        assert "torch.nn.Module" in said

    def test_a_module_that_cannot_be_copied(self) -> None:
        given = nn.Linear(2, 2)
        given.computed = given.weight * 2  # type: ignore[assignment]
        said = complaint(lambda: make_encoder(given, (2,)))
        assert "Linear cannot be copied" in said

    def test_a_long_complaint_is_cut(self) -> None:
        def mine(input_shape: tuple[int, ...]) -> nn.Module:
            raise RuntimeError("word " * 1000)

        assert len(complaint(lambda: make_encoder(mine, SHAPE))) < 700


class TestReference:
    @pytest.mark.parametrize("name", ["small", NETWORK, "no such thing"])
    def test_a_text_is_its_own_name(self, name: str) -> None:
        assert reference(name) == name

    @pytest.mark.parametrize("factory", [plain, Tied, SmallResNet])
    def test_the_name_leads_back(self, factory: Callable[[tuple[int, ...]], nn.Module]) -> None:
        name = reference(factory)
        assert name is not None
        assert find(name) is factory

    def test_what_has_no_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def inside(input_shape: tuple[int, ...]) -> nn.Module:
            return nn.Identity()

        for nameless in (inside, lambda shape: nn.Identity(), partial(plain), plain(SHAPE), Tied(SHAPE)):
            assert reference(nameless) is None

    def test_a_script_has_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Another process has another `__main__`."""

        def network(input_shape: tuple[int, ...]) -> nn.Module:
            return nn.Identity()

        network.__module__, network.__qualname__ = "__main__", "network"
        monkeypatch.setattr(sys.modules["__main__"], "network", network, raising=False)
        assert reference(network) is None

    def test_another_thing_of_that_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = outside_networks.plain
        monkeypatch.setattr(outside_networks, "plain", lambda shape: nn.Identity())
        assert reference(before) is None

    def test_a_module_that_is_gone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delitem(sys.modules, "outside_networks")
        assert reference(plain) is None

    def test_titles(self) -> None:
        assert title("small") == "small"
        assert title(plain) == NETWORK
        assert title(Tied(SHAPE)) == "Tied"
        assert title(lambda shape: nn.Identity()).endswith("<lambda>")
        assert title(partial(plain)) == "partial"


class TestRequireFitting:
    @pytest.mark.parametrize("name", NETWORKS)
    def test_the_table(self, name: str) -> None:
        takes = NETWORKS[name].takes
        require_fitting(name, takes)
        other = "features" if takes == "images" else "images"
        said = complaint(lambda: require_fitting(name, other))
        assert any(f"{each}" in said.split("use")[1] for each, entry in NETWORKS.items() if entry.takes == other)

    @pytest.mark.parametrize("kind", ["images", "features"])
    def test_nothing_about_networks_from_outside(self, kind: str) -> None:
        require_fitting(NETWORK, kind)
        require_fitting("no_such_package:mine", kind)
