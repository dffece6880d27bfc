"""PaPi as a module in your own PyTorch training loop: `python examples/own_loop.py`.

You keep your data loader, augmentation, optimizer and trainer. PaPi needs three things from them: the index of each
image in the training set, its views, and the progress of the run.
"""

import torch
from sklearn.datasets import load_digits
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from papi.data.candidates import uniform
from papi.methods.papi import PaPi, PaPiConfig
from papi.networks import build
from papi.types import Batch, Progress


def weak(images: Tensor) -> Tensor:
    """Shift each batch by up to one pixel; replace this with your own augmentation."""
    across, down = (int(torch.randint(-1, 2, ())) for _ in range(2))
    return images.roll((down, across), (2, 3))


def strong(images: Tensor) -> Tensor:
    """The same, with noise."""
    return weak(images) + 0.3 * torch.randn_like(images)


def main(epochs: int = 10) -> float:
    """Train, and return the accuracy on test digits."""
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.from_numpy(digits.images).float()[:, None] / 8 - 1
    train, test = slice(0, 1400), slice(1400, None)
    candidates = torch.from_numpy(uniform(digits.target[train], 10, flip_rate=0.4, seed=0))

    network = build("small", (1, 8, 8), classes=10, project=True)
    method = PaPi(network, candidates, PaPiConfig(**PaPiConfig.quick(epochs, {})))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
    loader = DataLoader(TensorDataset(torch.arange(1400), images[train]), batch_size=64, shuffle=True)

    for epoch in range(epochs):
        method.train()
        for step, (index, batch) in enumerate(loader):
            progress = Progress(epoch, epochs, step, len(loader), seed=0)
            output = method(Batch(index, (weak(batch), strong(batch)), candidates[index]), progress)
            optimizer.zero_grad()
            output.loss.backward()
            optimizer.step()
        resolved = float((method.confidence.highest()[1].numpy() == digits.target[train]).mean())
        print(f"epoch {epoch + 1}: loss {float(output.loss.detach()):.3f}, resolved labels {resolved:.1%}")

    method.eval()
    with torch.no_grad():
        answers = network(images[test]).logits.argmax(1).numpy()
    accuracy = float((answers == digits.target[test]).mean())
    print(f"accuracy on new digits: {accuracy:.1%}")
    return accuracy


if __name__ == "__main__":
    main()
