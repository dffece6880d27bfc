"""Mini-ImageNet as a classification benchmark: each of the 100 classes has training and test images."""

from pathlib import Path

import numpy as np

from papi.data.dataset import Progress, refuse
from papi.data.images.cache import Wanted, read_images
from papi.data.known.readers import Arrays
from papi.data.own.folders import classes_below, images_by_class
from papi.errors import UserError

CLASSES = 100
STORED, USED = 84, 64  # sides in pixels: training uses 64 x 64 random crops of 84 x 84 images; test images are 64 x 64
_CENTRE = 224  # both are made from a centre crop of the original
_TEST_SHARE = 6  # one image in six: 100 of the 600 of a class
_FOLDERS = ("mini-imagenet", "miniImageNet", "mini_imagenet")
_FEW_SHOT_SPLITS = ("train", "val", "test")  # many copies divide the 100 classes among these folders


def find_mini_imagenet(data_dir: Path) -> Path | None:
    """Return the folder of Mini-ImageNet under one of its usual names."""
    return next((data_dir / name for name in _FOLDERS if (data_dir / name).is_dir()), None)


def read_mini_imagenet(folder: Path, progress: Progress) -> Arrays:
    """Read the images. In each class, the first five sixths by file name are for training, the rest for testing."""
    class_folders = _class_folders(folder)
    if len(class_folders) != CLASSES:
        raise UserError(
            f"{folder} has {len(class_folders)} class folders instead of {CLASSES}: add the missing classes."
        )
    train: list[tuple[Path, int]] = []
    test: list[tuple[Path, int]] = []
    for number, place in enumerate(class_folders):
        images = [file for file, _ in images_by_class(place.parent, (place.name,), refuse)]
        if len(images) < 2:
            raise UserError(f"{place} has {len(images)} images: add at least two, one to train and one to test.")
        kept = len(images) - max(1, len(images) // _TEST_SHARE)
        train += [(file, number) for file in images[:kept]]
        test += [(file, number) for file in images[kept:]]
    return Arrays(
        *_decoded(train, STORED, progress),
        *_decoded(test, USED, progress),
        class_names=tuple(place.name for place in class_folders),
    )


def _class_folders(folder: Path) -> list[Path]:
    splits = [folder / name for name in _FEW_SHOT_SPLITS if (folder / name).is_dir()]
    places = [place / name for place in splits or [folder] for name in classes_below(place)]
    return sorted(places, key=lambda place: place.name)


def _decoded(files: list[tuple[Path, int]], side: int, progress: Progress) -> tuple[np.ndarray, np.ndarray]:
    images = read_images([file for file, _ in files], Wanted(side, _CENTRE, colour=True), progress=progress)
    return images, np.array([number for _, number in files], np.int64)
