"""Images inside tables: parquet shards, dataset folders of Hugging Face, dataset objects; unpacked and loaded."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import papi
from papi.data.load import load
from papi.data.own.reading import Reading
from papi.errors import UserError

pa = pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
parquet = pytest.importorskip("pyarrow.parquet")
NAMES = ["rose", "tulip", "violet"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPI_CACHE", str(tmp_path / "cache"))


def png(value: int) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.full((8, 8, 3), value, np.uint8)).save(stream, "PNG")
    return stream.getvalue()


def shard(path: Path, columns: dict[str, Any], class_labels: tuple[str, ...] = (), first: int = 0) -> Path:
    """A parquet file as Hugging Face writes it."""
    count = len(next(iter(columns.values())))
    images = [{"bytes": png(first + number), "path": f"{number}.png"} for number in range(count)]
    features = {"image": {"_type": "Image"}} | {
        name: {"names": NAMES, "_type": "ClassLabel"}
        if not isinstance(columns[name][0], list)
        else {"feature": {"names": NAMES, "_type": "ClassLabel"}, "_type": "List"}
        for name in class_labels
    }
    table = pa.table({"image": images} | columns)
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, path)
    return path


def sets_of(data: object) -> list[set[str]]:
    dataset = load(str(data), Path("data"), Reading(test_share=0))
    assert dataset.candidates is not None
    return [{dataset.class_names[k] for k in np.flatnonzero(row)} for row in dataset.candidates]


def test_a_file_with_candidates(tmp_path: Path) -> None:
    file = shard(tmp_path / "photos.parquet", {"candidates": [[0, 1], [2], [1, 2]]}, ("candidates",))
    assert sets_of(file) == [{"rose", "tulip"}, {"violet"}, {"tulip", "violet"}]
    dataset = load(str(file), Path("data"), Reading(test_share=0))
    assert dataset.samples[:, 0, 0, 0].tolist() == [0, 1, 2]  # in the order of the rows
    assert dataset.name == "photos"
    assert dataset.file_names == ("0000000.png", "0000001.png", "0000002.png")


def test_shards_with_labels_and_a_test_part(tmp_path: Path) -> None:
    shard(tmp_path / "d" / "data" / "train-00000-of-00002.parquet", {"label": [0, 1]}, ("label",))
    shard(tmp_path / "d" / "data" / "train-00001-of-00002.parquet", {"label": [2, 0]}, ("label",), first=2)
    shard(tmp_path / "d" / "data" / "test-00000-of-00001.parquet", {"label": [1]}, ("label",), first=9)
    dataset = load(str(tmp_path / "d"), Path("data"), Reading())
    assert dataset.class_names == tuple(NAMES)
    assert dataset.labels is not None
    assert dataset.test_labels is not None
    assert sorted(dataset.labels.tolist()) == [0, 0, 1, 2]
    assert dataset.test_labels.tolist() == [1]
    assert dataset.test_samples is not None
    assert dataset.test_samples[0, 0, 0, 0] == 9


def test_bytes_alone_are_images_too(tmp_path: Path) -> None:
    table = pa.table({"img": [png(1), png(2)], "candidates": [["rose"], ["tulip", "rose"]]})
    parquet.write_table(table, tmp_path / "x.parquet")
    assert sets_of(tmp_path / "x.parquet") == [{"rose"}, {"tulip", "rose"}]


def test_the_column_of_images_can_be_named(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    images = {"image": [png(1), png(2)], "close_up": [{"bytes": png(value), "path": None} for value in (8, 9)]}
    parquet.write_table(pa.table(images | {"candidates": [["rose"], ["tulip", "rose"]]}), file)

    def pixels(column: str | None) -> list[int]:
        dataset = load(str(file), Path("data"), Reading(test_share=0, image_column=column))
        found: list[int] = dataset.samples[:, 0, 0, 0].tolist()
        return found

    assert [pixels(None), pixels("close_up"), pixels("image")] == [[1, 2], [8, 9], [1, 2]]
    with pytest.raises(UserError, match=r"x\.parquet: unknown image column 'closeup': did you mean 'close_up'\?"):
        pixels("closeup")
    with pytest.raises(UserError, match=r"unknown image column 'candidates'"):
        pixels("candidates")


@pytest.mark.parametrize("data", ["fashion-mini", "photos.csv"])
def test_other_data_have_no_column_of_images(data: str, tmp_path: Path) -> None:
    (tmp_path / "photos.csv").write_text("a,candidates\n1,rose\n")
    name = str(tmp_path / data) if "." in data else data
    with pytest.raises(UserError, match=r"--data\.image-column requires"):
        load(name, Path("data"), Reading(image_column="img"))


def test_a_file_without_images_stays_a_table_of_features(tmp_path: Path) -> None:
    table = pa.table({"a": [1.0, 2.0, 3.0], "candidates": [["rose"], ["tulip"], ["rose", "tulip"]]})
    parquet.write_table(table, tmp_path / "x.parquet")
    assert load(str(tmp_path / "x.parquet"), Path("data"), Reading(test_share=0)).kind == "features"


@pytest.mark.parametrize(
    ("columns", "names", "message"),
    [
        ({"label": [0, 7]}, ("label",), "row 2 has the label 7: it must be 0 to 2"),
        ({"label": ["a", "../b"]}, (), r"row 2 has the label '\.\./b', which cannot be a folder name"),
        ({"candidates": [["a"], []]}, (), "line 2: the candidate set is empty"),
    ],
)
def test_rows_that_do_not_fit(columns: dict[str, Any], names: tuple[str, ...], message: str, tmp_path: Path) -> None:
    shard(tmp_path / "x.parquet", columns, names)
    with pytest.raises(UserError, match=message):
        load(str(tmp_path / "x.parquet"), Path("data"), Reading())


def test_a_row_without_an_image_or_with_a_path_to_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(png(3))
    for cell in ({"bytes": None, "path": str(tmp_path / "secret.png")}, {"bytes": b"", "path": None}):
        table = pa.table({"image": pa.array([{"bytes": png(1), "path": None}, cell]), "label": ["a", "b"]})
        parquet.write_table(table, tmp_path / "x.parquet")
        with pytest.raises(UserError, match="row 2 has no image"):
            load(str(tmp_path / "x.parquet"), Path("data"), Reading())
    assert not list((tmp_path / "cache" / "unpacked").iterdir())  # nothing half


@pytest.mark.parametrize(
    ("content", "message"), [(b"PAR1", "train-1.parquet is not a readable"), (None, "row 2 has no image")]
)
def test_a_later_shard_that_does_not_fit(content: bytes | None, message: str, tmp_path: Path) -> None:
    shard(tmp_path / "d" / "train-0.parquet", {"label": ["a"]})
    later = tmp_path / "d" / "train-1.parquet"
    if content is None:
        parquet.write_table(pa.table({"picture": [png(1)], "label": ["b"]}), later)
    else:
        later.write_bytes(content)
    with pytest.raises(UserError, match=message):
        load(str(tmp_path / "d"), Path("data"), Reading())


def test_a_dataset_folder_by_its_name_and_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets", reason="the extra `hub` is not installed")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # the environment is read at the import
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    shard(tmp_path / "d" / "data" / "train-0.parquet", {"candidates": [[0, 1], [2]]}, ("candidates",))
    shard(tmp_path / "d" / "data" / "test-0.parquet", {"candidates": [[1], [2]]}, ("candidates",))
    assert sets_of(f"hf:{tmp_path / 'd'}:train") == [{"rose", "tulip"}, {"violet"}]
    assert sets_of(f"hf:{tmp_path / 'd'}:test") == [{"tulip"}, {"violet"}]
    for wrong in (f"hf:{tmp_path / 'd'}:valid", "hf:x", f"hf:{tmp_path / 'nowhere'}:train"):
        with pytest.raises(UserError, match="hf:"):
            sets_of(wrong)


def test_dataset_objects(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="the extra `hub` is not installed")
    features = datasets.Features(
        {"photo": datasets.Image(), "candidates": datasets.Sequence(datasets.ClassLabel(names=NAMES))}
    )
    images = [Image.fromarray(np.full((8, 8, 3), value, np.uint8)) for value in (10, 20)]
    made = datasets.Dataset.from_dict({"photo": images, "candidates": [[0, 2], [1]]}, features)
    folder = papi.unpack(made, tmp_path / "photos")
    with pytest.raises(UserError, match="did you mean 'photo'"):
        papi.unpack(made, tmp_path / "others", "photos")
    assert sets_of(folder) == [{"rose", "violet"}, {"tulip"}]
    found = papi.read_candidates(made)
    assert found.class_names == tuple(NAMES)
    assert found.candidates.tolist() == [[True, False, True], [False, True, False]]
    with pytest.raises(UserError, match="exists"):
        papi.unpack(made, tmp_path / "photos")
