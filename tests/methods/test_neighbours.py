"""Neighbour votes against golden values and against a slow version with sorted lists."""

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import one_hot
from toy import R0, R1

from papi import train as run
from papi.config import RunConfig
from papi.data import candidates as generators
from papi.data.dataset import Dataset, column_statistics
from papi.errors import UserError
from papi.methods import neighbours as module
from papi.methods.losses import soft_cross_entropy
from papi.methods.neighbours import NeighbourVotes, NeighbourVotesConfig, vote_shares, vote_weights
from papi.methods.packed import packed
from papi.networks import Network
from papi.types import Batch, Progress

# The inputs of the golden values: six samples on a plane, two groups of three.
X = torch.tensor([[0, 0], [1, 0], [0, 2], [5, 5], [6, 5], [5, 7]], dtype=torch.float64)
SETS = [{0, 1}, {0, 2}, {1}, {1, 2, 3}, {2}, {0, 3}]
DEGREES = (10, 80, 200, 350, 125, 100)
SIX_LOGITS = torch.cat([R0, R1]).double()


def close(actual: Tensor, expected: object, tolerance: float = 1e-6) -> None:
    torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=actual.dtype), atol=tolerance, rtol=0)


def mask(sets: list[set[int]], classes: int = 4) -> Tensor:
    return torch.tensor([[label in each for label in range(classes)] for each in sets])


def angles(*degrees: float) -> Tensor:
    radians = torch.tensor(degrees, dtype=torch.float64) * math.pi / 180
    return torch.stack([radians.cos(), radians.sin()], 1)


def make_method(candidates: Tensor, width: int = 2, **options: Any) -> NeighbourVotes:
    torch.manual_seed(0)
    network = Network(nn.Linear(width, 3), 3, candidates.shape[1], projection=None)
    return NeighbourVotes(network, candidates, NeighbourVotesConfig(**options)).double()


def voted(rows: Tensor, candidates: Tensor, **options: Any) -> Tensor:
    """The targets of all samples."""
    method = make_method(candidates, rows.shape[1], **options)
    method.vote(rows)
    return method.confidence.all_rows


class TestGoldenValues:
    @pytest.mark.parametrize(
        ("weights", "ballot", "first", "fourth", "loss"),
        [
            ("distance", "whole", [2 / 3, 1 / 3, 0, 0], [0, 0, 2 / 3, 1 / 3], 1.785868),
            ("distance", "shared", [0.5, 0.5, 0, 0], [0, 0, 0.8, 0.2], 1.902535),
            ("uniform", "whole", [0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], 1.827535),
            ("uniform", "shared", [1 / 3, 2 / 3, 0, 0], [0, 0, 2 / 3, 1 / 3], 1.952535),
        ],
    )
    def test_targets_and_loss(
        self, weights: str, ballot: str, first: list[float], fourth: list[float], loss: float
    ) -> None:
        targets = voted(X, mask(SETS), k=2, weights=weights, ballot=ballot)
        close(targets, [first, [1, 0, 0, 0], [0, 1, 0, 0], fourth, [0, 0, 1, 0], [0, 0, 0, 1]])
        close(soft_cross_entropy(SIX_LOGITS, targets), loss)

    def test_similarity(self) -> None:
        targets = voted(angles(*DEGREES), mask(SETS), k=2, weights="similarity", space="unit")
        close(
            targets,
            [
                [0.002531, 0.997469, 0, 0],
                [0.910996, 0, 0.089004, 0],
                [0, 1, 0, 0],
                [0, 0.999917, 0.000083, 0],
                [0, 0, 1, 0],
                [1, 0, 0, 0],
            ],
        )
        close(soft_cross_entropy(SIX_LOGITS, targets), 1.790550)

    def test_weights(self) -> None:
        distances = torch.tensor([[1, 2], [1, math.sqrt(5)], [2, math.sqrt(5)]], dtype=torch.float64)
        expected = [[0.666667, 0.333333], [0.690983, 0.309017], [0.527864, 0.472136]]
        close(vote_weights(distances, "distance", 0.1), expected)

    def test_without_a_common_label_all_candidates_are_alike(self) -> None:
        close(voted(X, mask([SETS[0], {2, 3}, *SETS[2:]]), k=2)[1], [0, 0, 0.5, 0.5])

    def test_votes_for_a_new_sample(self) -> None:
        """The three nearest of (4, 4), without a mask."""
        query = torch.tensor([[4, 4]], dtype=torch.float64)
        distances = torch.cdist(query, X)
        nearest = distances.topk(3, largest=False).indices
        assert nearest.tolist() == [[3, 4, 5]]
        weights = vote_weights(distances.gather(1, nearest), "distance", 0.1)
        close(weights, [[0.792411, 0.671773, 0.535816]])
        votes = make_method(mask(SETS), k=3).count(torch.cat([X, query]), torch.tensor([6]), nearest)
        close(votes, [[0.535816, 0.792411, 1.464184, 1.328227]])
        assert int(votes.argmax()) == 2


