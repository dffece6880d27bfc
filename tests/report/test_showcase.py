"""Images with what the model made of them."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from papi.report import showcase
from papi.report.fitting import Kept
from papi.report.reading import read_run
from papi.report.run import Run
from papi.report.showcase import BARS, STRIP
from papi.runs.folder import RunFolder
from runs_in_memory import run_of

Make = Callable[..., RunFolder]


def doubtful(count: int, **options: object) -> Run:
    """Two candidates for each image; the confidence in the first falls from image to image."""
    first = np.linspace(0.99, 0.51, count)
    return run_of(np.column_stack([first, 1 - first]).tolist(), **options)  # type: ignore[arg-type]


def test_the_strip_runs_from_sure_to_doubtful() -> None:
    cards = showcase.strip(doubtful(200))
    assert len(cards) == STRIP
    assert [card.index for card in cards] == sorted(card.index for card in cards)
    assert (cards[0].index, cards[-1].index) == (0, 199)
    shares = [card.bars[0].share for card in cards]
    assert shares == sorted(shares, reverse=True)
    steps = np.diff([card.index for card in cards])
    assert steps[0] > steps[-1]  # closer together where doubt is


def test_images_with_one_candidate_are_not_in_doubt() -> None:
    run = run_of([[1.0, 0.0], [0.0, 1.0], [0.6, 0.4]])
    assert [card.index for card in showcase.strip(run)] == [2]


def test_a_card_shows_the_likeliest_candidates_and_the_true_one() -> None:
    run = run_of([[0.3, 0.25, 0.2, 0.15, 0.06, 0.04]], labels=[5])
    (card,) = showcase.strip(run)
    assert [(bar.name, bar.is_true) for bar in card.bars] == [
        ("a", False),
        ("b", False),
        ("c", False),
        ("d", False),
        ("f", True),
    ]
    assert len(card.bars) == BARS + 1
    assert (card.more, card.verdict) == (1, "wrong")
    (right,) = showcase.strip(run_of([[0.6, 0.4]], labels=[0]))
    assert (right.more, right.verdict) == (0, "right")
    (unknown,) = showcase.strip(run_of([[0.6, 0.4]]))
    assert unknown.verdict == ""


def test_cards_are_named_by_their_files() -> None:
    run = run_of([[0.6, 0.4]])
    assert showcase.strip(run)[0].name == "image 0"
    assert run.dataset is not None
    run.dataset = replace(run.dataset, file_names=("a/rose.png",))
    assert showcase.strip(run)[0].name == "rose.png"


def test_without_resolved_labels_there_is_nothing_to_show() -> None:
    run = run_of([[0.6, 0.4]])
    run.kept = Kept()
    assert showcase.strip(run) == []
    assert showcase.mistakes(run) is None


def test_mix_ups_with_their_images() -> None:
    run = run_of([[0.6, 0.4]], test_labels=[0, 0, 1], test_probabilities=[[0.9, 0.1], [0.2, 0.8], [0.1, 0.9]])
    found = showcase.mistakes(run)
    assert found is not None
    (mixed,) = found.mixed
    assert (mixed.a, mixed.b) == ("a", "b")
    assert "50.0% of “a” predicted as “b”, 0.0% the other way round" in mixed.sentence
    assert [seen.alt for seen in mixed.images] == ["Test image 1: a, confused with b"]


def test_the_matrix_follows_the_tree() -> None:
    run = run_of(np.eye(3).tolist(), labels=[0, 1, 2])
    plain = showcase.mistakes(run)
    assert run.dataset is not None
    run.dataset = replace(run.dataset, levels=(("Roses", "Lilies", "Roses"),))
    found = showcase.mistakes(run)
    assert plain is not None
    assert found is not None
    assert "Roses, Lilies" in found.intro
    assert "groups" not in plain.intro
    order = [str(found.chart.svg).index(f">{name}<") for name in "acb"]
    assert order == sorted(order)


def test_hesitation_is_not_called_a_mistake() -> None:
    found = showcase.mistakes(run_of([[0.75, 0.25]]))
    assert found is not None
    assert "Close decisions" in found.heading
    assert "25.0% of “a” close to “b”" in found.mixed[0].sentence
    assert found.mixed[0].images[0].alt == "Training image 0: a or b"


def test_nothing_is_mixed_up() -> None:
    found = showcase.mistakes(run_of([[1.0, 0.0], [0.0, 1.0]], labels=[0, 1]))
    assert found is not None
    assert found.mixed == []
    assert "No two classes are confused" in found.chart.alt


def test_a_whole_folder(make_run: Make) -> None:
    run = read_run(make_run().path)
    assert run.candidates is not None
    for card in showcase.strip(run):
        assert sum(bar.is_true for bar in card.bars) == 1
        assert len(card.bars) + card.more == run.candidates[card.index].sum()
