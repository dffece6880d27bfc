"""Make the embedded dataset `fashion-mini` from the published files of Fashion-MNIST.

    python recipes/make_fashion_mini.py FOLDER [OUT]

FOLDER contains the four published files (train-images-idx3-ubyte.gz …), for instance /usr/share/datasets/fashion-mnist
of Debian's package `dataset-fashion-mnist`. The first 1,000 training and 500 test images of each class are kept, in the
published order, so the result is reproducible.
"""

import sys
from pathlib import Path

import numpy as np

from papi.data.known.readers import read_idx_folder

TRAIN_PER_CLASS, TEST_PER_CLASS = 1000, 500
DEFAULT_OUT = Path(__file__).parents[1] / "src/papi/data/known/fashion_mini.npz"


def first_of_each_class(labels: np.ndarray, count: int) -> np.ndarray:
    """Positions of the first `count` examples of each class, in ascending order."""
    return np.sort(np.concatenate([np.flatnonzero(labels == k)[:count] for k in range(labels.max() + 1)]))


def main() -> None:
    """Write the images of the folder that the command line names."""
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    out = Path(sys.argv[2]) if len(sys.argv) == 3 else DEFAULT_OUT
    arrays = {}
    for split, count in (("train", TRAIN_PER_CLASS), ("test", TEST_PER_CLASS)):
        images, labels = read_idx_folder(Path(sys.argv[1]), split)
        keep = first_of_each_class(labels, count)
        arrays[f"{split}_images"] = images[keep, 0]
        arrays[f"{split}_labels"] = labels[keep].astype(np.uint8)
    np.savez_compressed(out, **arrays)
    train, test = len(arrays["train_labels"]), len(arrays["test_labels"])
    print(f"{out}: {train} + {test} images, {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
