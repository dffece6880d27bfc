"""The file of a model: what it holds, that it gives back the same network, and what it cannot make anybody do."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

import outside_networks
from model_files import CLASSES, write_model
from outside_networks import NETWORK, Tied, new_module, of_table, plain, with_dropout
from papi.errors import UserError
from papi.networks import NETWORKS, Factory, Network, build, reference
from papi.runs.model import ModelCard, check_model, read_model, read_weights, save_model

SHAPE = (3, 8, 8)
CARD = ModelCard(NETWORK, CLASSES, SHAPE, (0.5, 0.4, 0.3), (0.2, 0.25, 0.3), projects=True, temperature=1.5)


def write(file: Path, network: str | Factory | nn.Module = plain, card: ModelCard = CARD) -> Network:
    built = build(network, card.shape, len(card.class_names), project=card.projects)
    save_model(file, built, card)
    return built


def write_card(file: Path, values: object) -> Path:
    """A file with weights of `plain` and any card."""
    tensors = {k: v.contiguous() for k, v in build(plain, SHAPE, 4, project=True).state_dict().items()}
    save_file(tensors, file, metadata={"papi": values if isinstance(values, str) else json.dumps(values)})
    return file


def assert_equal_weights(one: nn.Module, other: nn.Module) -> None:
    first, second = one.state_dict(), other.state_dict()
    assert list(first) == list(second)
    assert all(value.equal(second[name]) for name, value in first.items())


class TestRoundTrip:
    @pytest.mark.parametrize(("name", "shape"), [("small", SHAPE), ("resnet18", (1, 8, 8)), ("mlp", (3,))])
    @pytest.mark.parametrize("projects", [True, False])
    def test_own_networks(self, name: str, shape: tuple[int, ...], projects: bool, tmp_path: Path) -> None:
        mean = (0.5,) * shape[0]
        card = ModelCard(name, CLASSES, shape, mean, mean, projects)
        built = write(tmp_path / "model.safetensors", name, card)
        for place in (tmp_path, tmp_path / "model.safetensors", str(tmp_path)):
            network, found, _ = read_model(place)
            assert found == card
            assert_equal_weights(network, built)

    @pytest.mark.parametrize(
        ("factory", "shape"), [(plain, SHAPE), (with_dropout, SHAPE), (Tied, SHAPE), (of_table, (3,))]
    )
    def test_networks_from_outside(self, factory: Factory, shape: tuple[int, ...], tmp_path: Path) -> None:
        card = replace(CARD, network=reference(factory), shape=shape)
        built = write(tmp_path / "m.safetensors", factory, card).eval()
        network, found, _ = read_model(tmp_path / "m.safetensors")
        assert found == card
        assert_equal_weights(network, built)
        samples = torch.rand(5, *shape)
        with torch.no_grad():
            assert network.eval()(samples).logits.equal(built(samples).logits)

    def test_tied_weights_stay_tied(self, tmp_path: Path) -> None:
        """The file holds them twice; the code ties them again."""
        write(tmp_path / "m.safetensors", Tied, replace(CARD, network=reference(Tied)))
        encoder = read_model(tmp_path / "m.safetensors")[0].encoder
        assert isinstance(encoder, Tied)
        assert encoder.first.weight is encoder.second.weight

    def test_parts_of_one_tensor(self, tmp_path: Path) -> None:
        class Halves(nn.Module):
            def __init__(self, input_shape: tuple[int, ...]) -> None:
                super().__init__()
                whole = torch.randn(2, *input_shape)
                self.first, self.second = nn.Parameter(whole[0]), nn.Parameter(whole[1])

            def forward(self, images: torch.Tensor) -> torch.Tensor:
                return (images * self.first + self.second).flatten(1)

        built = write(tmp_path / "m.safetensors", Halves)
        assert_equal_weights(read_model(tmp_path / "m.safetensors", network=Halves)[0], built)

    def test_equal_weights_give_equal_bytes(self, tmp_path: Path) -> None:
        files = [write_model(tmp_path / name) / "model.safetensors" for name in "ab"]
        assert files[0].read_bytes() == files[1].read_bytes()

    def test_what_others_read_in_it(self, tmp_path: Path) -> None:
        """Names of weights and the card are a format: programs of others and older files depend on them."""
        write(tmp_path / "m.safetensors", "mlp", replace(CARD, network="mlp", shape=(3,)))
        with safe_open(tmp_path / "m.safetensors", "pt") as opened:  # type: ignore[no-untyped-call]
            assert json.loads(opened.metadata()["papi"]) == {
                "network": "mlp",
                "class_names": list(CLASSES),
                "shape": [3],
                "mean": [0.5, 0.4, 0.3],
                "std": [0.2, 0.25, 0.3],
                "projects": True,
                "temperature": 1.5,
            }
            assert {name.partition(".")[0] for name in opened.keys()} == {"encoder", "classifier", "projector"}  # noqa: SIM118

    def test_a_file_without_temperature(self, tmp_path: Path) -> None:
        """As files were before there was one."""
        values = {key: value for key, value in asdict(CARD).items() if key != "temperature"}
        assert read_model(write_card(tmp_path / "m.safetensors", values))[1].temperature == 1

    def test_weights_alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without the code that they belong to."""
        card = replace(CARD, network="long.gone:plain")
        built = write(tmp_path / "model.safetensors", plain, card)
        weights, found = read_weights(tmp_path)
        assert found == card
        assert all(value.equal(weights[name]) for name, value in built.state_dict().items())


