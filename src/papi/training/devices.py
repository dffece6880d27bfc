"""Device, precision, compiler and peak memory of a training run."""

import os
import shutil
import sys

import torch

from papi import distributed
from papi.config import Precision
from papi.errors import UserError


def require_system() -> None:
    """Stop on Windows: training needs the locks and signals of Linux and macOS. A trained model works anywhere."""
    if sys.platform == "win32":
        raise UserError(
            "training needs Linux or macOS, and this is Windows: train in WSL or on another machine, then use the "
            "model here with papi.load."
        )


def find_device(name: str) -> torch.device:
    """Find a device by name; `auto` uses a GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = distributed.own_gpu(torch.device(name))
        if device.type not in ("cpu", "cuda"):
            raise UserError(f"--device {name} is not supported: use cpu, cuda or auto.")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"--device {name} is not available on this machine: use cpu or auto.") from error
    return device


def half_precision(name: Precision, device: torch.device) -> tuple[torch.dtype | None, torch.amp.GradScaler | None]:
    """The autocast type for `fp32` (None), `bf16` or `fp16` on a device, and a gradient scaler if it needs one."""
    if name == "fp16" and device.type == "cpu":
        raise UserError("--precision fp16 needs a GPU: use fp32 or bf16.")
    dtype = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[name]
    return dtype, torch.amp.GradScaler(device.type) if name == "fp16" else None


def require_compiler(device: torch.device) -> None:
    """Stop if the device is a CPU and there is no C++ compiler."""
    compiler = os.environ.get("CXX", "g++")
    if device.type == "cpu" and shutil.which(compiler) is None:
        raise UserError(
            f"--compile needs the C++ compiler {compiler}, which was not found: install it or leave it out."
        )


def peak_memory(device: torch.device) -> int:
    """Peak memory so far in bytes: of the tensors on a GPU, or of the whole process on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    import resource  # not available on Windows, which can predict but not train

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
