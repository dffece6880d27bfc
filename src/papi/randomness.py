"""Every random number of a run. A draw depends only on (seed, stream, epoch, step), never on what was drawn before.

So there is no generator state to save: a run that continues after a kill draws what it would have drawn anyway.
"""

import hashlib

import numpy as np


def draws(seed: int, stream: str, epoch: int = 0, step: int = 0) -> np.random.Generator:
    """The generator for one purpose (`stream`) at one place of the run."""
    name = int.from_bytes(hashlib.sha256(stream.encode()).digest()[:8], "little")
    # Philox counts up in the low words; epoch and step in the high words keep all places apart.
    return np.random.Generator(np.random.Philox(key=[seed, name], counter=[0, 0, step, epoch]))


def seed_torch(seed: int, stream: str, epoch: int = 0, step: int = 0) -> None:
    """Seed torch's global generator (weight initialisation, dropout) from the same source."""
    import torch  # here, so that what reads data without training starts quickly

    torch.manual_seed(int(draws(seed, stream, epoch, step).integers(2**63)))