class TestSaving:
    @pytest.mark.parametrize("name", [None, "Tied", "test_it.<locals>.<lambda>"])
    def test_a_network_that_no_name_leads_to(self, name: str | None, tmp_path: Path) -> None:
        file = tmp_path / "model.safetensors"
        with pytest.raises(UserError, match="no importable name"):
            write(file, plain(SHAPE), replace(CARD, network=name))
        assert list(tmp_path.iterdir()) == []

    def test_the_file_of_before_stays(self, tmp_path: Path) -> None:
        write(tmp_path / "m.safetensors")
        before = (tmp_path / "m.safetensors").read_bytes()
        with pytest.raises(UserError):
            write(tmp_path / "m.safetensors", plain, replace(CARD, network=None))
        assert (tmp_path / "m.safetensors").read_bytes() == before


class TestCodeOfOthers:
    """A file that names code gets none of it run by that alone."""

    @pytest.fixture
    def spy(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Path]:
        """A module that leaves a trace when it is imported."""
        trace = tmp_path / "trace"
        text = f"import pathlib\npathlib.Path({str(trace)!r}).touch()\nfrom outside_networks import plain as mine\n"
        return new_module(tmp_path, text, monkeypatch), trace

    @pytest.mark.parametrize("read", [read_model, read_weights, check_model])
    def test_nothing_is_imported(self, read: Callable[[Path], object], spy: tuple[str, Path], tmp_path: Path) -> None:
        name, trace = spy
        write(tmp_path / "m.safetensors", plain, replace(CARD, network=f"{name}:mine"))
        if read is read_model:
            with pytest.raises(UserError, match=f'network="{name}:mine".*--network {name}:mine'):
                read(tmp_path / "m.safetensors")
        else:
            read(tmp_path / "m.safetensors")
        assert not trace.exists()
        assert name not in sys.modules

    def test_unless_a_person_says_so(self, spy: tuple[str, Path], tmp_path: Path) -> None:
        name, trace = spy
        built = write(tmp_path / "m.safetensors", plain, replace(CARD, network=f"{name}:mine"))
        network, card, _ = read_model(tmp_path / "m.safetensors", network=f"{name}:mine")
        assert trace.exists()
        assert card.network == f"{name}:mine"
        assert_equal_weights(network, built)

    def test_or_has_imported_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        text = "import outside_networks\ndef mine(shape):\n    return outside_networks.plain(shape)\n"
        name = new_module(tmp_path, text, monkeypatch)
        built = write(tmp_path / "m.safetensors", plain, replace(CARD, network=f"{name}:mine"))
        with pytest.raises(UserError):
            read_model(tmp_path / "m.safetensors")
        __import__(name)
        assert_equal_weights(read_model(tmp_path / "m.safetensors")[0], built)

    @pytest.mark.parametrize("name", ["os:system", "builtins:exec", "sys:exit", "subprocess:run", "torch:load"])
    @pytest.mark.parametrize("shape", ["touch trace", ["touch trace"], [3, 8, 8]])
    def test_functions_that_are_always_there(
        self, name: str, shape: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        write_card(tmp_path / "m.safetensors", asdict(CARD) | {"network": name, "shape": shape})
        with pytest.raises(UserError):
            read_model(tmp_path / "m.safetensors")
        assert [each.name for each in tmp_path.iterdir()] == ["m.safetensors"]

    def test_code_that_has_moved(self, tmp_path: Path) -> None:
        """What is written from then on says where it is now."""
        built = write(tmp_path / "m.safetensors", plain, replace(CARD, network="old.place:plain"))
        network, card, _ = read_model(tmp_path / "m.safetensors", network=NETWORK)
        assert card == CARD
        assert_equal_weights(network, built)

    def test_code_without_a_name(self, tmp_path: Path) -> None:
        """The file's own name for it stays."""
        write(tmp_path / "m.safetensors", plain, replace(CARD, network="old.place:plain"))
        _, card, _ = read_model(tmp_path / "m.safetensors", network=lambda shape: plain(shape))
        assert card.network == "old.place:plain"

    def test_code_that_cannot_be_imported(self, tmp_path: Path) -> None:
        write(tmp_path / "m.safetensors")
        with pytest.raises(UserError, match="PYTHONPATH"):
            read_model(tmp_path / "m.safetensors", network="old.place:plain")

    def test_code_that_has_changed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(tmp_path / "m.safetensors")
        monkeypatch.setattr(outside_networks, "WIDTH", outside_networks.WIDTH + 1)
        with pytest.raises(UserError, match="size mismatch") as raised:
            read_model(tmp_path / "m.safetensors")
        assert "\n" not in str(raised.value)


class TestDamage:
    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="does not exist"):
            read_model(tmp_path)

    @pytest.mark.parametrize("read", [read_model, read_weights, check_model])
    def test_half_a_file(self, read: Callable[[Path], object], tmp_path: Path) -> None:
        write(tmp_path / "m.safetensors")
        whole = (tmp_path / "m.safetensors").read_bytes()
        for length in (0, 7, 100, len(whole) // 2, len(whole) - 1):
            (tmp_path / "m.safetensors").write_bytes(whole[:length])
            with pytest.raises(UserError, match="not a model of PaPi"):
                read(tmp_path / "m.safetensors")

    def test_weights_of_somebody_else(self, tmp_path: Path) -> None:
        save_file({"weight": torch.zeros(3)}, tmp_path / "m.safetensors")
        with pytest.raises(UserError, match="not a model of PaPi"):
            read_model(tmp_path / "m.safetensors")

    def test_weights_of_another_network(self, tmp_path: Path) -> None:
        file = write_card(tmp_path / "m.safetensors", asdict(replace(CARD, network="small")))
        for read in (read_model, check_model):
            with pytest.raises(UserError, match="do not match the network small"):
                read(file)

    def test_an_unknown_name(self, tmp_path: Path) -> None:
        """Of a newer version, or misspelt by hand."""
        write_card(tmp_path / "m.safetensors", asdict(replace(CARD, network="smal")))
        with pytest.raises(UserError, match="did you mean 'small'"):
            read_model(tmp_path / "m.safetensors")

    @pytest.mark.parametrize(
        "wrong",
        [
            {"network": None},
            {"network": ["small"]},
            {"class_names": []},
            {"class_names": "abcd"},
            {"class_names": ["a", 2]},
            {"shape": []},
            {"shape": [3, 8]},
            {"shape": [3, 8, 8, 8]},
            {"shape": [3, 8, -8]},
            {"shape": [3, 8, 0]},
            {"shape": [3, 8, 8.0]},
            {"shape": [3, 8, True]},
            {"shape": "388"},
            {"mean": [0.5]},
            {"mean": 0.5},
            {"std": ["a", "b", "c"]},
            {"std": None},
            {"projects": 1},
            {"projects": None},
            {"temperature": "1"},
            {"temperature": 0},
            {"temperature": float("nan")},
            {"licence": "free"},
        ],
        ids=str,
    )
    def test_a_card_with_a_wrong_value(self, wrong: dict[str, object], tmp_path: Path) -> None:
        write_card(tmp_path / "m.safetensors", asdict(CARD) | wrong)
        with pytest.raises(UserError, match="not a model of PaPi"):
            read_model(tmp_path / "m.safetensors")

    @pytest.mark.parametrize("key", [key for key in CARD.to_json() if key != "temperature"])
    def test_a_card_without_a_value(self, key: str, tmp_path: Path) -> None:
        values = CARD.to_json()
        del values[key]
        write_card(tmp_path / "m.safetensors", values)
        with pytest.raises(UserError, match="not a model of PaPi"):
            read_model(tmp_path / "m.safetensors")

    @pytest.mark.parametrize("text", ["", "{", "null", "[]", '"small"', "3"])
    def test_no_card_at_all(self, text: str, tmp_path: Path) -> None:
        write_card(tmp_path / "m.safetensors", text)
        with pytest.raises(UserError, match="not a model of PaPi"):
            read_model(tmp_path / "m.safetensors")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 300) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(sorted(asdict(CARD))), JSON)
def test_whatever_a_card_says_it_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: object
) -> None:
    file = write_card(tmp_path_factory.mktemp("any") / "m.safetensors", asdict(CARD) | {key: value})
    try:
        network, card, _ = read_model(file)
    except UserError:
        return
    assert card.network in {NETWORK, *NETWORKS}
    assert network.classifier.out_features == len(card.class_names)
