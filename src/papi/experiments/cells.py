"""A cell of a grid is a run, told from others by what decides its result: by that it is found again."""

import dataclasses
import hashlib
import json
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cyclopts import Parameter

from papi.config import NO_EFFECT, RunConfig, from_dict, to_dict
from papi.methods import find_method
from papi.methods.options import as_typed, parse_options
from papi.setup.data import default_kind
from papi.setup.settings import complete

# Where a run lies and what it runs on is nobody else's business; the preset tells how later fields were filled in.
_LEFT_OUT = NO_EFFECT - {"preset"}


def key(config: RunConfig, *, finished: bool = False) -> str:
    """A name for a run's result: equal for configs that are the same run.

    The options of a `finished` run are complete, and those that came later have their defaults: today's preset must
    not fill them in.
    """
    full = complete(config)
    options = config.options if finished else full.options
    method = parse_options(find_method(full.method).Config, options)
    deciding = {name: value for name, value in to_dict(full).items() if name not in NO_EFFECT}
    deciding["option"] = to_dict(method)
    sets = deciding["candidates"]
    if sets["kind"] is None and sets["file"] is None:
        sets["kind"] = default_kind(full.data)
    return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()[:16]


def folder_name(config: RunConfig) -> str:
    """Readable, and different for different runs."""
    full = complete(config)
    sets = config.candidates
    made = f"{sets.kind}-q{sets.flip_rate:g}" if sets.kind else f"q{sets.flip_rate:g}"
    if sets.kind == "instance-dependent":  # its rate is the generator's own
        made = "instance"
    options = [option.replace("=", "-") for option in config.option]
    data, method = Path(full.data).stem, full.method.rpartition(":")[2]
    words = [data, method, *options, made, f"{full.epochs}epochs", f"seed{full.seed}", key(config)[:8]]
    return "-".join(words)


def finished_config(record: dict[str, Any]) -> RunConfig:
    """The config of a run from its config.json, with every option of its method as it was then."""
    options = record["identity"]["option"]
    texts = tuple(f"{name}={as_typed(value)}" for name, value in sorted(options.items()))
    return dataclasses.replace(from_dict(record["config"]), option=texts)


def settings(config: RunConfig) -> dict[str, Any]:
    """What differs from the defaults, as JSON values; `from_dict` is the inverse."""
    return {
        name: value
        for name, value in _differing(to_dict(config), to_dict(RunConfig())).items()
        if name not in _LEFT_OUT
    }


def _differing(values: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            inner = _differing(value, defaults[name])
            found |= {name: inner} if inner else {}
        elif value != defaults[name]:
            found[name] = value
    return found


def arguments(config: RunConfig) -> list[str]:
    """What to type after `papi train` to get this run."""
    return list(_options(_differing(to_dict(config), to_dict(RunConfig())), ""))


def _options(values: dict[str, Any], prefix: str) -> Iterator[str]:
    for name, value in values.items():
        option = _renamed().get(name) if not prefix else None
        option = option or f"--{prefix}{name.replace('_', '-')}"
        if isinstance(value, dict):
            yield from _options(value, f"{name}.")
        elif isinstance(value, bool):
            yield option if value else f"--{prefix}no-{option.removeprefix(f'--{prefix}')}"
        else:
            for each in value if isinstance(value, list) else [value]:
                yield from (option, str(each))


def _renamed() -> dict[str, str]:
    """Fields whose option has a name of its own."""
    hints = typing.get_type_hints(RunConfig, include_extras=True)
    return {
        name: next(iter(part.name))
        for name, hint in hints.items()
        for part in getattr(hint, "__metadata__", ())
        if isinstance(part, Parameter) and part.name
    }
