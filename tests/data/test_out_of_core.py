"""Training on images that are larger than the memory a process may have: they stay in their file."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from command import NEEDS_PROC

COUNT, SHAPE = 6000, (3, 256, 256)  # 1.2 GB
LIMIT = 1100  # MB; torch alone takes 300

# The array is too large for a writable mapping under this limit, which counts what a process can write to.
TRAINING = """
import resource, signal, sys, threading
from pathlib import Path
import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
from papi.config import RunConfig
from papi.data.dataset import Dataset
from papi.files.npz import map_npy
from papi.setup import build
from papi.train import Stepped, fit, settings_for

build.IN_CACHE = 0.0

class Pooled(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.layers = nn.Sequential(nn.AvgPool2d(32), nn.Flatten(), nn.Linear(3 * 8 * 8, 8))
    def forward(self, images):
        return self.layers(images)

file, megabytes, signalled = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "stop"
resource.setrlimit(resource.RLIMIT_DATA, (megabytes << 20,) * 2)
images = map_npy(Path(file))
assert not images.flags.writeable
labels = np.arange(len(images)) % 3
sets = np.arange(3) != ((labels + 1) % 3)[:, None]
data = Dataset("large", ("a", "b", "c"), images, (0.5,) * 3, (0.25,) * 3, labels=labels)
config = RunConfig(method="proden", device="cpu", threads=1, epochs=1, batch_size=40, data_holdout=0)
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
said = []
for event in fit(data, sets, settings_for(config, data), None, lambda: bool(asked), network=Pooled):
    if isinstance(event, Stepped) and event.progress.step == 1:
        said += [each.name for each in threading.enumerate() if each.name.startswith("papi-ahead")]
        if signalled:
            signal.raise_signal(signal.SIGTERM)
left = [each.name for each in threading.enumerate() if each.name.startswith("papi-ahead")]
print(type(event).__name__, len(said), len(left))
"""


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A sparse file: zeros that take no room on disk."""
    file = tmp_path / "images.npy"
    with file.open("wb") as stream:
        header = {"descr": "|u1", "fortran_order": False, "shape": (COUNT, *SHAPE)}
        np.lib.format.write_array_header_1_0(stream, header)
        stream.truncate(stream.tell() + COUNT * int(np.prod(SHAPE)))
    return file


@NEEDS_PROC
@pytest.mark.parametrize(
    ("end", "said"), [("stop", "Stopped 1 0"), pytest.param("all", "Finished 1 0", marks=pytest.mark.slow)]
)
def test_images_larger_than_memory(end: str, said: str, images: Path) -> None:
    """The thread that reads ahead is gone at the end, also when the run was asked to stop."""
    command = [sys.executable, "-W", "error", "-c", TRAINING, images, str(LIMIT), end]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == said.split()
