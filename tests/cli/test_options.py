"""Every field of a config is an option, and the options given make exactly the config."""

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest
from cyclopts import App, Parameter
from hypothesis import given, settings
from hypothesis import strategies as st

import papi.cli
from command import papi_exit_code
from papi.cli.options import WHOLE, config_options, field_help, option_name, print_all_options
from papi.config import CandidateKind, CandidatesConfig, CheckpointConfig, OptimConfig, RunConfig
from papi.errors import UserError
from papi.experiments.cells import arguments

Out = pytest.CaptureFixture[str]
AT_FIRST_SIGHT = 30


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def leaves(kind: type, prefix: str = "") -> Iterator[str]:
    """Names of all fields, those of configs inside it as `optim.lr`."""
    for field in dataclasses.fields(kind):
        inner = field.default_factory() if field.default_factory is not dataclasses.MISSING else None
        if dataclasses.is_dataclass(inner):
            yield from leaves(type(inner), f"{prefix}{field.name}.")
        else:
            yield prefix + field.name


def shown(text: str) -> list[str]:
    """The options that a help page has a line for, in order."""
    return re.findall(r"^│ +(?:\* +)?(--[\w.-]+)", text, re.MULTILINE)


def panel(text: str, title: str) -> list[str]:
    """The options below one heading."""
    found = re.search(rf"^╭─ {re.escape(title)} ─+╮\n(.*?)^╰", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"no heading {title}"
    return shown(found[1])


def parsed(words: list[str]) -> RunConfig:
    _, bound, _ = papi.cli.app.parse_args(["train", *words], exit_on_error=False, print_error=False)
    config = bound.arguments.get("config", RunConfig())
    assert isinstance(config, RunConfig)
    return config


def typed(config: object, default: object, prefix: str = "") -> Iterator[str]:
    """What to type for a config: an option for each value that is not the default."""
    for field in dataclasses.fields(config):  # type: ignore[arg-type]
        value, before = getattr(config, field.name), getattr(default, field.name)
        name = option_name(prefix + field.name)
        if dataclasses.is_dataclass(value):
            yield from typed(value, before, f"{prefix}{field.name}.")
        elif value == before:
            continue
        elif isinstance(value, tuple):
            yield from (word for each in value for word in (name, each))
        elif value is True:
            yield name
        elif value is False:
            head, dot, tail = name.rpartition(".")
            yield f"{head}{dot}no-{tail}" if dot else f"--no-{name.removeprefix('--')}"
        else:
            yield from (name, str(value))


words = st.from_regex(r"[a-z][a-z0-9 ./_]{0,8}[a-z0-9]", fullmatch=True)
files = words.map(Path)
seeds = st.integers(0, 2**32 - 1)
shares = st.floats(0, 1, exclude_max=True)


@st.composite
def candidates(draw: st.DrawFn) -> CandidatesConfig:
    kinds: list[CandidateKind | None] = [
        None, "uniform", "hierarchical", "class-dependent", "uniform-sets", "instance-dependent", "noisy",
    ]  # fmt: skip
    kind = draw(st.sampled_from(kinds))
    return CandidatesConfig(
        flip_rate=draw(shares),
        seed=draw(st.none() | seeds),
        file=draw(st.none() | files) if kind is None else None,
        kind=kind,
        groups=draw(st.none() | files) if kind == "hierarchical" else None,
        matrix=draw(st.none() | words) if kind == "class-dependent" else None,
        noise_rate=draw(st.floats(0, 1)),
        annotator=draw(words),
        annotator_epochs=draw(st.integers(1, 1000)),
        rule=draw(st.sampled_from(["released", "paper"])),  # type: ignore[arg-type]
        instance_rate=draw(st.floats(1e-6, 100)),
        votes=draw(st.sampled_from(["union", "vaguest", "at-least-2", "at-least-3-else-union", "dawid-skene"])),
        weigh=draw(st.sampled_from([None, "off", "auto", "1.5"])),
        allow_missing_truth=draw(st.booleans()),
        format=draw(st.sampled_from([None, "label-studio", "crowd"])),
        column=draw(st.none() | words),
        separator=draw(st.sampled_from([None, ";", ",", " / "])),
        threshold=draw(st.floats(0, 1)),
        empty=draw(st.sampled_from(["refuse", "unlabelled", "label"])),  # type: ignore[arg-type]
    )


optims = st.builds(
    OptimConfig,
    optimizer=st.sampled_from([None, "sgd", "adam"]),
    lr=st.none() | st.floats(0, 10),
    momentum=st.none() | shares,
    nesterov=st.sampled_from([None, True, False]),
    weight_decay=st.none() | st.floats(0, 1),
    decay=st.sampled_from([None, "all", "matrices"]),
    schedule=st.sampled_from([None, "cosine", "warmup-cosine", "constant", "multistep", "exponential"]),
)
configs = st.builds(
    RunConfig,
    data=words,
    data_dir=files,
    data_size=st.none() | st.integers(4, 1024),
    data_image_column=st.none() | words,
    data_views=st.integers(0, 64),
    data_split=st.sampled_from(["train", "test"]),
    data_test_share=shares,
    data_holdout=st.none() | st.floats(0.01, 0.99),
    limit=st.none() | st.integers(2, 10**6),
    classes_tree=st.none() | files,
    skip_bad=st.booleans(),
    candidates=candidates(),
    method=words,
    option=st.lists(st.tuples(words, words).map("=".join), max_size=3).map(tuple),
    network=st.none() | words,
    weights=words,
    tune=st.sampled_from([None, "head", "all"]),
    head=st.none() | words,
    embed_weights=st.booleans(),
    preset=words,
    epochs=st.none() | st.integers(1, 1000),
    batch_size=st.none() | st.integers(2, 4096),
    drop_last=st.sampled_from([None, True, False]),
    optim=optims,
    select=st.sampled_from(["last", "covering-rate", "approximated-accuracy"]),
    stop_when=st.sampled_from(["never", "covering-rate", "approximated-accuracy"]),
    patience=st.integers(1, 100),
    calibrate=st.booleans(),
    precision=st.sampled_from(["auto", "fp32", "bf16", "fp16"]),
    compile=st.booleans(),
    seed=seeds,
    threads=st.none() | st.integers(1, 256),
    device=words,
    checkpoint=st.builds(CheckpointConfig, every=st.integers(1, 999).map(str) | st.integers(1, 999).map("{}s".format)),
)


@settings(max_examples=40)
@given(configs)
def test_options_make_the_config(config: RunConfig) -> None:
    found = parsed(list(typed(config, RunConfig())))
    assert found == config
    assert type(found) is RunConfig
    assert type(found.candidates) is CandidatesConfig
    assert type(found.optim) is OptimConfig
    assert type(found.checkpoint) is CheckpointConfig


@settings(max_examples=40)
@given(configs)
def test_a_grid_names_options_as_the_command_does(config: RunConfig) -> None:
    assert parsed(arguments(config)) == config


def test_the_random_configs_cover_every_field() -> None:
    """Whoever adds a field also adds it above."""
    drawn = {"candidates", "optim", "checkpoint", *leaves(RunConfig)}
    names = re.findall(r"^ {4}(\w+)=", Path(__file__).read_text().partition("configs = st.builds(")[2], re.MULTILINE)
    assert {field.name for field in dataclasses.fields(RunConfig)} <= set(names) & drawn


def test_no_options_at_all() -> None:
    assert parsed([]) == RunConfig()


@pytest.mark.parametrize(
    ("field", "option"),
    [
        ("data", "--data"),
        ("data_dir", "--data-dir"),
        ("data_size", "--data.size"),
        ("data_test_share", "--data.test-share"),
        ("batch_size", "--batch-size"),
        ("optim.weight_decay", "--optim.weight-decay"),
        ("candidates.flip_rate", "--candidates.flip-rate"),
    ],
)
def test_names(field: str, option: str) -> None:
    assert option_name(field) == option


def test_first_sight(capsys: Out) -> None:
    assert papi_exit_code("train", "--help") == 0
    said = capsys.readouterr().out
    options = shown(said)
    assert len(options) == len(set(options)) <= AT_FIRST_SIGHT
    assert "--help-all" in options
    assert panel(said, "Data and candidate labels")[:2] == ["--data", "--candidates.file"]
    assert {"--method", "--network", "--option", "--preset"} == set(panel(said, "Method and network"))
    assert panel(said, "Training")[:2] == ["--epochs", "--batch-size"]
    assert panel(said, "This run")[0] == "--out"
    assert "Expert" not in said.partition("╭")[2]


def test_all_options(capsys: Out) -> None:
    assert papi_exit_code("train", "--help") == 0
    first = shown(capsys.readouterr().out)
    assert papi_exit_code("train", "--help-all") == 0
    said = capsys.readouterr().out
    options = shown(said)
    assert len(options) == len(set(options))
    assert {option_name(name) for name in leaves(RunConfig)} <= set(options)
    assert [option for option in options if option in first] == first
    assert panel(said, "Expert options: --candidates.kind noisy") == ["--candidates.noise-rate"]
    assert len(panel(said, "Expert options: --candidates.kind instance-dependent")) == 4


def test_help_all_may_stand_anywhere(tmp_path: Path, capsys: Out) -> None:
    assert papi_exit_code("train", "--epochs", 1, "--help-all", "--out", tmp_path / "run") == 0
    assert "--optim.schedule" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--candidates.noise-rate", "--optim.decay", "--checkpoint.every"])
def test_options_that_are_not_shown_work_and_are_suggested(option: str, capsys: Out) -> None:
    assert papi_exit_code("train", "--help") == 0
    assert option not in shown(capsys.readouterr().out)
    assert papi_exit_code("train", f"{option}e", 1) != 0
    assert option in capsys.readouterr().err


def test_every_option_has_a_help_text() -> None:
    for kind in (RunConfig, CandidatesConfig, OptimConfig, CheckpointConfig):
        texts = field_help(kind)
        for field in dataclasses.fields(kind):
            assert texts.get(field.name) or field.default_factory is not dataclasses.MISSING, field.name


@pytest.mark.parametrize("option", ["--calibrate", "--compile", "--candidates.allow-missing-truth", "--tensorboard"])
def test_plain_switches_have_no_opposite(option: str, capsys: Out) -> None:
    head, dot, tail = option.removeprefix("--").rpartition(".")
    assert papi_exit_code("train", f"--{head}{dot}no-{tail}") != 0
    assert "Unknown option" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["2.5", "two", "1e3"])
