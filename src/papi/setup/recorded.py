"""Keeps the defaults with which a run began: a resumed run does not change because a default has changed since."""

from dataclasses import asdict, fields, replace

from papi import distributed
from papi.config import RunConfig, as_typed
from papi.methods import find_method
from papi.runs.folder import RunFolder

_LENGTHS = ("epochs", "batch_size", "drop_last")


def with_recorded(config: RunConfig, folder: RunFolder) -> RunConfig:
    """Return the config with the recorded values of an existing run for everything the user left to the preset."""
    return distributed.from_first(lambda: _with_recorded(config, folder))


def _with_recorded(config: RunConfig, folder: RunFolder) -> RunConfig:
    record = folder.read_record()
    if record is None:
        return config
    try:
        theirs = record.run_config
    except ValueError:
        return config  # the check of the folder reports it
    options = record.identity.get("option")
    if (theirs.method, theirs.preset) != (config.method, config.preset) or not isinstance(options, dict):
        return config
    defaults = {field.name: field.default for field in fields(find_method(config.method).Config)}
    known = {name: as_typed(value) for name, value in (defaults | options).items() if name in defaults}
    lengths = {name: getattr(theirs, name) for name in _LENGTHS if getattr(config, name) is None}
    optim = {name: getattr(theirs.optim, name) for name, value in asdict(config.optim).items() if value is None}
    option = tuple(f"{name}={value}" for name, value in sorted((known | config.given_options).items()))
    precision = theirs.precision if config.precision == "auto" else config.precision  # whatever this processor has
    return replace(config, option=option, optim=replace(config.optim, **optim), precision=precision, **lengths)
