"""The description of a known dataset, and where to find its files."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from papi.data.dataset import Progress, ViewRecipe
from papi.data.known.readers import Arrays
from papi.data.own.matfiles import read_partial_mat


@dataclass(frozen=True)
class Remote:
    """A file to download, and its place in the data folder."""

    url: str
    target: str
    md5: str
    unpacks_to: str | None = None  # the folder in a .tar.gz


@dataclass(frozen=True)
class Source:
    """One known dataset."""

    title: str
    published: str
    licence: str
    classes: int
    shape: tuple[int, ...]  # of one sample: (C, H, W), or (d,) for a feature table
    counts: tuple[int, int]  # training and test samples
    mean: tuple[float, ...]  # the usual normalisation constants; empty: computed from the data
    std: tuple[float, ...]
    recipe: ViewRecipe
    read: Callable[[Path, Progress], Arrays]
    find: Callable[[Path], Path | None]
    """Finds the files in the data folder or elsewhere; None if they are missing."""
    place: str = ""
    """Which files to put into the data folder if they are downloaded by hand."""
    class_names: tuple[str, ...] = ()
    remotes: tuple[Remote, ...] = ()
    part_of: str | None = None  # the dataset that these images are a subset of; its released settings apply
    twin: str | None = None  # another name of the same images
    hierarchical: bool = False  # by default, candidate sets stay within the superclass

    def hint(self, name: str, data_dir: Path) -> str:
        """Return how to get the files."""
        get = f"download it with `papi datasets get {name} --data-dir {data_dir}`, or " if self.remotes else ""
        return f"{get}put {self.place} into {data_dir} (see {self.published})"


def quickly(read: Callable[[Path], Arrays]) -> Callable[[Path, Progress], Arrays]:
    """Wrap a fast reader that does not report progress."""
    return lambda folder, _: read(folder)


def holding(*names: str, also: tuple[str, ...] = ()) -> Callable[[Path], Path | None]:
    """Return a function that finds the first folder with all these files: the data folder, or one in `also`."""

    def find(data_dir: Path) -> Path | None:
        places = (data_dir / place for place in ("", *also))  # an absolute path is used unchanged
        return next((place for place in places if all(_exists(place, name) for name in names)), None)

    return find


def _exists(folder: Path, name: str) -> bool:
    return (folder / name).exists() or (folder / f"{name}.gz").exists()


def inside_package(_: Path) -> Path:
    """Return the folder of the files that are part of the package; the data folder is ignored."""
    with as_file(files("papi.data.known")) as folder:
        return folder


def feature_source(title: str, classes: int, samples: int, columns: int, file: str) -> Source:
    """Return the source of a feature table in the layout of Southeast University's collection."""

    def find(data_dir: Path) -> Path | None:
        wanted = _letters(file)
        places = (data_dir, data_dir / "realworld")
        found = (path for place in places if place.is_dir() for path in sorted(place.glob("*.mat")))
        return next((path for path in found if _letters(path.name) == wanted), None)

    def read(path: Path) -> Arrays:
        features, candidates, labels = read_partial_mat(path)
        return Arrays(features, labels, candidates=candidates)

    return Source(
        title=title,
        published="https://palm.seu.edu.cn/zhangml/Resources.htm",
        licence="academic use",
        classes=classes,
        shape=(columns,),
        counts=(samples, 0),
        mean=(),
        std=(),
        recipe=ViewRecipe(),
        read=quickly(read),
        find=find,
        place=f"{file} (unpacked)",
    )


def _letters(name: str) -> str:
    """Normalise a file name: copies of a dataset differ in case, spaces and punctuation."""
    return "".join(character for character in name.lower() if character.isalnum())
