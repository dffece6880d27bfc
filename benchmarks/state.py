"""Per-sample state of a method: packed (candidates only) against dense (all classes), and its cost by N and K."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from benchmarks.measure import Line, in_turns, repeated
from papi.methods.losses import candidate_softmax
from papi.methods.packed import PackedConfidence, PackedSets
from papi.methods.state import Confidence, DenseConfidence

BATCH, MEAN_SET = 256, 10
CALLS = 10
DENSE_LIMIT = 10**8  # entries N×K up to which the dense state is measured; above, only its memory is computed


def mask_in_parts(samples: int, classes: int) -> Iterator[Tensor]:
    """Candidate sets with ten labels on average, or half the classes if that is fewer, and at least one."""
    random = torch.Generator().manual_seed(0)
    for start in range(0, samples, 10_000):
        rows = min(10_000, samples - start)
        part = torch.rand(rows, classes, generator=random) < (min(MEAN_SET, classes / 2) - 1) / (classes - 1)
        yield part.scatter(1, torch.randint(classes, (rows, 1), generator=random), True)


def memory(*modules: nn.Module) -> int:
    """Bytes of all buffers; shared ones count once."""
    buffers = {buffer.data_ptr(): buffer for module in modules for buffer in module.buffers()}
    return sum(buffer.numel() * buffer.element_size() for buffer in buffers.values())


def dense_memory(samples: int, classes: int) -> int:
    return samples * classes * (4 + 1)  # float32 confidence, byte mask


def update(confidence: Confidence, sets: Tensor | PackedSets, samples: int, classes: int) -> Callable[[], Tensor]:
    """What a step does with the state: read mask rows, compute a softmax over them, average, read the new rows."""
    random = torch.Generator().manual_seed(1)
    index, logits = torch.randperm(samples, generator=random)[:BATCH], torch.randn(BATCH, classes, generator=random)

    def step() -> Tensor:
        confidence.average(index, candidate_softmax(logits, sets[index]), 0.9)
        return confidence[index]

    return step


def packed_against_dense(samples: int, classes: int, dense_samples: int, times: int) -> Iterator[Line]:
    """Memory at `samples`, and the time of an update there against that of a dense state of `dense_samples`."""
    sets = PackedSets(mask_in_parts(samples, classes), classes)
    confidence = PackedConfidence(sets)
    used, dense = memory(confidence), dense_memory(samples, classes)
    where = f"N={samples:,}, K={classes:,}, {MEAN_SET} candidates"
    item = f"memory of packed state, {where}, vs. dense"
    yield Line(item, dense / 1e6, used / 1e6, used / dense, 1 / 20, True, unit="MB")

    mask = torch.cat(list(mask_in_parts(dense_samples, classes)))
    few = PackedSets([mask], classes)
    plain, same = DenseConfidence(mask), PackedConfidence(few)
    rows = update(plain, mask, dense_samples, classes)(), update(same, few, dense_samples, classes)()
    assert torch.equal(*rows), "packed rows must be bit-equal to dense ones"
    ours = repeated(update(confidence, sets, samples, classes), CALLS)
    seconds = in_turns([repeated(update(plain, mask, dense_samples, classes), CALLS), ours], times)
    item = f"update of {BATCH} rows, packed, {where}, vs. dense, N={dense_samples:,}"
    yield Line(item, seconds[0] / CALLS, seconds[1] / CALLS, seconds[1] / seconds[0], 2, at_most=True)


def growth(samples: int, classes: int, times: int) -> Line:
    """Time and memory of the dense state, or of the packed one if the dense one would be too large."""
    dense = samples * classes <= DENSE_LIMIT
    if dense:
        mask = torch.cat(list(mask_in_parts(samples, classes)))
        step, used = update(DenseConfidence(mask), mask, samples, classes), dense_memory(samples, classes)
    else:
        sets = PackedSets(mask_in_parts(samples, classes), classes)
        state = PackedConfidence(sets)
        step, used = update(state, sets, samples, classes), memory(state)
    (seconds,) = in_turns([repeated(step, CALLS)], times)
    item = f"state update, {'dense' if dense else 'packed'}, N={samples:,}, K={classes:,} ({used / 1e6:,.0f} MB)"
    return Line(item, None, seconds / CALLS, 1.0)


def measure(quick: bool) -> Iterator[Line]:
    if quick:
        yield from packed_against_dense(100_000, 1000, 10_000, 3)
        return
    yield from packed_against_dense(1_000_000, 1000, 100_000, 5)
    for samples in (10_000, 100_000, 1_000_000):
        for classes in (10, 100, 1000):
            yield growth(samples, classes, 5)
