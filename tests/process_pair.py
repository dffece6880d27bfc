"""What processes that train together are tested with: the same work in one process, or in two that share it.

As a program it is one of two processes: `python process_pair.py FOLDER`, with the environment that `torchrun` sets. It
writes what it has seen to `FOLDER/RANK.pt`.
"""

import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from papi import distributed
from papi import train as run
from papi.config import RunConfig
from papi.data import candidates as generators
from papi.data.dataset import Dataset, refuse
from papi.data.loader import Loader
from papi.data.views.choose import normaliser, views_of
from papi.errors import UserError
from papi.methods import METHODS, find_method
from papi.methods.base import Method
from papi.methods.options import parse_options
from papi.networks import Network
from papi.training import engine
from papi.training.annotator import annotator_logits
from papi.training.evaluator import Evaluator
from papi.types import Progress, StepOutput
from toy_data import make_toy_dataset

# 46 images in batches of 11 make 5 steps: four that two processes share as 5 + 6, and 2 images for one of them alone.
IMAGES, BATCH, EPOCHS = 46, 11, 4
VARYING = ("seconds", "cpu_seconds", "images_per_second")

# Every phase of a method comes up within four epochs. A method that is not listed runs with its defaults.
OPTIONS: dict[str, tuple[dict[str, str], ...]] = {
    "papi": (
        {"ramp_epochs": "1"},
        {"ramp_epochs": "1", "mixup": "off"},
        {"alignment": "off"},
        {"alignment": "off", "cloud_rounds": "2"},
        {"ramp_epochs": "1", "passes": "two"},
        {"ramp_epochs": "1", "passes": "one"},
        {
            "ramp_epochs": "1",
            "passes": "two",
            "mixup": "off",
            "second_view_weight": "1",
            "exclusion_weight": "1",
            "balance_weight": "0.1",
            "balance_by_evidence": "off",
        },
        {"ramp_epochs": "1", "noise_tolerance": "auto"},
        {"ramp_epochs": "1", "set_prior": "auto", "weigh": "auto"},
    ),
    "dpll": ({"ramp_epochs": "2"},),
    "pico": (
        {"warmup_epochs": "1", "queue": "32"},
        {"warmup_epochs": "1", "queue": "32", "positives": "truth", "guidance": "classifier"},
    ),
    "proden": ({}, {"noise_tolerance": "0.3"}),
    "valen": ({"warmup_epochs": "2"},),
    "dirk": (
        {"teacher_momentum": "0.9"},
        {"refinement_weight": "1", "teacher_momentum": "0.9", "queue": "32", "warmup_epochs": "1"},
    ),
    "em": ({}, {"set_loss": "likelihood", "balance_weight": "1", "noise_tolerance": "0.3"}),
    "neighbours": (
        {"k": "5", "refresh_epochs": "2"},
        {"k": "5", "space": "unit", "weights": "similarity", "ballot": "shared", "power": "2"},
    ),
}
EXACT = [(name, options, "float64") for name in METHODS for options in OPTIONS.get(name, ({},))]
ROUNDED = [(name, OPTIONS.get(name, ({},))[0], "float32") for name in METHODS]
BATCH_NORM = [(name, OPTIONS.get(name, ({},))[0], "batch-norm") for name in METHODS]


def title(name: str, options: dict[str, str], kind: str) -> str:
    return " ".join([name, *(f"{key}={value}" for key, value in options.items()), kind])


def make_network(kind: str, classes: int) -> Network:
    """Without batch-norm one process and two do the same work. Dropout, too, differs between them."""
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Flatten(), nn.Linear(64, 16)]
    layers += [nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3)] if kind == "batch-norm" else [nn.Tanh()]
    return Network(nn.Sequential(*layers), 16, classes, projection=8)


def digest(method: Method, optimizer: torch.optim.Optimizer) -> str:
    """Of every bit that a step can change."""
    tensors = dict(method.state_dict())
    for number, state in enumerate(optimizer.state.values()):
        tensors |= {f"{number} {name}": value for name, value in state.items() if isinstance(value, Tensor)}
    content = hashlib.sha256()
    for name, value in sorted(tensors.items()):
        content.update(name.encode() + value.numpy().tobytes())
    return content.hexdigest()


