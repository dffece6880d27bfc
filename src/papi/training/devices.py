"""Where and in what a network computes: devices, precision, compilers, memory."""

import os
import shutil
import sys

import torch

from papi import distributed
from papi.config import Precision
from papi.errors import UserError


def require_system() -> None:
    """Stop on Windows: locks, signals and memory are those of Linux and macOS. A trained model works anywhere."""
    if sys.platform == "win32":
        raise UserError(
            "PaPi trains on Linux and macOS, and this is Windows: train in WSL or on another machine, then use the "
            "model here with papi.load."
        )


def find_device(name: str) -> torch.device:
    """A device by name; `auto` takes a GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = distributed.own_gpu(torch.device(name))
        if device.type not in ("cpu", "cuda"):
            raise UserError(f"--device {name} is not supported. Use cpu, cuda or auto.")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"--device {name} is not available on this machine. Use cpu or auto.") from error
    return device


def half_precision(name: Precision, device: torch.device) -> tuple[torch.dtype | None, torch.amp.GradScaler | None]:
    """What `fp32`, `bf16` or `fp16` means on a device: the type to compute in, if another, and a scaler, if needed."""
    if name == "fp16" and device.type == "cpu":
        raise UserError("--precision fp16 needs a GPU: processors have no fast arithmetic for it. Use fp32 or bf16.")
    dtype = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[name]
    return dtype, torch.amp.GradScaler(device.type) if name == "fp16" else None


def require_compiler(device: torch.device) -> None:
    """Stop if there is nothing to compile with for a CPU."""
    compiler = os.environ.get("CXX", "g++")
    if device.type == "cpu" and shutil.which(compiler) is None:
        raise UserError(f"--compile needs the C++ compiler {compiler}, which is not here: install it, or leave it out.")


def peak_memory(device: torch.device) -> int:
    """The most bytes so far: of tensors on a GPU, else of the whole process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    import resource  # Windows has none: it cannot train, but predicts

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
