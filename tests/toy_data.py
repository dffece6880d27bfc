"""Images with a bright bar whose place tells the class: data that anything learns in a few epochs."""

from pathlib import Path

import numpy as np

from papi.data.dataset import Dataset, ViewRecipe


def make_toy_dataset(classes: int = 4, train: int = 96, test: int = 40, seed: int = 0) -> Dataset:
    """Noisy 8x8 images with a bright bar whose place tells the class: learned in a few epochs."""
    random = np.random.default_rng(seed)

    def split(count: int) -> tuple[np.ndarray, np.ndarray]:
        labels = np.arange(count) % classes
        images = random.integers(0, 80, (count, 1, 8, 8))
        for image, label in zip(images, labels, strict=True):
            image[0, 2 * label : 2 * label + 2] += 150
        return images.astype(np.uint8), labels.astype(np.int64)

    images, labels = split(train)
    test_images, test_labels = split(test)
    return Dataset(
        name="toy",
        class_names=tuple(f"bar {k}" for k in range(classes)),
        samples=images,
        labels=labels,
        test_samples=test_images,
        test_labels=test_labels,
        mean=(0.25,),
        std=(0.25,),
        recipe=ViewRecipe(flip=True, crop_padding=0, cutout=2),
    )


def write_toy_npz(path: Path) -> Path:
    data = make_toy_dataset()
    np.savez(
        path,
        images=data.samples,
        labels=data.labels,
        test_images=data.test_samples,
        test_labels=data.test_labels,
        class_names=np.array(data.class_names),
    )
    return path