def train(name: str, options: dict[str, str], kind: str) -> dict[str, Any]:
    """A run on the toy data: the loss and a digest of the state after each step, the rows, and the state at the end."""
    data, mask = toy(seed=0)
    assert data.labels is not None
    sets = torch.from_numpy(mask)
    method_class = find_method(name)
    own = {key: value for key, value in options.items() if key != "weigh"}  # which is an option of the data
    config = method_class.Config(**parse_options(method_class.Config, own))
    extras: dict[str, Any] = {"truth": torch.from_numpy(data.labels)} if config.needs_truth else {}
    extras |= {"shape": data.input_shape} if config.needs_shape else {}
    method = method_class(make_network(kind, len(data.class_names)), sets, config, **extras)
    if "weigh" in options:
        votes = sets * (1.0 + torch.arange(sets.shape[1]))
        method.give_prior(votes / votes.sum(1, keepdim=True), options["weigh"])
    dtype = torch.float64 if kind == "float64" else torch.float32
    method.to(dtype)
    device = torch.device("cpu")
    normalise = normaliser(data.input_shape, data.mean, data.std, device)
    wide: Any = lambda images: normalise(images).to(dtype)  # noqa: E731
    samples = torch.from_numpy(data.samples)
    loader = Loader(samples, sets, views_of(data), wide, config.view_names, batch_size=BATCH, seed=3)
    optimizer = torch.optim.SGD(method.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
    losses, digests, rows = [], [], []
    original = engine.train_step

    def watched(*arguments: Any) -> StepOutput:
        output = original(*arguments)
        losses.append(float(output.loss.detach()))
        digests.append(digest(method, optimizer))
        return output

    def rate(progress: Progress) -> float:
        return 0.05

    engine.train_step = watched
    try:
        for event in engine.fit(
            method,
            loader,
            optimizer,
            rate,
            epochs=EPOCHS,
            evaluate=Evaluator(data, wide, device).measure,
            truth=torch.from_numpy(data.labels),
        ):
            if isinstance(event, engine.EpochEnded):
                rows.append({key: value for key, value in event.row.to_json().items() if key not in VARYING})
    finally:
        engine.train_step = original
    return {"losses": losses, "digests": digests, "rows": rows, "state": method.state_dict()}


def environment(rank: int, port: int) -> dict[str, str]:
    """What `torchrun` sets, for one of two processes on this machine."""
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return os.environ | {name: str(value) for name, value in names.items()}


def start_pair(*command: object) -> list[subprocess.Popen[str]]:
    """Two processes that run the same command; their output is to be read from each."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [sys.executable, *map(str, command)]
    return [
        subprocess.Popen(
            words, env=environment(rank, port), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        for rank in (0, 1)
    ]


def complaint(work: Callable[[], Any]) -> str:
    """What a person is told."""
    try:
        work()
    except UserError as error:
        return str(error)
    return "nothing"


def toy(seed: int) -> tuple[Dataset, np.ndarray]:
    data = make_toy_dataset(train=IMAGES, seed=seed)
    assert data.labels is not None
    return data, generators.uniform(data.labels, len(data.class_names), 0.4, seed=0)


def gathered() -> dict[str, Any]:
    """What comes together when one process holds three rows and the other five, and what gradient each gets."""
    rank = distributed.rank()
    weights = torch.arange(16, dtype=torch.float64).view(8, 2)
    rows = torch.zeros(5 if rank else 3, 2, dtype=torch.float64).add_(rank + 1).requires_grad_()
    whole = distributed.gather_rows(rows)
    ((rank + 1) * whole * weights).sum().backward()
    part = distributed.locate(len(rows))
    empty = distributed.gather_rows(torch.arange(2 * rank))
    return {
        "whole": whole.detach(),
        "gradient": rows.grad,
        "own": [part.own.start, part.own.stop],
        "flags": distributed.gather_rows(torch.tensor([rank == 0])),
        "one holds none": empty,
        "mean": distributed.Part((0, 4), rank).mean({"loss": torch.tensor([torch.nan, 2.5][rank])})["loss"],
        "any": distributed.any_of(rank == 1, False),
        "total": distributed.total({"a": torch.tensor(rank + 1), "b": torch.tensor(2.5)}),
        "from first": distributed.from_first(lambda: {"said": [rank]}),
        "error of first": complaint(lambda: distributed.from_first(lambda: [][0] if rank else refuse("no folder"))),
        "other data": complaint(lambda: other_data(rank)),
        "split": [distributed.split(count).sizes for count in (7, 4, 3, 2, 1)],
    }


def other_data(rank: int) -> None:
    data, sets = toy(seed=rank)
    list(run.fit(data, sets, run.settings_for(RunConfig(method="cc", device="cpu"), data)))


def annotator() -> Tensor:
    """What the network says that makes instance-dependent sets; it is trained by both, and from then on known."""
    logits = annotator_logits(toy(seed=0)[0], epochs=1)
    assert logits is not None
    return torch.from_numpy(logits)


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    os.environ["PAPI_CACHE"] = str(folder / "cache")
    with distributed.joined(torch.device("cpu"), timedelta(seconds=60)):
        seen: dict[Any, Any] = {"gathered": gathered(), "annotators": [annotator() for _ in range(2)]}
        for case in EXACT + ROUNDED + BATCH_NORM:
            seen[title(*case)] = train(*case)
        torch.save(seen, folder / f"{distributed.rank()}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
