"""Images on which two runs disagree."""

from papi.report.comparison import PICTURED_IMAGES, PICTURED_PAIRS, differences, standings
from papi.report.pairs_of_runs import pictured
from runs_in_memory import run_of

SURE = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]]
OTHER = [[0.1, 0.9], [0.4, 0.6], [0.7, 0.3]]


def test_who_is_right_more_often() -> None:
    runs = [run_of(SURE, labels=[0, 1, 0], path="first"), run_of(OTHER, labels=[0, 1, 0], path="second")]
    (found,) = pictured(differences(standings(runs)[1]))
    assert "2 of 3 training images differently (66.7%)" in found.sentence
    assert "first is right on 1, second on 1, and neither on 0" in found.sentence
    assert [image.index for image in found.images] == [0, 1]
    first, second = found.images[0].opinions
    assert (first.run, first.label, first.right) == ("first", "a", True)
    assert (second.run, second.label, second.right) == ("second", "b", False)
    assert found.images[0].truth == "a"
    assert found.images[0].picture.startswith("data:image/")


def test_without_true_labels_nobody_is_right() -> None:
    runs = [run_of(SURE, path="first"), run_of(OTHER, path="second")]
    (found,) = pictured(differences(standings(runs)[1]))
    assert "not known" in found.sentence
    assert {opinion.right for image in found.images for opinion in image.opinions} == {None}
    assert {image.truth for image in found.images} == {""}


def test_runs_that_agree_are_not_pictured() -> None:
    assert pictured(differences(standings([run_of(SURE), run_of(SURE)])[1])) == []


def test_no_more_than_fit_on_a_page() -> None:
    count = PICTURED_IMAGES + 5
    runs = [run_of([[n / 10, 1 - n / 10]] * count, path=str(n)) for n in (1, 9, 2, 8)]
    found = pictured(differences(standings(runs)[1]))
    assert len(found) == PICTURED_PAIRS
    assert {len(dispute.images) for dispute in found} == {PICTURED_IMAGES}