def slow_votes(rows: list[list[float]], sets: list[list[bool]], config: NeighbourVotesConfig) -> list[list[float]]:
    """Sorted lists of Python floats, one sample after another."""
    count, classes = len(rows), len(sets[0])
    if config.space == "unit":
        rows = [[x / math.hypot(*row) for x in row] for row in rows]
    targets = []
    for i in range(count):
        others = sorted((math.dist(rows[i], rows[j]), j) for j in range(count) if j != i)[: config.k]
        distances = [d for d, _ in others]
        total = sum(distances)
        if config.weights == "uniform" or (config.weights == "distance" and (total < 1e-6 or len(others) == 1)):
            weights = [1.0] * len(others)
        elif config.weights == "distance":
            weights = [1 - d / total for d in distances]
        else:
            cosines = [sum(a * b for a, b in zip(rows[i], rows[j], strict=True)) for _, j in others]
            weights = [math.exp((cos - 1) / config.temperature) for cos in cosines]
        votes = [0.0] * classes
        for w, (_, j) in zip(weights, others, strict=True):
            for c in range(classes):
                if sets[j][c] and sets[i][c]:
                    votes[c] += w / (sum(sets[j]) if config.ballot == "shared" else 1)
        if sum(votes) == 0:
            votes = [float(inside) for inside in sets[i]]
        raised = [v**config.power if v > 0 else 0.0 for v in votes]
        targets.append([v / sum(raised) for v in raised])
    return targets


