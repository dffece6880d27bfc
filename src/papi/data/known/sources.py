"""The table of known datasets, and the function that loads one of them."""

from dataclasses import replace
from pathlib import Path

from papi.data.dataset import Dataset, Progress, ViewRecipe, refuse, silent
from papi.data.known import readers
from papi.data.known.mini_imagenet import find_mini_imagenet, read_mini_imagenet
from papi.data.known.published import Remote, Source, feature_source, holding, inside_package, quickly
from papi.data.known.readers import Arrays
from papi.data.own.features import checked_sets, without_empty_classes
from papi.data.own.reading import Reading
from papi.errors import UserError

_FASHION = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
_DIGITS = tuple("0123456789")
_IDX = tuple(
    f"{part}-ubyte" for part in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
)
_FASHION_MD5 = (
    "8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe",
    "bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310",
)  # fmt: skip
_FASHION_URL = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
_CIFAR_URL = "https://www.cs.toronto.edu/~kriz"
_SVHN_URL = "http://ufldl.stanford.edu/housenumbers"

_CIFAR100 = Source(
    title="CIFAR-100: 100 classes in 20 superclasses",
    published="https://www.cs.toronto.edu/~kriz/cifar.html",
    licence="not stated",
    classes=100,
    shape=(3, 32, 32),
    counts=(50_000, 10_000),
    mean=(0.50708, 0.48655, 0.44092),
    std=(0.26733, 0.25644, 0.27615),
    recipe=ViewRecipe(policy="cifar10"),
    read=quickly(readers.read_cifar100),
    find=holding("train", "test", "meta", also=("cifar-100-python", "cifar100")),
    place="the unpacked folder cifar-100-python",
    remotes=(
        Remote(
            f"{_CIFAR_URL}/cifar-100-python.tar.gz",
            "cifar-100-python.tar.gz",
            "eb9058c3a382ffc7106e4002c42a8d85",
            "cifar-100-python",
        ),
    ),
)

SOURCES: dict[str, Source] = {
    "fashion-mini": Source(
        title="10,000 + 5,000 images of Fashion-MNIST, part of the package",
        part_of="fashion-mnist",
        published="https://github.com/zalandoresearch/fashion-mnist",
        licence="MIT",
        classes=10,
        class_names=_FASHION,
        shape=(1, 28, 28),
        counts=(10_000, 5_000),
        mean=(0.286,),
        std=(0.353,),
        recipe=ViewRecipe(crop_padding=2, cutout=14),
        read=quickly(readers.read_fashion_mini),
        find=inside_package,
    ),
    "fashion-mnist": Source(
        title="Fashion-MNIST: greyscale images of clothing",
        published="https://github.com/zalandoresearch/fashion-mnist",
        licence="MIT",
        classes=10,
        class_names=_FASHION,
        shape=(1, 28, 28),
        counts=(60_000, 10_000),
        mean=(0.1307,),  # the constants of the released code; the data's own are 0.286 and 0.353
        std=(0.3081,),
        recipe=ViewRecipe(cutout=16),
        read=quickly(readers.read_mnist_like),
        find=holding(*_IDX, also=("FashionMNIST/raw", "fashion-mnist", "/usr/share/datasets/fashion-mnist")),
        place="the four published .gz files in FashionMNIST/raw (Debian's package dataset-fashion-mnist also works)",
        remotes=tuple(
            Remote(f"{_FASHION_URL}/{name}.gz", f"FashionMNIST/raw/{name}.gz", md5)
            for name, md5 in zip(_IDX, _FASHION_MD5, strict=True)
        ),
    ),
    "svhn": Source(
        title="Street View House Numbers, cropped digits",
        published=_SVHN_URL,
        licence="non-commercial",
        classes=10,
        class_names=_DIGITS,
        shape=(3, 32, 32),
        counts=(73_257, 26_032),
        mean=(0.5, 0.5, 0.5),
        std=(0.5, 0.5, 0.5),
        recipe=ViewRecipe(flip=False, crop_padding=0, cutout=20, policy="svhn"),
        read=quickly(readers.read_svhn),
        find=holding("train_32x32.mat", "test_32x32.mat", also=("svhn", "SVHN")),
        place="train_32x32.mat and test_32x32.mat",
        remotes=(
            Remote(f"{_SVHN_URL}/train_32x32.mat", "train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373"),
            Remote(f"{_SVHN_URL}/test_32x32.mat", "test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3"),
        ),
    ),
    "cifar10": Source(
        title="CIFAR-10: animals and vehicles",
        published="https://www.cs.toronto.edu/~kriz/cifar.html",
        licence="not stated",
        classes=10,
        shape=(3, 32, 32),
        counts=(50_000, 10_000),
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.247, 0.243, 0.261),
        recipe=ViewRecipe(policy="cifar10"),
        read=quickly(readers.read_cifar10),
        find=holding("data_batch_1", "test_batch", also=("cifar-10-batches-py", "cifar10")),
        place="the unpacked folder cifar-10-batches-py",
        remotes=(
            Remote(
                f"{_CIFAR_URL}/cifar-10-python.tar.gz",
                "cifar-10-python.tar.gz",
                "c58f30108f718f92721af3b95e74349a",
                "cifar-10-batches-py",
            ),
        ),
    ),
    "cifar100": _CIFAR100,
    "cifar100-h": replace(
        _CIFAR100, title="CIFAR-100-H: candidates within the superclass", twin="cifar100", hierarchical=True
    ),
    "mini-imagenet": Source(
        title="Mini-ImageNet: 100 classes, each split into training and test images",
        published="https://image-net.org",
        licence="research only",
        classes=100,
        shape=(3, 84, 84),
        counts=(50_000, 10_000),
        mean=(0.485, 0.456, 0.406),
        std=(0.229, 0.224, 0.225),
        recipe=ViewRecipe(crop_padding=0, resized_crop=64, policy="imagenet", cutout=32),
        read=read_mini_imagenet,
        find=find_mini_imagenet,
        place="a folder mini-imagenet with one subfolder for each of the 100 classes",
    ),
    "digits": Source(
        title="Handwritten digits of 8 x 8 pixels, from scikit-learn",
        published="https://archive.ics.uci.edu/dataset/80",
        licence="CC BY 4.0",
        classes=10,
        class_names=_DIGITS,
        shape=(1, 8, 8),
        counts=(1_797, 0),
        mean=(),
        std=(),
        recipe=ViewRecipe(flip=False, crop_padding=1, cutout=3),
        read=quickly(readers.read_digits),
        find=inside_package,
    ),
    "lost": feature_source("Lost: faces in a television series", 16, 1122, 108, "lost.mat"),
    "msrcv2": feature_source("MSRCv2: objects in photos", 23, 1758, 48, "MSRCv2.mat"),
    "birdsong": feature_source("BirdSong: bird calls", 13, 4998, 38, "BirdSong.mat"),
    "soccer-player": feature_source("Soccer Player: faces in the news", 171, 17472, 279, "Soccer Player.mat"),
    "yahoo-news": feature_source("Yahoo! News: faces in the news", 219, 22991, 163, "Yahoo! News.mat"),
    "fg-net": feature_source("FG-NET: age of faces", 78, 1002, 262, "FG-NET.mat"),
    "italian": feature_source("Italian: part-of-speech tagging", 90, 21878, 519, "Italian.mat"),
    "mirflickr": feature_source("Mirflickr: tagged photos", 14, 2780, 1536, "Mirflickr.mat"),
}


