"""Random search for the settings of a method: the search space and the sampled trials.

The first trial uses the defaults of `papi train`. The others sample every searched setting. Trial n depends only on the
seed and on n: a larger budget adds trials to those of a smaller one, and an interrupted search finds its trials again.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from papi.config import RunConfig, Settings, Values, as_typed
from papi.data.dataset import Dataset
from papi.errors import UserError, unknown
from papi.methods import find_method
from papi.methods.config import MethodConfig
from papi.methods.options import parse_options
from papi.methods.ranges import Among, Between, Range, ranges_of, require_sound, type_of
from papi.randomness import draws
from papi.runs.identity import identity_hash, settings_identity
from papi.train import settings_for

LR_FACTOR = 5  # the search range is the preset's learning rate divided and multiplied by this
DECAY_FACTOR = 10
ATTEMPTS = 100  # to sample a trial that differs from all before it and that the method accepts
TRAINING: dict[str, type] = {"optim.lr": float, "optim.weight_decay": float, "epochs": int, "batch_size": int}
"""Training settings that can be searched, with their types; the first two are searched by default."""


@dataclass(frozen=True)
class Trial:
    """One run of a search."""

    number: int
    config: RunConfig
    settings: Settings
    values: Values  # of the searched settings, by name

    @property
    def key(self) -> str:
        """The key of its result: equal for trials of the same run."""
        return identity_hash(settings_identity(self.settings))[:16]


def space_of(config: RunConfig, settings: Settings, given: Iterable[str]) -> dict[str, Range]:
    """The search space: ranges of the method and the optimizer that no option fixes. Those in `given` take precedence.

    Raises UserError if the method declares no range and none is given.
    """
    kind = find_method(config.method).Config
    texts = list(given)
    declared = ranges_of(kind)
    if not declared and not texts:
        raise UserError(
            f"{config.method} declares no ranges to search: annotate fields of its Config with Between or Among from "
            "papi.methods.ranges, or use --range NAME=LOW..HIGH."
        )
    fixed = kind(**settings.options).idle | config.given_options.keys()
    space: dict[str, Range] = {name: each for name, each in declared.items() if name not in fixed}
    for name, factor in (("optim.lr", LR_FACTOR), ("optim.weight_decay", DECAY_FACTOR)):
        value = _value(settings, name)
        if value > 0 and getattr(config.optim, name.partition(".")[2]) is None:
            space[name] = Between(float(f"{value / factor:.3g}"), float(f"{value * factor:.3g}"), log=True)
    own = dict(_parsed(kind, text, declared | space) for text in texts)
    space |= own
    for name, wanted in own.items():
        _require_accepted(config, space, name, wanted)
    if not space:
        raise UserError("every setting of this search is fixed: leave out an --option, or use --range NAME=LOW..HIGH.")
    return space


def trials(config: RunConfig, dataset: Dataset, space: Mapping[str, Range], budget: int) -> list[Trial]:
    """Sample as many distinct trials as the budget allows; fewer if the space has no more."""
    kind = find_method(config.method).Config
    first = settings_for(config, dataset)
    found = [Trial(0, config, first, {name: _value(first, name) for name in space})]
    keys = {found[0].key}
    for number in range(1, budget):
        random = draws(config.seed, "tune", number)
        for _ in range(ATTEMPTS):
            values = {name: each.draw(random, _type(kind, name)) for name, each in space.items()}
            try:
                drawn = _applied(config, values)
                trial = Trial(number, drawn, settings_for(drawn, dataset), values)
            except UserError:  # two settings are incompatible
                continue
            if trial.key not in keys:
                found.append(trial)
                keys.add(trial.key)
                break
    return found


def _require_accepted(config: RunConfig, space: Mapping[str, Range], name: str, wanted: Range) -> None:
    """Stop if no run can use an end of a range or one of the listed values."""
    fixed: Range
    for value in wanted.values if isinstance(wanted, Among) else (wanted.low, wanted.high):
        fixed = Among((value,)) if isinstance(wanted, Among) else Between(value, value)  # of the type of the setting
        refusal = _refusal(config, {**space, name: fixed})
        if refusal is not None:
            raise refusal


def _refusal(config: RunConfig, space: Mapping[str, Range]) -> UserError | None:
    """The error if no sample from a space is accepted; None if one is."""
    kind = find_method(config.method).Config
    refusal = None
    for attempt in range(ATTEMPTS):
        random = draws(config.seed, "tune", attempt)
        values = {name: each.draw(random, _type(kind, name)) for name, each in space.items()}
        try:
            kind(**parse_options(kind, _applied(config, values).given_options))
        except UserError as error:
            refusal = error
        else:
            return None
    return refusal


def _applied(config: RunConfig, values: Values) -> RunConfig:
    """A config with sampled values, as if the user had specified them."""
    optim = {name.partition(".")[2]: value for name, value in values.items() if name.startswith("optim.")}
    own = {name: value for name, value in values.items() if name in TRAINING and not name.startswith("optim.")}
    options = tuple(f"{name}={as_typed(value)}" for name, value in values.items() if name not in TRAINING)
    return replace(config, **own, optim=replace(config.optim, **optim), option=(*config.option, *options))


def _value(settings: Settings, name: str) -> Any:
    """The value of a searched setting in a run."""
    if name.startswith("optim."):
        return getattr(settings.optim, name.partition(".")[2])
    return getattr(settings, name) if name in TRAINING else settings.options[name]


def _type(kind: type[MethodConfig], name: str) -> Any:
    return TRAINING[name] if name in TRAINING else type_of(kind, name)


def _parsed(kind: type[MethodConfig], text: str, declared: Mapping[str, Range]) -> tuple[str, Range]:
    """`NAME=LOW..HIGH` or `NAME=A,B,C` as a name and a range. A range is logarithmic where the declared one is."""
    name, equals, wanted = text.partition("=")
    name = name.replace("-", "_")
    fields = [field.name for field in dataclasses.fields(kind)]
    if name not in (*fields, *TRAINING):
        raise unknown("setting to search", name, (*fields, *TRAINING))
    if not equals or not wanted:
        raise UserError(f"--range {text} must be of the form NAME=LOW..HIGH or NAME=A,B,C.")
    found: Range
    if ".." in wanted:
        low, high = (_number(text, part) for part in wanted.split("..", 1))
        before = declared.get(name)
        found = Between(low, high, log=isinstance(before, Between) and before.log and low > 0)
    elif name in TRAINING:
        found = Among(tuple(_number(text, part, TRAINING[name]) for part in wanted.split(",")))
    else:
        found = Among(tuple(parse_options(kind, {name: part})[name] for part in wanted.split(",")))
    require_sound(f"--range {name}", found, _type(kind, name))
    return name, found


def _number(text: str, part: str, kind: type = float) -> Any:
    try:
        value = kind(part)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        whole = "whole " if kind is int else ""
        raise UserError(f"--range {text} does not fit: {part or 'nothing'} is not a {whole}number.")
    return value
