"""Kills while photos are embedded: what is on disk is not computed again, and the table ends bit-equal."""

import multiprocessing
import random
import time
from pathlib import Path

import numpy as np
import pytest
from embedding_run import PIECE, PREPARATION, VIEWS, name_of, photos_in, run
from PIL import Image
from preloaded import Preloaded
from tiny_runs import kill_often, result, train, training_seconds

import tiny_encoder
from papi.data.images.embeddings import Embedder
from papi.data.images.photos import content_of

PHOTOS, SECONDS, THREADS = 24, 0.02, 2
IN_FLIGHT = PIECE + 2 * THREADS + 1  # a piece that is not complete, and what the threads have begun


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("photos")
    for k in range(PHOTOS):
        coarse = np.random.default_rng(k).integers(0, 256, (5, 5, 3), np.uint8)
        Image.fromarray(coarse).resize((20 + k, 22), Image.Resampling.BICUBIC).save(place / f"{k:02}.png")
    return place


def on_disk(cache: Path) -> set[bytes]:
    """The contents of the photos whose rows are kept."""
    return {content for file in cache.rglob("*.npy") for content in np.load(file)["content"].tolist()}


def embedded_again(folder: Path, cache: Path, work: Path, kills: int, seed: int) -> int:
    """Kill the work so many times, let it end, and count the photos that were embedded more than once."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["papi.data.images.embeddings"])  # torch is loaded once, for all of them
    photos, chance, notes = photos_in(folder), random.Random(seed), work / "notes"
    embedder = Embedder(photos, lambda images: images, PREPARATION, VIEWS)
    names = {}
    for number in range(PHOTOS):
        content = content_of(photos[number])
        names[name_of(embedder.inputs(photos[number], content)[0])] = content
    notes.touch()
    for last in [False] * kills + [True]:
        kept, seen = on_disk(cache), notes.read_text().split()
        process = processes.Process(target=run, args=(folder, cache, notes, SECONDS))
        process.start()
        while process.is_alive() and notes.read_text().split() == seen and not last:
            time.sleep(0.02)  # until it has begun to encode
        if not last:
            time.sleep(chance.uniform(0, PHOTOS * SECONDS / THREADS))
            process.kill()
        process.join()
        assert process.exitcode in ((0,) if last else (0, -9))
        begun = notes.read_text().split()[len(seen) :]
        assert kept.isdisjoint(names[name] for name in begun), "what was on disk is not computed again"
        assert len(begun) - len(on_disk(cache) - kept) <= IN_FLIGHT, "only what was in flight is lost"
    return len(notes.read_text().split()) - PHOTOS


def check(folder: Path, work: Path, kills: int, seed: int) -> None:
    assert embedded_again(folder, work / "parts", work, kills, seed) <= kills * IN_FLIGHT
    run(folder, work / "twin", work / "notes of the twin", 0)
    [ours], [twin] = (list((work / name).rglob("*.npy")) for name in ("parts", "twin"))
    assert ours.read_bytes() == twin.read_bytes()


def test_kills_while_photos_are_embedded(folder: Path, tmp_path: Path) -> None:
    check(folder, tmp_path, kills=3, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
def test_many_kills_while_photos_are_embedded(folder: Path, tmp_path: Path, seed: int) -> None:
    check(folder, tmp_path, kills=20, seed=seed)


def test_kills_while_a_head_is_trained(processes: Preloaded, folder: Path, tmp_path: Path) -> None:
    check_training(processes, folder, tmp_path, kills=3)


@pytest.mark.slow
def test_many_kills_while_a_head_is_trained(processes: Preloaded, folder: Path, tmp_path: Path) -> None:
    check_training(processes, folder, tmp_path, kills=20)


def check_training(processes: Preloaded, folder: Path, work: Path, kills: int) -> None:
    """Killed on the way from photos to a head, and continued: the model and the rows of a run that was left alone."""
    names = [file.name for file in sorted(folder.iterdir())]
    rows = [f"{name},{'a|b' if k % 2 else 'b|c'},{'b' if k % 3 else 'ac'[k % 2 == 0]}" for k, name in enumerate(names)]
    (work / "sets.csv").write_text("\n".join(["file_name,candidates,label", *rows]) + "\n")

    def command(out: Path) -> list[object]:
        own = train(folder, out, epochs=4)
        return [*own[:-1], tiny_encoder.NAME, "--candidates.file", work / "sets.csv"]

    twin = processes.run(*command(work / "twin"), output=work / "said")
    assert twin.code == 0, twin.said
    seconds = training_seconds(work / "twin")
    kill_often(processes, command(work / "parts"), work / "parts", kills, seconds, random.Random(7))
    assert result(work / "parts") == result(work / "twin")