def load_known(name: str, data_dir: Path, how: Reading, progress: Progress = silent) -> Dataset:
    """Load a known dataset from its published files, without normalisation statistics and validation set."""
    source = SOURCES[name]
    folder = source.find(data_dir)
    if folder is None:
        raise UserError(f"{name} is not on this machine: {source.hint(name, data_dir)}.")
    if how.size is not None:
        raise UserError(f"--data.size is only for your own images, and {name} has a fixed size: leave it out.")
    arrays = source.read(folder, progress)
    notes = _check(name, source, arrays)
    dataset = Dataset(
        name=name,
        class_names=arrays.class_names or source.class_names or tuple(str(k) for k in range(source.classes)),
        samples=arrays.samples,
        labels=arrays.labels,
        candidates=arrays.candidates,
        test_samples=arrays.test_samples,
        test_labels=arrays.test_labels,
        mean=source.mean,
        std=source.std,
        recipe=source.recipe,
        groups=arrays.groups,
        notes=notes,
    )
    if dataset.candidates is not None and how.annotations is None:
        dataset = checked_sets(dataset, str(folder), how.rules(refuse))
    if how.split == "train":
        return without_empty_classes(dataset)
    if dataset.test_samples is None:
        raise UserError(f"{name} has no published test split to train on: leave out --data.split.")
    return replace(
        dataset, samples=dataset.test_samples, labels=dataset.test_labels, test_samples=None, test_labels=None
    )


def _check(name: str, source: Source, arrays: Arrays) -> tuple[str, ...]:
    """Reject files that cannot be the dataset; return a note if they contain only part of it."""
    if arrays.samples.shape[1:] != source.shape:
        raise UserError(
            f"the files of {name} have samples of shape {arrays.samples.shape[1:]} instead of {source.shape}: download "
            "them again."
        )
    for labels in (arrays.labels, arrays.test_labels):
        if labels is not None and len(labels) and not 0 <= labels.min() <= labels.max() < source.classes:
            raise UserError(
                f"the files of {name} have labels that are not between 0 and {source.classes - 1}: download them again."
            )
    if arrays.candidates is not None and arrays.candidates.shape[1] != source.classes:
        raise UserError(
            f"the files of {name} have {arrays.candidates.shape[1]} classes instead of {source.classes}: download them "
            "again."
        )
    counts = (len(arrays.samples), 0 if arrays.test_samples is None else len(arrays.test_samples))
    if counts == source.counts:
        return ()
    if counts[0] > source.counts[0] or counts[1] > source.counts[1]:
        raise UserError(
            f"the files of {name} have {_plus(counts)} samples instead of {_plus(source.counts)}: download them again."
        )
    return (f"this is only part of {name}: {_plus(counts)} of {_plus(source.counts)} published samples.",)


def _plus(counts: tuple[int, int]) -> str:
    return " + ".join(f"{count:,}" for count in counts if count)