@pytest.mark.parametrize("option", ["--epochs", "--data.size", "--seed", "--candidates.annotator-epochs"])
def test_whole_numbers(option: str, value: str, capsys: Out) -> None:
    assert papi_exit_code("train", option, value) != 0
    said = capsys.readouterr().err
    assert option in said
    assert "whole number" in said


@pytest.mark.parametrize(
    ("given_words", "says"),
    [
        (["--epochs", "0"], "--epochs"),
        (["--candidates.flip-rate", "1"], "--candidates.flip-rate"),
        (["--optim.momentum", "2"], "--optim.momentum"),
        (["--checkpoint.every", "often"], "--checkpoint.every"),
        (["--select", "covering-rate", "--data.holdout", "0"], "--data.holdout"),
    ],
)
def test_what_a_config_refuses(given_words: list[str], says: str) -> None:
    with pytest.raises(UserError, match=says):
        parsed(given_words)


@dataclass(frozen=True)
class LaterConfig(RunConfig):
    """A config with fields that nobody has placed yet."""

    data_colour: Literal["grey", "rgb"] = "rgb"
    """Colour of the images."""
    waiting: int | None = None
    """Epochs to wait
    for something better."""


LATER = LaterConfig()


def later_command(received: list[LaterConfig]) -> App:
    @config_options(experts=True)
    def command(*, config: Annotated[LaterConfig, Parameter(name="*")] = LATER) -> None:
        """Take a config."""
        received.append(config)

    app = App(name="later", result_action="return_value")
    app.default(command)
    return app


