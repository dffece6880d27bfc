"""Pictures of images: photos on disk, else what the network sees."""

import base64
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from papi.config import CandidatesConfig, RunConfig
from papi.report import pictures
from papi.report.pictures import LARGEST, LOSSLESS, THUMBNAIL, picture, small_images
from papi.report.run import Run
from runs_in_memory import run_of


def opened(uri: str) -> Image.Image:
    head, _, content = uri.partition(",")
    assert head in ("data:image/png;base64", "data:image/jpeg;base64")
    return Image.open(io.BytesIO(base64.b64decode(content)))


def showing(image: np.ndarray) -> Run:
    run = run_of([[0.5, 0.5]])
    assert run.dataset is not None
    run.dataset = replace(run.dataset, samples=image[None])
    return run


@settings(deadline=None)
@given(st.sampled_from([1, 3]), st.integers(1, LOSSLESS), st.integers(1, LOSSLESS), st.integers(0, 2**32 - 1))
def test_small_images_keep_every_pixel(channels: int, height: int, width: int, seed: int) -> None:
    image = np.random.default_rng(seed).integers(0, 256, (channels, height, width), np.uint8)
    shown = np.asarray(opened(picture(showing(image), 0)))
    assert np.array_equal(shown.reshape(height, width, channels), image.transpose(1, 2, 0))


@pytest.mark.parametrize("shape", [(1, 65, 65), (3, 100, 400), (3, 1000, 20)])
def test_large_images_become_small_and_keep_their_proportions(shape: tuple[int, int, int]) -> None:
    image = opened(picture(showing(np.full(shape, 128, np.uint8)), 0))
    assert image.format == "JPEG"
    assert max(image.size) == min(LARGEST, max(shape[1:]))
    assert image.size[0] / image.size[1] == pytest.approx(shape[2] / shape[1], rel=0.4)


def with_side(side: int) -> Run:
    run = run_of([[0.5, 0.5]])
    assert run.dataset is not None
    run.dataset = replace(run.dataset, samples=np.zeros((1, 1, side, side), np.uint8))
    return run


def test_pixels_are_shown_as_they_are_if_all_images_are_small() -> None:
    gone = run_of([[0.5, 0.5]])
    gone.dataset = None
    assert small_images([with_side(LOSSLESS), gone])
    assert not small_images([with_side(LOSSLESS), with_side(LOSSLESS + 1)])


def test_pictures_are_there_if_the_data_are() -> None:
    run = run_of([[0.6, 0.4]], test_labels=[0])
    assert picture(run, 0).startswith("data:image/png")
    assert picture(run, 0, test=True).startswith("data:image/png")
    assert pictures.file_name(run, 0) == ""
    no_tests = run_of([[0.6, 0.4]])
    assert picture(no_tests, 0, test=True) == ""
    assert no_tests.dataset is not None
    no_tests.dataset = replace(no_tests.dataset, samples=np.zeros((1, 5), np.float32))
    assert picture(no_tests, 0) == ""
    no_tests.dataset = None
    assert picture(no_tests, 0) == ""
    assert pictures.file_name(no_tests, 0) == ""


def with_photos(folder: Path, data: str, names: tuple[str, ...], features: bool = False) -> Run:
    """A run on photos of 600 x 300 pixels in a folder."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (600, 300), "red").save(folder / name, "JPEG")
    run = run_of([[0.5, 0.5]] * len(names))
    assert run.dataset is not None
    samples = np.zeros((len(names), 4), np.float32) if features else np.zeros((len(names), 3, 32, 32), np.uint8)
    run.dataset = replace(run.dataset, samples=samples, file_names=names)
    run.config = RunConfig(data=data, candidates=CandidatesConfig())
    return run


def test_the_photo_is_shown_whole(tmp_path: Path) -> None:
    run = with_photos(tmp_path / "photos", str(tmp_path / "photos"), ("a/one.jpg", "b/two.jpg"))
    shown = opened(picture(run, 1, side=THUMBNAIL))
    assert shown.size == (320, 160)
    assert pictures.crop(run) == (1.0, 1.0)
    assert not small_images([run])
    assert pictures.links(run, tmp_path / "runs" / "x") == "../../photos/"
    (tmp_path / "photos/b/two.jpg").unlink()
    assert opened(picture(run, 1)).size == (32, 32)  # what the network saw is still there
    (tmp_path / "photos/a/one.jpg").write_bytes(b"no image")
    assert opened(picture(run, 0)).size == (32, 32)


def test_photos_of_a_feature_table_lie_beside_it(tmp_path: Path) -> None:
    run = with_photos(tmp_path, str(tmp_path / "features.npz"), ("a/one.jpg",), features=True)
    assert opened(picture(run, 0)).size == (160, 80)
    assert pictures.crop(run) == (0.0, 0.0)


@pytest.mark.parametrize("name", ["../secret.jpg", "/etc/hostname", "link.jpg", "no.jpg"])
def test_names_that_lead_out_show_nothing(tmp_path: Path, name: str) -> None:
    run = with_photos(tmp_path / "photos", str(tmp_path / "photos"), ("one.jpg",), features=True)
    Image.new("RGB", (8, 8)).save(tmp_path / "secret.jpg")
    (tmp_path / "photos" / "link.jpg").symlink_to(tmp_path / "secret.jpg")
    assert run.dataset is not None
    run.dataset = replace(run.dataset, file_names=(name, "one.jpg"), samples=np.zeros((2, 4), np.float32))
    assert picture(run, 0) == ""
    assert picture(run, 1) != ""
