"""The memories of methods against slow versions, at their edges, and across a save."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.utils._python_dispatch import TorchDispatchMode

from papi.methods.state import (
    AveragedNetwork,
    DenseConfidence,
    FeatureQueue,
    MomentumCopy,
    Neighbours,
    Prototypes,
)
from papi.types import Progress


def unit_rows(count: int, dimensions: int = 3, seed: int = 0) -> Tensor:
    return normalize(torch.randn(count, dimensions, generator=torch.Generator().manual_seed(seed)))


class TestConfidence:
    mask = torch.tensor([[1, 0, 1, 0], [1, 1, 1, 1], [0, 1, 0, 0]], dtype=torch.bool)

    def test_starts_uniform_over_the_candidates(self) -> None:
        expected = torch.tensor([[0.5, 0, 0.5, 0], [0.25, 0.25, 0.25, 0.25], [0, 1, 0, 0]])
        torch.testing.assert_close(DenseConfidence(self.mask).value, expected)

    def test_what_was_read_does_not_change_with_an_update(self) -> None:
        confidence = DenseConfidence(self.mask)
        index = torch.tensor([1])
        before = confidence[index]
        confidence.replace(index, torch.tensor([[1.0, 0, 0, 0]]))
        torch.testing.assert_close(before, torch.full((1, 4), 0.25))
        torch.testing.assert_close(confidence[index], torch.tensor([[1.0, 0, 0, 0]]))

    def test_average_touches_only_the_batch(self) -> None:
        confidence = DenseConfidence(self.mask)
        confidence.average(torch.tensor([0]), torch.tensor([[1, 0, 0, 0]]), 0.5)
        torch.testing.assert_close(confidence.value[0], torch.tensor([0.75, 0, 0.25, 0]))
        torch.testing.assert_close(confidence.value[1:], DenseConfidence(self.mask).value[1:])


class TestPrototypes:
    def test_views_are_taken_in_one_after_another(self) -> None:
        features, labels = unit_rows(12).view(2, 6, -1), torch.arange(12).view(2, 6) % 3
        one_by_one, together = Prototypes(3, features.shape[2]), Prototypes(3, features.shape[2])
        one_by_one.average(torch.cat([features[0], features[1]]), torch.cat([labels[0], labels[1]]), 0.8)
        together.average(features.movedim(0, 1), labels.T, 0.8)  # (B, V, d)
        torch.testing.assert_close(together.value, one_by_one.value, rtol=0, atol=0)


class TestFeatureQueue:
    def test_starts_with_unit_rows_that_are_nobodys_positives(self) -> None:
        queue = FeatureQueue(50, 16)
        torch.testing.assert_close(queue.features.norm(dim=1), torch.ones(50))
        assert (queue.labels == -1).all()
        assert queue.labels.dtype == torch.int64

    @pytest.mark.parametrize("sizes", [[2, 2], [3, 3, 3], [5, 5], [4, 5, 6], [7], [3, 11, 2], [5, 15]])
    def test_equals_one_by_one(self, sizes: list[int]) -> None:
        """Also where a batch does not divide the queue, fills it exactly, or is larger."""
        queue = FeatureQueue(5, 3)
        rows, labels, place = queue.features.clone(), queue.labels.clone(), 0
        for number, size in enumerate(sizes):
            features, new = unit_rows(size, seed=number), torch.arange(size) + 100 * number
            queue.push(features, new)
            for feature, label in zip(features, new, strict=True):
                rows[place], labels[place] = feature, label
                place = (place + 1) % 5
            torch.testing.assert_close(queue.features, rows, rtol=0, atol=0)
            assert queue.labels.equal(labels)
            assert int(queue.pointer) == place

    @pytest.mark.parametrize("sizes", [[2, 2], [4, 5, 6], [7], [3, 11, 2]])
    def test_beliefs_come_and_go_with_their_features(self, sizes: list[int]) -> None:
        queue = FeatureQueue(5, 3, classes=4)
        assert queue.beliefs is not None
        assert not queue.beliefs.any()
        expected, place = torch.zeros(5, 4), 0
        for number, size in enumerate(sizes):
            beliefs = torch.rand(size, 4, generator=torch.Generator().manual_seed(number))
            queue.push(unit_rows(size, seed=number), torch.arange(size), beliefs)
            for row in beliefs:
                expected[place] = row
                place = (place + 1) % 5
            assert queue.beliefs.equal(expected)

    def test_without_classes_there_are_no_beliefs(self) -> None:
        """Checkpoints of methods that keep none stay as they are."""
        queue = FeatureQueue(4, 3)
        assert queue.beliefs is None
        assert set(queue.state_dict()) == {"features", "labels", "pointer"}

    def test_a_loss_made_before_a_push_can_still_go_backward(self) -> None:
        queue = FeatureQueue(4, 3)
        query = unit_rows(2).requires_grad_()
        old = queue.features.clone()
        loss = (query @ queue.features.T).sum()
        queue.push(unit_rows(4, seed=1), torch.arange(4))
        loss.backward()  # type: ignore[no-untyped-call]
        torch.testing.assert_close(query.grad, old.sum(0).expand(2, 3))

    def test_keeps_no_graph(self) -> None:
        queue = FeatureQueue(4, 3)
        queue.push(unit_rows(2).requires_grad_(), torch.arange(2))
        assert not queue.features.requires_grad

    def test_survives_a_save(self) -> None:
        one, other = FeatureQueue(4, 3), FeatureQueue(4, 3)
        one.push(unit_rows(3), torch.arange(3))
        other.load_state_dict(one.state_dict())
        for queue in (one, other):
            queue.push(unit_rows(2, seed=1), torch.arange(2))
        for name, value in one.state_dict().items():
            assert value.equal(other.state_dict()[name]), name


class TestMomentumCopy:
    def make(self) -> tuple[nn.Module, MomentumCopy[nn.Module]]:
        torch.manual_seed(0)
        source = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        return source, MomentumCopy(source)

    def test_starts_equal_and_learns_nothing_itself(self) -> None:
        source, follower = self.make()
        for own, other in zip(follower.value.parameters(), source.parameters(), strict=True):
            assert own.equal(other)
            assert own is not other
            assert not own.requires_grad
            assert other.requires_grad

    def test_average(self) -> None:
        source, follower = self.make()
        before = [weight.detach().clone() for weight in follower.value.parameters()]
        with torch.no_grad():
            for weight in source.parameters():
                weight.add_(1.0)
        follower.average(source, 0.9)
        for own, old, other in zip(follower.value.parameters(), before, source.parameters(), strict=True):
            torch.testing.assert_close(own, 0.9 * old + 0.1 * other)

    def test_batch_norm_statistics_are_its_own(self) -> None:
        source, follower = self.make()
        source(torch.randn(8, 3) + 5)
        follower.average(source, 0.5)
        assert (follower.value[1].running_mean == 0).all()  # type: ignore[index]
        follower.value(torch.randn(8, 3))
        assert (follower.value[1].running_mean != 0).any()  # type: ignore[index]

    def test_survives_a_save(self) -> None:
        source, follower = self.make()
        with torch.no_grad():
            for weight in source.parameters():
                weight.add_(1.0)
        follower.average(source, 0.3)
        other = MomentumCopy(source)
        other.load_state_dict(follower.state_dict())
        for a, b in zip(follower.value.parameters(), other.value.parameters(), strict=True):
            assert a.equal(b)


class LargestResult(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The number of elements of the largest tensor that was made."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        for value in result if isinstance(result, tuple | list) else [result]:
            if isinstance(value, Tensor):
                self.elements = max(self.elements, value.numel())
        return result


class TestNeighbours:
    @pytest.mark.parametrize(("samples", "count", "chunk"), [(40, 3, 512), (40, 3, 7), (41, 1, 10), (9, 8, 4)])
    def test_equal_a_search_over_all_pairs(self, samples: int, count: int, chunk: int) -> None:
        features = torch.randn(samples, 5, generator=torch.Generator().manual_seed(count)) + 100
        neighbours = Neighbours(samples, count)
        neighbours.find(features, chunk)
        for i in range(samples):
            distance = [float((features[i].double() - features[j].double()).norm()) for j in range(samples)]
            nearest = sorted((j for j in range(samples) if j != i), key=lambda j: distance[j])
            assert neighbours.value[i].tolist() == nearest[:count]

    def test_oneself_is_no_neighbour_but_a_twin_is(self) -> None:
        features = torch.tensor([[0.0, 0.0], [0.0, 0.0], [5.0, 0.0], [5.0, 0.1]])
        neighbours = Neighbours(4, 1)
        neighbours.find(features)
        assert neighbours.value.flatten().tolist() == [1, 0, 3, 2]

    def test_fewer_samples_than_neighbours(self) -> None:
        neighbours = Neighbours(3, 5)
        neighbours.find(torch.randn(3, 2))
        assert [sorted(row) for row in neighbours.value.tolist()] == [[1, 2], [0, 2], [0, 1]]
        torch.testing.assert_close(neighbours.adjacency(torch.arange(3)), torch.full((3, 3), 1 / 3))

    def test_adjacency_is_a_block_of_the_dense_graph(self) -> None:
        neighbours = Neighbours(30, 3)
        neighbours.find(torch.randn(30, 4, generator=torch.Generator().manual_seed(0)))
        dense = torch.eye(30)
        for i in range(30):
            for j in neighbours.value[i].tolist():
                dense[i, j] = 1
        dense = dense / dense.sum(1, keepdim=True)
        index = torch.randperm(30, generator=torch.Generator().manual_seed(1))[:12]
        torch.testing.assert_close(neighbours.adjacency(index), dense[index][:, index])

    def test_never_holds_all_pairs(self) -> None:
        neighbours = Neighbours(600, 3)
        with LargestResult() as largest:
            neighbours.find(torch.randn(600, 4), chunk=50)
        assert largest.elements == 600 * 50


def test_everything_is_in_the_state_dict() -> None:
    mask = torch.ones(6, 2, dtype=torch.bool)
    memories = [
        DenseConfidence(mask),
        Prototypes(2, 3),
        FeatureQueue(5, 3),
        FeatureQueue(5, 3, classes=2),
        Neighbours(6, 2),
        MomentumCopy(nn.Linear(2, 2)),
    ]
    for memory in memories:
        kept = set(memory.state_dict())
        assert kept == {name for name, _ in [*memory.named_buffers(), *memory.named_parameters()]}


class TestAveragedNetwork:
    def make(self, share: float) -> tuple[nn.Sequential, AveragedNetwork[nn.Sequential], list[dict[str, Tensor]]]:
        """A small network that was changed ten times, its average, and what it was after each change."""
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        averaged, seen = AveragedNetwork(network, share), []
        for step in range(10):
            with torch.no_grad():
                network[0].weight.add_(torch.randn(4, 3))
                network(torch.randn(8, 3))
            averaged.follow(network, Progress(epoch=step // 5, epochs=2, step=step % 5, steps=5, seed=0))
            seen.append({name: value.clone() for name, value in network.state_dict().items()})
        return network, averaged, seen

    def test_over_all_steps_it_is_the_plain_mean(self) -> None:
        _, averaged, seen = self.make(share=1.0)
        for name, value in averaged.value.state_dict().items():
            if value.is_floating_point():
                torch.testing.assert_close(value, torch.stack([each[name] for each in seen]).mean(0))
            else:
                assert value == 10

    def test_a_share_of_the_steps(self) -> None:
        """0.4 of ten steps: a mean of the first four, then a quarter of each new one."""
        _, averaged, seen = self.make(share=0.4)
        for name in ("0.weight", "1.running_mean", "1.running_var"):
            expected = torch.stack([each[name] for each in seen[:4]]).mean(0)
            for each in seen[4:]:
                expected = 0.75 * expected + 0.25 * each[name]
            torch.testing.assert_close(averaged.value.state_dict()[name], expected)

    def test_less_than_a_step_is_the_network_itself(self) -> None:
        network, averaged, _ = self.make(share=0.01)
        for mine, other in zip(averaged.value.state_dict().values(), network.state_dict().values(), strict=True):
            assert torch.equal(mine, other)
        assert not any(each.requires_grad for each in averaged.parameters())
