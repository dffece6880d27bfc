"""Turns the fields of `papi.config` into command-line options with names, groups and help.

`config.py` holds plain dataclasses. This module gives each field its option name and its section in the help. A field
without a section is an expert option.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ParamSpec, get_args, get_origin, get_type_hints

import docstring_parser
from cyclopts import App, Group, Parameter, Token

P = ParamSpec("P")


@dataclass(frozen=True)
class _Section:
    """A section of the help and its fields, the most used first."""

    title: str
    fields: str
    expert: bool = False


_SECTIONS = (
    _Section(
        "Data and candidate labels",
        "data candidates.file candidates.votes candidates.kind candidates.flip_rate "
        "data_dir data_size data_test_share limit skip_bad",
    ),
    _Section("Method and network", "method option network preset"),
    _Section("Training", "epochs batch_size optim.lr seed data_holdout select stop_when calibrate precision"),
    _Section("This run", "device threads"),
    _Section(
        "Expert options: your own data and candidate labels",
        "data_image_column classes_tree candidates.format candidates.column candidates.separator candidates.weigh "
        "candidates.threshold candidates.empty candidates.allow_missing_truth",
        True,
    ),
    _Section("Expert options: synthetic candidate labels", "candidates.seed", True),
    _Section("Expert options: --candidates.kind hierarchical", "candidates.groups", True),
    _Section("Expert options: --candidates.kind class-dependent", "candidates.matrix", True),
    _Section("Expert options: --candidates.kind noisy", "candidates.noise_rate", True),
    _Section(
        "Expert options: --candidates.kind instance-dependent",
        "candidates.instance_rate candidates.rule candidates.annotator candidates.annotator_epochs",
        True,
    ),
    _Section("Expert options: pretrained encoders", "weights tune head embed_weights", True),
    _Section("Expert options: training and hardware", "", True),
)
_PLACES = {name: section for section in _SECTIONS for name in section.fields.split()}
_GROUPS = {section.title: Group(section.title, sort_key=place) for place, section in enumerate(_SECTIONS)}

DATA = Parameter(group=_GROUPS["Data and candidate labels"])
THIS_RUN = Parameter(group=_GROUPS["This run"])


def _whole(_: object, tokens: Sequence[Token]) -> int:
    """Parse a whole number strictly; cyclopts would read 2.5 as 2."""
    try:
        return int(tokens[0].value)
    except ValueError as error:
        raise ValueError(f"expected a whole number; got {tokens[0].value}.") from error


WHOLE = Parameter(converter=_whole)
SWITCH = Parameter(negative="", show_default=False)

OutsideNetwork = Annotated[
    str | None,
    Parameter(
        "--network",
        help="`package.module:factory` that builds the network, if it is not built in. This runs the code: use only "
        "code that you trust.",
    ),
]
"""Option of commands that load a model. A model file alone never decides which code is imported."""

OutsideMethod = Annotated[
    str | None,
    Parameter(
        "--method",
        help="`package.module:Class` of the method, if it is not built in. This runs the code: use only code that you "
        "trust.",
    ),
]
"""Option of commands that continue a run. A run's record alone never decides which code is imported."""


def option_name(field: str) -> str:
    """Return the option name of a field: `data_size` → `--data.size`, `optim.weight_decay` → `--optim.weight-decay`."""
    if field.startswith(("data_", "classes_")) and field != "data_dir":
        field = field.replace("_", ".", 1)
    return f"--{field.replace('_', '-')}"


def field_help(kind: type) -> dict[str, str]:
    """Return the docstring of each field of a dataclass, including inherited fields, as one line each."""
    texts: dict[str, str] = {}
    for part in reversed(kind.__mro__[:-1]):
        described = docstring_parser.parse_from_object(part).params
        texts |= {field.arg_name: " ".join(field.description.split()) for field in described if field.description}
    return texts


def config_options(*, experts: bool) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Give a command one option per field of the configs among its parameters.

    The command still receives the config itself. The help hides expert options unless `experts` is set.
    """

    def decorate(command: Callable[P, None]) -> Callable[P, None]:
        @functools.wraps(command)
        def with_options(*args: P.args, **kwargs: P.kwargs) -> None:
            command(*args, **kwargs)

        hints = get_type_hints(command, include_extras=True)
        with_options.__annotations__ = {name: _translated(name, hint, experts) for name, hint in hints.items()}
        return with_options

    return decorate


def print_all_options(command: Callable[..., None], name: str) -> None:
    """Print the help of a command that takes a config, including expert options."""
    app = App(name=name, help_flags=(), version_flags=())
    app.default(config_options(experts=True)(inspect.unwrap(command)))
    app.help_print([])


def _translated(name: str, hint: object, experts: bool) -> object:
    """Return the type of a parameter; for a config, the generated class of its options."""
    kind, *rest = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        return hint
    own = Parameter.combine(*rest)
    options = _options_of(kind, "" if own.name == ("*",) else f"{name}.", experts)
    return Annotated[options, own]


def _options_of(config: type, prefix: str, experts: bool) -> type:
    """Create a class whose fields are the options of a config.

    Calling it creates the config itself, because objects of different dataclasses never compare equal.
    """
    hints, texts = get_type_hints(config), field_help(config)
    fields = []
    for field in sorted(dataclasses.fields(config), key=lambda each: _rank(prefix + each.name)):
        hint, name = hints[field.name], prefix + field.name
        option: object
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            option = _options_of(hint, f"{name}.", experts)
        else:
            option = Annotated[hint, _parameter(name, hint, texts.get(field.name), experts)]
        default = dataclasses.field(default=field.default, default_factory=field.default_factory)
        fields.append((field.name, option, default))
    namespace = {"__new__": lambda _, **values: config(**values), "__module__": __name__}
    return dataclasses.make_dataclass(f"{config.__name__}Options", fields, namespace=namespace, kw_only=True)


def _rank(name: str) -> int:
    """Return the position of a field, or of the first field of a nested config, in the help."""
    ranks = (rank for rank, each in enumerate(_PLACES) if each == name or each.startswith(f"{name}."))
    return next(ranks, len(_PLACES))


def _parameter(name: str, hint: object, text: str | None, experts: bool) -> Parameter:
    section = _PLACES.get(name, _SECTIONS[-1])
    own = Parameter(option_name(name), group=_GROUPS[section.title], help=text, show=experts or not section.expert)
    if int in (hint, *get_args(hint)):
        return Parameter.combine(own, WHOLE)
    if hint is bool or get_origin(hint) is tuple:
        return Parameter.combine(own, SWITCH)
    return own
