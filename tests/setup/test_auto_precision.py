"""`--precision auto`: what a device has, which networks use it, and what a run keeps."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from command import papi_exit_code
from papi.config import RunConfig, Settings, from_dict
from papi.experiments import SUITES, cells
from papi.methods import METHODS, find_method
from papi.methods.base import Method
from papi.runs.folder import RunFolder
from papi.setup.recorded import with_recorded
from papi.setup.settings import complete
from papi.train import Started, train
from papi.training import devices
from papi.training.devices import has_native_bf16, precision_notes

CPU = torch.device("cpu")
Processor = Callable[[str], None]


@pytest.fixture
def processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Processor]:
    """Let the machine have a processor with these flags."""

    def becomes(flags: str) -> None:
        file = tmp_path / "cpuinfo"
        file.write_text(f"processor\t: 0\nflags\t\t: fpu sse2 {flags}\nbogomips\t: 5200\n")
        monkeypatch.setattr(devices, "_CPU_INFO", file)
        has_native_bf16.cache_clear()

    yield becomes
    has_native_bf16.cache_clear()


def asked(features: bool = False, **options: object) -> Settings:
    config = RunConfig(**{"device": "cpu", **options})  # type: ignore[arg-type]
    return complete(config, features=features, sets_given=features)


@pytest.mark.parametrize(
    ("flags", "native"),
    [
        ("avx2", False),
        ("avx2 avx512f", False),
        ("avx2 avx512_bf16", True),
        ("avx2 amx_bf16", True),
        ("xavx512_bf16", False),
    ],
)
def test_the_flags_of_a_processor(flags: str, native: bool, processor: Processor) -> None:
    processor(flags)
    assert has_native_bf16(CPU) is native


def test_a_system_that_lists_no_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processor: Processor) -> None:
    processor("avx512_bf16")
    monkeypatch.setattr(devices, "_CPU_INFO", tmp_path / "none")
    assert not has_native_bf16(CPU)


@pytest.mark.parametrize(("capability", "native"), [((7, 5), False), ((8, 0), True), ((9, 0), True)])
@pytest.mark.usefixtures("processor")
def test_the_capability_of_a_gpu(capability: tuple[int, int], native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    has_native_bf16.cache_clear()
    assert has_native_bf16(torch.device("cuda")) is native


class TestSettings:
    @pytest.fixture(autouse=True)
    def native(self, processor: Processor) -> None:
        processor("avx512_bf16")

    @pytest.mark.parametrize("network", [None, "small"])
    def test_encoders_of_images(self, network: str | None) -> None:
        assert asked(network=network).precision == "bf16"

    def test_elsewhere(self, processor: Processor) -> None:
        processor("avx2")
        assert asked().precision == "fp32"

    def test_feature_tables_and_heads(self) -> None:
        assert asked(features=True).precision == "fp32"
        assert asked(features=True, network="timm:resnet18", tune="head").precision == "fp32"

    @pytest.mark.parametrize("network", ["timm:resnet18", "outside_networks:tiny", "resnet18", "wide-resnet"])
    def test_networks_that_were_not_measured(self, network: str) -> None:
        assert asked(network=network, tune="all" if network.startswith("timm") else None).precision == "fp32"

    def test_methods(self) -> None:
        """Methods that were not measured to be as accurate in bf16 stay in fp32, like those from outside."""
        assert {name: asked(method=name).precision for name in METHODS} == {
            name: "bf16" if find_method(name).bf16 else "fp32" for name in METHODS
        }
        assert asked(method="papi").precision == "bf16"
        assert asked(method="dpll").precision == "fp32"
        assert not Method.bf16

    def test_the_released_settings(self) -> None:
        assert asked(preset="paper").precision == "fp32"
        assert asked(preset="paper", precision="bf16").precision == "bf16"

    @pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
    def test_a_precision_that_is_named(self, precision: str) -> None:
        assert asked(precision=precision).precision == precision
        assert asked(precision=precision, features=True).precision == precision

    def test_a_device_of_another_machine(self) -> None:
        assert asked(device="cuda:99").precision == "fp32"


def test_bf16_without_instructions_is_noted(processor: Processor) -> None:
    processor("avx2")
    (note,) = precision_notes("bf16", CPU)
    assert "slower than in fp32" in note
    assert precision_notes("fp32", CPU) == ()
    processor("amx_bf16")
    assert precision_notes("bf16", CPU) == ()


@pytest.mark.parametrize(
    ("first", "then", "precision"), [("avx512_bf16", "avx2", "bf16"), ("avx2", "avx512_bf16", "fp32")]
)
def test_a_run_keeps_its_precision_on_another_processor(
    first: str, then: str, precision: str, processor: Processor, toy_npz: Path, tmp_path: Path
) -> None:
    """Stopped after a step and continued elsewhere, it is bit-equal to a run that stayed."""
    config = RunConfig(data=str(toy_npz), epochs=2, batch_size=32, device="cpu", threads=1, network="small")
    processor(first)
    list(train(config, tmp_path / "whole"))
    list(train(config, tmp_path / "parts", lambda: True))
    assert RunFolder(tmp_path / "parts").begun().config["precision"] == precision
    processor(then)
    started = next(event for event in train(config, tmp_path / "parts") if isinstance(event, Started))
    assert started.settings.precision == precision
    assert any("bf16" in problem for problem in started.problems) is (precision == "bf16")
    list(train(config, tmp_path / "parts"))
    whole, parts = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts"))
    assert whole == parts


def test_a_run_of_an_earlier_version_stays_in_fp32(processor: Processor) -> None:
    processor("avx512_bf16")
    folder = RunFolder(Path(__file__).parents[1] / "runs" / "earlier" / "stopped")
    theirs = folder.begun().run_config
    config = RunConfig(data=theirs.data, method=theirs.method, preset=theirs.preset)
    assert with_recorded(config, folder).precision == "fp32"
    assert with_recorded(replace(config, precision="bf16"), folder).precision == "bf16"  # which is then refused


def test_the_command_prints_and_records_it(
    processor: Processor, toy_npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("train", "--data", toy_npz, "--epochs", 1, "--threads", 1, "--device", "cpu", "--network", "small")
    for flags, options, expected in (
        ("avx2", (), "fp32"),
        ("avx512_bf16", (), "bf16"),
        ("avx512_bf16", ("--precision", "fp32"), "fp32"),
        ("avx512_bf16", ("--preset", "paper", "--batch-size", 16), "fp32"),
    ):
        processor(flags)
        folder = tmp_path / "-".join((flags, *map(str, options), "run"))
        assert papi_exit_code(*words, *options, "--out", folder) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert f"parameters) in {expected}, preset" in said
        assert json.loads((folder / "config.json").read_text())["config"]["precision"] == expected


def test_another_precision_is_another_run(
    processor: Processor, toy_npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    processor("avx512_bf16")
    words = ("train", "--data", toy_npz, "--epochs", 1, "--threads", 1, "--device", "cpu", "--out", tmp_path / "run")
    assert papi_exit_code(*words) == 0
    assert papi_exit_code(*words, "--precision", "fp32") == 2
    assert "precision" in capsys.readouterr().err
    assert papi_exit_code(*words) == 0
    assert "already complete" in capsys.readouterr().out


def test_suites_do_not_depend_on_the_processor(processor: Processor) -> None:
    keys = []
    for flags in ("avx2", "avx512_bf16"):
        processor(flags)
        keys.append([cells.key(config) for suite in SUITES["cpu"].values() for config in suite.cells()])
    assert keys[0] == keys[1]
    config = next(SUITES["cpu"]["uniform"].cells())
    assert "--precision fp32" in " ".join(cells.arguments(config))
    assert "precision" not in cells.differing(config)
    assert from_dict(cells.differing(config)).precision == "fp32"