@st.composite
def problems(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Samples in general position, and sets of which one is full and one a single label."""
    samples, classes = draw(st.integers(2, 25)), draw(st.integers(2, 12))
    random = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    rows = torch.randn(samples, draw(st.integers(1, 6)), generator=random, dtype=torch.float64)
    inside = torch.rand(samples, classes, generator=random) < draw(st.floats(0, 1))
    inside |= one_hot(torch.randint(classes, (samples,), generator=random), classes).bool()
    inside[0] = True
    inside[1] = torch.arange(classes) == 0
    return rows, inside


options = st.fixed_dictionaries(
    {
        "k": st.integers(1, 30),
        "ballot": st.sampled_from(["whole", "shared"]),
        "power": st.sampled_from([0.5, 1.0, 4.0]),
    },
)
spaces = st.sampled_from(
    [("standard", "distance"), ("standard", "uniform"), ("unit", "distance"), ("unit", "similarity")]
)


def many(**strategies: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return lambda test: settings(deadline=None, max_examples=40)(given(**strategies)(test))


class TestVotes:
    @many(problem=problems(), chosen=options, space=spaces, entries=st.sampled_from([1, 100, 2**22]))
    def test_equal_sorted_lists(
        self, problem: tuple[Tensor, Tensor], chosen: dict[str, Any], space: tuple[str, str], entries: int
    ) -> None:
        """In blocks of one row, of some, and of more than there are."""
        rows, inside = problem
        chosen = chosen | {"space": space[0], "weights": space[1]}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_ENTRIES", entries)
            targets = voted(rows, inside, **chosen)
        expected = slow_votes(rows.tolist(), inside.tolist(), NeighbourVotesConfig(**chosen))
        if rows.shape[1] > 1 or space[0] == "standard":  # on a line, unit rows are ties
            close(targets, expected, 1e-8)

    @many(problem=problems(), chosen=options)
    def test_rows_are_distributions_over_the_candidates(
        self, problem: tuple[Tensor, Tensor], chosen: dict[str, Any]
    ) -> None:
        rows, inside = problem
        targets = voted(rows, inside, **chosen)
        assert (targets >= 0).all()
        assert not targets[~inside].any()
        close(targets.sum(1), torch.ones(len(rows)), 1e-12)
        single = inside.sum(1) == 1
        close(targets[single], inside[single].double(), 0)

    @many(problem=problems(), chosen=options, weights=st.sampled_from(["distance", "uniform"]))
    def test_order_place_and_scale_of_the_samples_do_not_matter(
        self, problem: tuple[Tensor, Tensor], chosen: dict[str, Any], weights: str
    ) -> None:
        rows, inside = problem
        targets = voted(rows, inside, weights=weights, **chosen)
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
        close(voted(rows[order], inside[order], weights=weights, **chosen), targets[order], 1e-10)
        close(voted(3 * rows + 5, inside, weights=weights, **chosen), targets, 1e-8)

    @many(problem=problems(), k=st.integers(1, 30))
    def test_ballots_agree_where_all_sets_have_one_size(self, problem: tuple[Tensor, Tensor], k: int) -> None:
        rows, inside = problem
        samples, classes = inside.shape
        own = torch.arange(samples) % classes
        pairs = (one_hot(own, classes) + one_hot((own + 1) % classes, classes)).bool()
        whole, shared = (voted(rows, pairs, k=k, ballot=ballot) for ballot in ("whole", "shared"))
        close(whole, shared, 1e-12)

    @many(problem=problems(), chosen=options)
    def test_packed_sets_give_the_same_bits(self, problem: tuple[Tensor, Tensor], chosen: dict[str, Any]) -> None:
        rows, inside = problem
        dense = make_method(inside, rows.shape[1], **chosen).float()
        sparse = NeighbourVotes(dense.network, packed(inside), dense.config)
        for method in (sparse, dense):
            method.vote(rows.float())
        assert sparse.confidence.all_rows.equal(dense.confidence.all_rows)


class TestSpecialRows:
    def test_a_single_neighbour_has_a_vote(self) -> None:
        close(voted(X, mask(SETS), k=1)[0], [1, 0, 0, 0])

    @pytest.mark.parametrize("k", [5, 6, 100])
    def test_as_many_neighbours_as_there_are_others(self, k: int) -> None:
        close(voted(X, mask(SETS), k=k), voted(X, mask(SETS), k=5), 0)

    def test_two_samples(self) -> None:
        close(voted(X[:2], mask(SETS[:2]), k=10), [[1, 0, 0, 0], [1, 0, 0, 0]])

    def test_one_sample_keeps_equal_shares(self) -> None:
        close(voted(X[:1], mask(SETS[:1])), [[0.5, 0.5, 0, 0]])

    @pytest.mark.parametrize("ballot", ["whole", "shared"])
    def test_a_process_may_have_no_samples_to_vote_for(self, ballot: str) -> None:
        none = torch.zeros(0, dtype=torch.int64)
        votes = make_method(mask(SETS), k=2, ballot=ballot).count(X, none, none.view(0, 2))
        assert votes.shape == (0, 4)
        assert vote_shares(votes, mask(SETS)[none], 1.0).shape == (0, 4)

    def test_twins_all_count_alike(self) -> None:
        """At distance zero; and fully, where another neighbour is farther."""
        rows = torch.zeros(4, 2, dtype=torch.float64)
        sets = mask([{0, 1, 2}, {0}, {1}, {0, 1}])
        close(voted(rows, sets, k=3)[0], [0.5, 0.5, 0, 0])
        rows[3] = 5.0
        close(voted(rows, sets, k=3)[0], [0.5, 0.5, 0, 0])
        weights = vote_weights(torch.tensor([[0.0, 0.0, 5.0]]), "distance", 0.1)
        close(weights, [[1, 1, 0]])

    def test_near_twins_are_told_apart_in_single_precision(self) -> None:
        """Far from the origin the search rounds their distance away; the weights do not."""
        offsets = torch.tensor([0.0, 1.0, 3.0])[:, None] * 2.0**-8
        rows = torch.cat([torch.full((3, 1), 1000.0) + offsets, torch.tensor([[-1000.0]])])
        method = make_method(mask([{0, 1}, {0}, {1}, {2}], 3), 1, k=2).float()
        votes = method.count(rows, torch.tensor([0]), torch.tensor([[1, 2]]))
        close(votes, [[0.75, 0.25, 0]])

    def test_a_full_set_takes_the_plain_vote(self) -> None:
        sets = mask([{0, 1, 2, 3}, *SETS[1:]])
        close(voted(X, sets, k=2, weights="uniform")[0], [1 / 3, 1 / 3, 1 / 3, 0])

    def test_constant_columns_do_not_matter(self) -> None:
        wider = torch.cat([X, torch.full((6, 2), 7.0, dtype=torch.float64)], 1)
        close(voted(wider, mask(SETS), k=2), voted(X, mask(SETS), k=2), 1e-12)

    @pytest.mark.parametrize("power", [0.1, 1.0, 4.0, 200.0])
    @pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
    def test_powers_stay_finite(self, power: float, size: float) -> None:
        shares = vote_shares(size * torch.tensor([[9.5, 5, 5, 0]]), torch.ones(1, 4).bool(), power)
        assert shares.isfinite().all()
        close(shares.sum(1), [1])
        close(shares, vote_shares(torch.tensor([[9.5, 5, 5, 0]]), torch.ones(1, 4).bool(), power))

    def test_power_makes_targets_sharper(self) -> None:
        """Nine and a half votes for the truth, five for each of four others and two and a half more."""
        votes = torch.tensor([[9.5, 5, 5, 5, 5, 2.5]])
        shares = [float(vote_shares(votes, torch.ones(1, 6).bool(), power)[0, 0]) for power in (1.0, 4.0)]
        assert shares[0] == pytest.approx(0.297, abs=0.01)
        assert shares[1] == pytest.approx(0.764, abs=0.01)


def make_images(count: int = 24) -> Tensor:
    return torch.randn(count, 1, 4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def batches_of(images: Tensor, candidates: Tensor) -> Callable[[], Iterator[Batch]]:
    def plain() -> Iterator[Batch]:
        for index in torch.arange(len(images)).tensor_split(3):
            yield Batch(index, (images[index],), candidates[index])

    return plain


class TestRun:
    candidates = mask([{i % 4, (i * 7 + 1) % 4, (i // 5) % 4} for i in range(24)])

    def method(self, **chosen: Any) -> NeighbourVotes:
        torch.manual_seed(0)
        encoder = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.BatchNorm1d(8), nn.ReLU())
        return NeighbourVotes(Network(encoder, 8, 4, None), self.candidates, NeighbourVotesConfig(**chosen)).double()

    def at(self, epoch: int) -> Progress:
        return Progress(epoch, 6, 0, 3, seed=0)

    def test_votes_are_cast_before_the_first_epoch_alone(self) -> None:
        method, images = self.method(k=3), make_images()
        batches = batches_of(images, self.candidates)
        before = method.confidence.all_rows.clone()
        assert not method.start_epoch(self.at(0), batches)
        targets = method.confidence.all_rows.clone()
        assert not targets.equal(before)
        close(targets, voted(images.flatten(1), self.candidates, k=3), 1e-12)
        for batch in batches():
            output = method.training_step(batch, self.at(0))
            close(output.loss.detach(), soft_cross_entropy(output.logits, targets[batch.index]).detach(), 0)
        for epoch in range(1, 6):
            assert not method.start_epoch(self.at(epoch), batches)
            assert method.confidence.all_rows.equal(targets)

    def test_refreshed_votes_are_those_of_the_features_in_evaluation_mode(self) -> None:
        method, images = self.method(k=3, refresh_epochs=2), make_images()
        batches = batches_of(images, self.candidates)
        changes = []
        for epoch in range(6):
            before = method.confidence.all_rows.clone()
            method.start_epoch(self.at(epoch), batches)
            assert method.network.training
            changes.append(not method.confidence.all_rows.equal(before))
            for batch in batches():
                method.training_step(batch, self.at(epoch))  # moves batch-norm
        assert changes == [True, False, True, False, True, False]
        method.start_epoch(self.at(2), batches)
        features = copy.deepcopy(method.network).eval().encode(images).detach()
        close(method.confidence.all_rows, voted(features, self.candidates, k=3), 1e-12)

    def test_a_refresh_leaves_no_trace_in_the_network(self) -> None:
        method = self.method(refresh_epochs=1)
        before = copy.deepcopy(method.network.state_dict())
        method.start_epoch(self.at(1), batches_of(make_images(), self.candidates))
        for name, value in method.network.state_dict().items():
            assert value.equal(before[name]), name

    def test_votes_are_saved(self) -> None:
        first, second = self.method(k=3), self.method(k=3)
        first.start_epoch(self.at(0), batches_of(make_images(), self.candidates))
        second.load_state_dict(first.state_dict())
        assert second.confidence.all_rows.equal(first.confidence.all_rows)

    def test_extreme_logits(self) -> None:
        method = self.method(k=3).float()
        batches = batches_of(make_images().float(), self.candidates)
        method.start_epoch(self.at(0), batches)
        with torch.no_grad():
            method.network.classifier.bias.copy_(torch.tensor([300.0, -300, -300, 0]))
        for batch in batches():
            loss = method.training_step(batch, self.at(0)).loss
            loss.backward()  # type: ignore[no-untyped-call]
            assert loss.isfinite()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in method.network.parameters())


def blobs(samples: int, classes: int, seed: int = 0) -> Dataset:
    """A feature table with two round groups for each class."""
    random = np.random.default_rng(seed)
    centres = 4 * random.standard_normal((2 * classes, 8))
    group = np.arange(samples) % (2 * classes)
    features = (centres[group] + random.standard_normal((samples, 8))).astype(np.float32)
    return Dataset(
        "blobs", tuple(map(str, range(classes))), features, *column_statistics(features), labels=group % classes
    )


def resolved(data: Dataset, sets: np.ndarray, **chosen: object) -> Any:
    """How a run of an epoch ends."""
    option = tuple(f"{name}={value}" for name, value in chosen.items())
    config = RunConfig(data="blobs", method="neighbours", epochs=1, device="cpu", threads=1, option=option)
    *_, last = run.fit(data, sets, run.settings_for(config, data))
    assert isinstance(last, run.Finished)
    return last


class TestFeatureTables:
    def test_the_best_voted_candidate_is_the_truth(self) -> None:
        data = blobs(2000, 10)
        assert data.labels is not None
        sets = generators.uniform(data.labels, 10, 0.5, seed=0)
        assert resolved(data, sets, k=20).summary.disambiguation_accuracy >= 0.95

    @pytest.mark.parametrize(
        "chosen", [{}, {"space": "unit", "weights": "similarity"}, {"space": "raw"}, {"refresh_epochs": 1}], ids=str
    )
    def test_every_space_works_through_a_run(self, chosen: dict[str, object]) -> None:
        data = blobs(200, 4)
        assert data.labels is not None
        sets = generators.uniform(data.labels, 4, 0.3, seed=0)
        assert resolved(data, sets, **chosen).summary.disambiguation_accuracy > 0.9

    def test_columns_are_standardised(self) -> None:
        """A column in other units counts no more than before."""
        data = blobs(100, 4)
        assert data.labels is not None
        sets = generators.uniform(data.labels, 4, 0.5, seed=0)
        wider = data.samples * np.array([1000.0, *[1.0] * 7], np.float32)
        other = Dataset("blobs", data.class_names, wider, *column_statistics(wider), labels=data.labels)
        first, second = (resolved(each, sets).trained.method.confidence.all_rows for each in (data, other))
        close(first, second, 1e-4)

    def test_raw_columns_are_not(self) -> None:
        """The votes are those of the numbers in the table."""
        data = blobs(100, 4)
        assert data.labels is not None
        sets = generators.uniform(data.labels, 4, 0.5, seed=0)
        wider = data.samples * np.array([1000.0, *[1.0] * 7], np.float32)
        other = Dataset("blobs", data.class_names, wider, *column_statistics(wider), labels=data.labels)
        found = resolved(other, sets, space="raw").trained.method.confidence.all_rows
        close(found.double(), voted(torch.from_numpy(wider).double(), torch.from_numpy(sets)), 1e-4)
        assert (found - resolved(other, sets).trained.method.confidence.all_rows).abs().max() > 0.1

    def test_raw_pixels(self, toy_dataset: Dataset) -> None:
        """Every channel has its own scale."""
        colour = replace(
            toy_dataset,
            samples=np.repeat(toy_dataset.samples, 3, 1) // np.array([1, 2, 4], np.uint8)[:, None, None],
            test_samples=None,
            test_labels=None,
            mean=(0.25, 0.1, 0.05),
            std=(0.25, 0.1, 0.05),
        )
        assert colour.labels is not None
        sets = generators.uniform(colour.labels, 4, 0.5, seed=0)
        found = resolved(colour, sets, space="raw").trained.method.confidence.all_rows
        rows = torch.from_numpy(colour.samples).flatten(1).double() / 255
        close(found.double(), voted(rows, torch.from_numpy(sets)), 1e-4)


def test_config() -> None:
    config = NeighbourVotesConfig()
    assert (config.view_names, config.encoder_passes.units, config.packs_sets) == (("weak",), 3, True)
    assert NeighbourVotesConfig(view="plain").view_names == ("plain",)


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ({"k": 0}, "k must be above 0; got 0"),
        ({"power": 0.0}, "power must be above 0; got 0"),
        ({"temperature": -1.0}, "temperature must be above 0; got -1"),
        ({"refresh_epochs": -1}, "refresh_epochs must be 0 or more; got -1"),
        ({"weights": "similarity"}, "add --option space=unit"),
    ],
)
def test_misfits(chosen: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        NeighbourVotesConfig(**chosen)
