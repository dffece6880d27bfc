"""Data for the review section: doubtful images in the order in which they are offered for a decision."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from papi.report.estimate import EVERY, LEAST, PRIOR, Plan, Z, plan
from papi.report.pictures import THUMBNAIL, crop, file_name, links, picture
from papi.report.run import Run
from papi.runs.labels import candidate_shares

SHARES = 5  # candidates with a probability
STATE_BYTES = 5_500_000  # limit of the JSON state; 60,000 images with long names fit
THUMBNAIL_BYTES = 1_800_000
THUMBNAILS = 400
FIRST = 12  # images that the page shows without JavaScript


@dataclass(frozen=True)
class First:
    """One of the first images, for browsers without JavaScript."""

    picture: str
    alt: str
    question: str


@dataclass(frozen=True)
class Desk:
    """The contents of the review section."""

    total: int  # ambiguous images
    shown: int  # ambiguous images that fit into the page
    state: Mapping[str, object]  # read by the script of the page as JSON
    first: list[First]


@dataclass(frozen=True)
class Order:
    """The ambiguous images of a run by rank, and the plan in which they are offered."""

    images: np.ndarray  # (n,) int64, by rank
    plan: Plan


def order(run: Run) -> Order | None:
    """Return the images to decide on, the most doubtful first; None if the run has no labels yet."""
    if run.resolved is None or run.candidates is None:
        return None
    ranked = np.argsort(run.resolved.rank)
    open_to_doubt = (run.sizes > 1) | (run.resolved.outside >= 0)
    ranked = ranked[open_to_doubt[ranked]]
    return Order(ranked, plan(run.resolved.change[ranked], seed=len(ranked)))


def desk(run: Run, page: Path | None = None, served: bool = False) -> Desk | None:
    """Return the review section of a page in the folder `page`, or of a served page, which has all pictures."""
    found = order(run)
    if found is None:
        return None
    made = (_item(run, int(index)) for index in found.images)
    items = list(made) if served else _fitting(made)
    shown, total = len(items), len(found.images)
    state = _state(run, items, page, served) | {"plan": _plan(found.plan, whole=shown == total)}
    state |= _annotators(run, found.images[:shown])
    if not served:
        state["pictures"] = _thumbnails(run, found.images, found.plan.queue(), shown)
    first = [_first(run, int(index)) for index in found.images[:FIRST]]
    return Desk(total, shown, state, first)


def desk_of_two(runs: tuple[Run, Run], names: tuple[str, str], images: np.ndarray, page: Path | None = None) -> Desk:
    """Return a review section with the images on which two runs disagree. Decisions belong to the first run."""
    run, items, opinions = runs[0], [], []
    for index in map(int, images):
        said = [_opinion(each, name, index) for each, name in zip(runs, names, strict=True)]
        labels = [int(str(each["label"])) for each in said]
        classes, _ = candidates_of(run, index)
        others = [k for k in classes if k not in labels]
        item = _item(run, index)
        items.append([index, [*labels, *others], [], *item[3:]])
        opinions.append(said)
    shown = len(_fitting(items))
    state = _state(run, items[:shown], page, served=False) | {"plan": _plan(Plan((), 0, ()), whole=False)}
    state |= {"opinions": opinions[:shown], "runs": list(names)}
    state["pictures"] = _thumbnails(run, images, list(range(shown)), shown)
    return Desk(len(items), shown, state, [_first(run, int(index)) for index in images[:FIRST]])


def _opinion(run: Run, name: str, index: int) -> dict[str, object]:
    assert run.resolved is not None
    share = round(100 * float(run.resolved.confidence[index]))
    return {"run": name, "label": int(run.resolved.label[index]), "share": share}


def _state(run: Run, items: list[list[object]], page: Path | None, served: bool) -> dict[str, object]:
    return {
        "key": f"papi-decisions:{run.identity}",
        "classes": list(run.class_names),
        "items": items,
        "crop": [round(each, 4) for each in crop(run)],
        "served": served,
        "links": "" if served or page is None else links(run, page),
        "pictures": [],
    }


def candidates_of(run: Run, index: int) -> tuple[list[int], list[float]]:
    """Return the candidates of an image by confidence, the resolved label first, and their confidence."""
    assert run.candidates is not None
    assert run.kept.confidence is not None
    row = np.array([index])
    classes = np.flatnonzero(run.candidates[index])
    shares = candidate_shares(run.candidates[row], run.kept.confidence[row])[0, classes]
    likeliest = np.lexsort((classes, -shares))
    return [int(k) for k in classes[likeliest]], [float(share) for share in shares[likeliest]]


def _item(run: Run, index: int) -> list[object]:
    """Return `[index, candidates, first shares in percent, file]`; compact, because there may be 60,000."""
    classes, shares = candidates_of(run, index)
    item: list[object] = [index, classes, [round(100 * share) for share in shares[:SHARES]]]
    return [*item, file] if (file := file_name(run, index)) else item


def _annotators(run: Run, images: np.ndarray) -> dict[str, object]:
    """Return the numbers of the annotators of each image, if they are known."""
    opinions = None if run.dataset is None else run.dataset.opinions
    if run.dataset is None or opinions is None:
        return {}
    people: dict[int, set[int]] = {}
    for row, person, _ in opinions.said.tolist():
        people.setdefault(row, set()).add(person)
    rows = images if run.dataset.rows is None else run.dataset.rows[images]
    said = [sorted(people.get(row, ())) for row in rows.tolist()]
    return {"annotators": {"names": list(opinions.annotators), "said": said}}


def _fitting(items: Iterable[list[object]]) -> list[list[object]]:
    """Return the first items, as many as fit into the page. The others, of perhaps a million, are never made."""
    fitting, size = [], 0
    for item in items:
        size += len(json.dumps(item, separators=(",", ":"))) + 1
        if size > STATE_BYTES:
            break
        fitting.append(item)
    return fitting


def _plan(made: Plan, whole: bool) -> dict[str, object]:
    """Return what the script needs to order images and to estimate the wrong labels. Both need all images."""
    audits = [list(order) for order in made.audits] if whole else []
    return {
        "starts": list(made.starts) if whole else [],
        "audits": audits,
        "every": EVERY,
        "least": LEAST,
        "prior": list(PRIOR),
        "z": Z,
    }


def _thumbnails(run: Run, images: np.ndarray, queue: list[int], shown: int) -> list[tuple[int, str]]:
    """Return pictures of the images that are offered first, by place, as many as fit into the page."""
    made: list[tuple[int, str]] = []
    room = THUMBNAIL_BYTES
    for place in queue[:THUMBNAILS]:
        uri = picture(run, int(images[place]), side=THUMBNAIL) if place < shown else ""
        if not uri:
            continue
        room -= len(uri)
        if room < 0:
            break
        made.append((place, uri))
    return made


def _first(run: Run, index: int) -> First:
    classes, _ = candidates_of(run, index)
    file = file_name(run, index)
    alt = f"Training image {index}" + (f", {file}" if file else "")
    return First(picture(run, index), alt, " or ".join(run.class_name(k) for k in classes[:2]))
