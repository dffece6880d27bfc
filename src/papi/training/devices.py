"""Device, precision, compiler and peak memory of a training run."""

import os
import shutil
import sys
from functools import cache
from pathlib import Path

import torch

from papi import distributed
from papi.config import Precision
from papi.errors import UserError

_CPU_INFO = Path("/proc/cpuinfo")  # of Linux
_BF16_FLAGS = frozenset({"avx512_bf16", "amx_bf16"})
_BF16_CAPABILITY = (8, 0)  # of GPUs: Ampere and later


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


@cache
def has_native_bf16(device: torch.device) -> bool:
    """Whether a device has instructions for bf16. Others emulate it, and are several times slower than in fp32."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= _BF16_CAPABILITY
    return not _BF16_FLAGS.isdisjoint(_processor_flags())


def _processor_flags() -> list[str]:
    """The instruction sets of the processor; none if the system does not list them."""
    try:
        lines = _CPU_INFO.read_text().splitlines()
    except OSError:
        return []
    return next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])


def precision_notes(name: Precision, device: torch.device) -> tuple[str, ...]:
    """A note if a run computes in bf16 on a device that emulates it."""
    if name != "bf16" or has_native_bf16(device):
        return ()
    return (
        f"this run computes in bf16, for which {device} has no instructions, and is several times slower than in fp32: "
        "continue it where it began, or train in a new folder with --precision fp32.",
    )


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