def test_a_field_that_nobody_has_placed(capsys: Out) -> None:
    received: list[LaterConfig] = []
    app = later_command(received)
    app(["--data.colour", "grey", "--waiting", "3", "--epochs", "2"])
    assert received == [LaterConfig(data_colour="grey", waiting=3, epochs=2)]
    assert type(received[0]) is LaterConfig
    app.help_print([])
    said = capsys.readouterr().out
    experts = panel(said, "Expert options: training and hardware")
    assert {"--data.colour", "--waiting"} <= set(experts)
    assert "Epochs to wait for something better." in said


def test_the_command_itself_is_called_with_the_config() -> None:
    """From Python a command is a function like any other."""
    received: list[tuple[int, CandidatesConfig]] = []
    default = CandidatesConfig()

    @config_options(experts=False)
    def command(number: int, /, *, candidates: CandidatesConfig = default) -> None:
        received.append((number, candidates))

    command(3, candidates=CandidatesConfig(flip_rate=0.1))
    command(4)
    app = App(result_action="return_value")
    app.default(command)
    app(["5", "--candidates.flip-rate", "0.2", "--candidates.seed", "1"])
    assert received == [(3, CandidatesConfig(0.1)), (4, default), (5, CandidatesConfig(0.2, 1))]


def test_all_options_of_a_command_without_its_own_app(capsys: Out) -> None:
    @config_options(experts=False)
    def command(*, config: Annotated[RunConfig, Parameter(name="*")] = RunConfig()) -> None:  # noqa: B008
        """Take a config."""

    print_all_options(command, "papi anything")
    said = capsys.readouterr().out
    assert "Usage: papi anything" in said
    assert set(shown(said)) == {option_name(name) for name in leaves(RunConfig)}


def test_whole_is_for_other_commands_too() -> None:
    received: list[int] = []
    app = App(result_action="return_value")

    @app.default
    def command(*, top: Annotated[int, WHOLE] = 1) -> None:
        received.append(top)

    app(["--top", "-3"])
    assert received == [-3]


@dataclass
class Plain:
    """Of which one field has no help."""

    silent: int = 0
    told: int = 1
    """About
    this."""


@dataclass
class Derived(Plain):
    """Says it better."""

    told: int = 2
    """About that."""
    own: int = 3
    """Its own."""


def test_help_of_fields() -> None:
    assert field_help(Plain) == {"told": "About this."}
    assert field_help(Derived) == {"told": "About that.", "own": "Its own."}
