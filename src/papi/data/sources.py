"""The table of known datasets, and the way from what a person typed to a `Dataset`."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from papi.data.dataset import Dataset, ViewRecipe
from papi.data.readers import read_idx_folder, read_npz
from papi.errors import UserError, unknown

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # images, labels, test images, test labels


@dataclass(frozen=True)
class Source:
    """One known dataset."""

    title: str
    published: str
    licence: str
    class_names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    recipe: ViewRecipe
    read: Callable[[Path], Arrays]
    find: Callable[[Path], Path | None]
    """The folder below the data folder that holds the files, if it is there."""
    hint: str = ""
    """What to do when it is not."""


def _read_fashion_mini(folder: Path) -> Arrays:
    with np.load(folder / "fashion_mini.npz") as file:
        return (
            file["train_images"][:, None],
            file["train_labels"].astype(np.int64),
            file["test_images"][:, None],
            file["test_labels"].astype(np.int64),
        )


def _inside_package(_: Path) -> Path:
    with as_file(files("papi.data")) as folder:
        return folder


def _read_fashion_mnist(folder: Path) -> Arrays:
    return (*read_idx_folder(folder, "train"), *read_idx_folder(folder, "test"))


def _find_fashion_mnist(data_dir: Path) -> Path | None:
    folders = (data_dir / "FashionMNIST" / "raw", data_dir / "fashion-mnist", Path("/usr/share/datasets/fashion-mnist"))
    return next((folder for folder in folders if (folder / "train-images-idx3-ubyte.gz").exists()), None)


_FASHION_CLASSES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip

SOURCES = {
    "fashion-mini": Source(
        title="10,000 + 5,000 images of Fashion-MNIST, embedded",
        published="https://github.com/zalandoresearch/fashion-mnist",
        licence="MIT",
        class_names=_FASHION_CLASSES,
        mean=(0.286,),
        std=(0.353,),
        recipe=ViewRecipe(crop_padding=2, cutout=14),
        read=_read_fashion_mini,
        find=_inside_package,
    ),
    "fashion-mnist": Source(
        title="Fashion-MNIST, 60,000 + 10,000 images",
        published="https://github.com/zalandoresearch/fashion-mnist",
        licence="MIT",
        class_names=_FASHION_CLASSES,
        mean=(0.1307,),  # the constants of the released code; the data's own are 0.286 and 0.353
        std=(0.3081,),
        recipe=ViewRecipe(crop_padding=4, cutout=16),
        read=_read_fashion_mnist,
        find=_find_fashion_mnist,
        hint="install Debian's package dataset-fashion-mnist, or put the four published .gz files into "
        "FashionMNIST/raw below the folder given with --data-dir",
    ),
}


def load(data: str, data_dir: Path) -> Dataset:
    """A dataset by name, or from a file of one's own."""
    if data not in SOURCES:
        if Path(data).suffix == ".npz" or Path(data).exists():
            return read_npz(Path(data))
        raise unknown("dataset", data, [*SOURCES, "a path to an .npz file"])
    source = SOURCES[data]
    folder = source.find(data_dir)
    if folder is None:
        raise UserError(f"{data} is not on this machine: {source.hint}.")
    images, labels, test_images, test_labels = source.read(folder)
    return Dataset(
        name=data,
        class_names=source.class_names,
        images=images,
        labels=labels,
        test_images=test_images,
        test_labels=test_labels,
        mean=source.mean,
        std=source.std,
        recipe=source.recipe,
    )
