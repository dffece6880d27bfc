"""Cells of a grid: runs that are identified by the settings that determine their results."""

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

from papi.config import RunConfig, Settings, Values, as_typed, to_dict
from papi.data.known.sources import SOURCES
from papi.methods import find_method
from papi.methods.options import parse_options
from papi.runs.identity import NO_EFFECT, identity_hash, settings_identity
from papi.runs.schema import Record
from papi.setup.settings import complete

# Data folder, device and the like do not affect results. The preset is kept: it determines default values.
_LEFT_OUT = NO_EFFECT - {"preset"}


def settings_of(config: RunConfig) -> Settings:
    """The complete settings of a config, without reading its data. User data are assumed to be images.

    Published feature tables include candidate sets.
    """
    source = SOURCES.get(config.data)
    features = config.network == "mlp" if source is None else len(source.shape) == 1
    return complete(config, features=features, sets_given=features and source is not None)


def key(config: RunConfig, *, finished: bool = False) -> str:
    """The key of a run's result: equal for configs of the same run.

    A `finished` run has all the options of its time. Options added later get their defaults, not the values of the
    current preset.
    """
    settings = settings_of(config)
    if finished:
        kind = find_method(config.method).Config
        method = kind(**parse_options(kind, config.given_options))
        settings = replace(settings, options={field.name: getattr(method, field.name) for field in fields(kind)})
    return identity_hash(settings_identity(settings))[:16]


def folder_name(config: RunConfig) -> str:
    """A readable folder name, unique for each run."""
    settings, sets = settings_of(config), config.candidates
    made = f"{sets.kind}-q{sets.flip_rate:g}" if sets.kind else f"q{sets.flip_rate:g}"
    if sets.kind == "instance-dependent":  # the generator has its own rate
        made = "instance"
    options = [option.replace("=", "-") for option in config.option]
    data, method = Path(config.data).stem, config.method.rpartition(":")[2]
    words = [data, method, *options, made, f"{settings.epochs}epochs", f"seed{config.seed}", key(config)[:8]]
    return "-".join(words)


def finished_config(record: Record) -> RunConfig:
    """The config of a run from its record, with every option of its method as recorded."""
    options = record.identity["option"]
    texts = tuple(f"{name}={as_typed(value)}" for name, value in sorted(options.items()))
    return replace(record.run_config, option=texts)


def differing(config: RunConfig) -> Values:
    """The settings that differ from the defaults, as JSON values; `papi.config.from_dict` is the inverse.

    The precision is left out if it is fp32, which was the default when the first results were stored.
    """
    found = _differing(to_dict(config), to_dict(RunConfig(precision="fp32")))
    return {name: value for name, value in found.items() if name not in _LEFT_OUT}


def _differing(values: Values, defaults: Values) -> Values:
    found: Values = {}
    for name, value in values.items():
        if isinstance(value, dict):
            inner = _differing(value, defaults[name])
            found |= {name: inner} if inner else {}
        elif value != defaults[name]:
            found[name] = value
    return found


def arguments(config: RunConfig) -> list[str]:
    """The arguments of `papi train` for this run."""
    return list(_options(_differing(to_dict(config), to_dict(RunConfig())), ""))


def _options(values: Values, prefix: str) -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _options(value, f"{name}.")
            continue
        # `data_size` is `--data.size` on the command line, although the config has no section `data`.
        apart = name.startswith(("data_", "classes_")) and name != "data_dir"
        section, own = (f"{name.partition('_')[0]}.", name.partition("_")[2]) if apart else (prefix, name)
        if isinstance(value, bool):
            yield f"--{section}{'' if value else 'no-'}{own.replace('_', '-')}"
        else:
            for each in value if isinstance(value, list) else [value]:
                yield from (f"--{section}{own.replace('_', '-')}", str(each))
