"""Photos without a named network: which encoder is chosen, what is said, and that a run never changes its mind."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tiny_encoder
from papi.config import RunConfig
from papi.errors import UserError
from papi.runs.folder import RunFolder
from papi.setup import default_encoder
from papi.setup.default_encoder import holds_photos, with_network
from papi.train import EpochEnded, Finished, Started, Stopped, train

ABSENT = "nowhere_at_all:encoder"


def write_images(folder: Path, side: int) -> Path:
    for number, name in enumerate(("dark", "light")):
        (folder / name).mkdir(parents=True)
        for each in range(6):
            shade = np.random.default_rng(each).integers(0, 100, (side, side + each, 3)) + 150 * number
            Image.fromarray(shade.astype(np.uint8)).save(folder / name / f"{each}.png")
    return folder


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return write_images(tmp_path / "photos", 100)


@pytest.fixture
def at_hand(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make these the encoders to choose from."""
    return lambda *names: monkeypatch.setattr(default_encoder, "ENCODERS", names)


def config(photos: Path) -> RunConfig:
    return RunConfig(data=str(photos), epochs=2, threads=1, device="cpu")


def started(events: list[object]) -> Started:
    [found] = [event for event in events if isinstance(event, Started)]
    return found


def trained_until_the_first_epoch(asked: RunConfig, folder: Path) -> None:
    seen: list[object] = []
    for event in train(asked, folder, lambda: any(isinstance(each, EpochEnded) for each in seen)):
        seen.append(event)
    assert isinstance(seen[-1], Stopped)


def test_an_encoder_that_can_be_had_is_said_recorded_and_kept(
    photos: Path, tmp_path: Path, at_hand: Callable[..., None]
) -> None:
    at_hand(ABSENT, tiny_encoder.NAME)
    trained_until_the_first_epoch(config(photos), tmp_path / "run")
    record = RunFolder(tmp_path / "run").read_record()
    assert record is not None
    assert (record.config["network"], record.config["tune"]) == (tiny_encoder.NAME, "head")
    at_hand(tiny_encoder.NAME + "_larger", tiny_encoder.NAME)  # another one would come first now
    events = list(train(config(photos), tmp_path / "run"))
    assert isinstance(events[-1], Finished)
    begun = started(events)
    assert begun.settings.network == tiny_encoder.NAME
    assert begun.epoch == 1
    assert any(tiny_encoder.NAME in problem for problem in begun.problems)


def test_from_scratch_it_stays_so_when_an_encoder_comes(
    photos: Path, tmp_path: Path, at_hand: Callable[..., None]
) -> None:
    at_hand(ABSENT)
    trained_until_the_first_epoch(config(photos), tmp_path / "run")
    at_hand(tiny_encoder.NAME)
    begun = started(list(train(config(photos), tmp_path / "run")))
    assert (begun.settings.network, begun.settings.tune, begun.epoch) == ("small", None, 1)


def test_without_any_it_says_how_to_get_one(photos: Path, tmp_path: Path, at_hand: Callable[..., None]) -> None:
    at_hand(ABSENT)
    found, notes = with_network(config(photos), RunFolder(tmp_path / "run"))
    assert found == config(photos)
    [note] = notes
    assert "nowhere_at_all" in note
    assert f"--network {ABSENT}" in note


def test_a_run_with_a_named_encoder_is_another_run(photos: Path, tmp_path: Path, at_hand: Callable[..., None]) -> None:
    at_hand(ABSENT)
    named = replace(config(photos), network=tiny_encoder.NAME)
    trained_until_the_first_epoch(named, tmp_path / "run")
    with pytest.raises(UserError, match="network"):
        list(train(config(photos), tmp_path / "run"))


@pytest.mark.parametrize("given", [{"network": "small"}, {"data_size": 32}, {"preset": "paper"}])
def test_what_a_person_chooses_stays(
    given: dict[str, object], photos: Path, tmp_path: Path, at_hand: Callable[..., None]
) -> None:
    at_hand(tiny_encoder.NAME)
    asked = replace(config(photos), **given)  # type: ignore[arg-type]
    assert with_network(asked, RunFolder(tmp_path / "run")) == (asked, ())


def test_what_photos_are(photos: Path, tmp_path: Path) -> None:
    assert holds_photos(config(photos))
    assert not holds_photos(config(write_images(tmp_path / "small", 40)))
    assert not holds_photos(config(tmp_path / "small" / "dark" / "0.png"))
    assert not holds_photos(RunConfig())
    (tmp_path / "empty").mkdir()
    assert not holds_photos(config(tmp_path / "empty"))
    for file in sorted(photos.rglob("*.png"))[:3]:
        file.write_bytes(b"no photo")
    assert holds_photos(config(photos))
