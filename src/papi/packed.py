"""Candidate sets, and how much each candidate is believed, where samples times classes would take too much memory.

Only the candidates' entries are kept, one row after another; the rows of a batch are unfolded to `(B, K)` when they are
asked for. An entry goes through the same arithmetic as in `Confidence`, so results are bit-equal. This is for methods
that never believe in anything but a candidate: what lies outside the sets has no place here.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from papi.state import Confidence

PACKED_ABOVE = 100_000_000  # entries N×K: from half a gigabyte on, as a mask of bytes and a matrix of float32
_ROWS = 16_384  # of the mask at a time: how much of it is looked at, or unfolded, at once


class PackedSets(nn.Module):
    """Stands in for the mask `(N, K) bool`: `sets[index]` gives the rows of a batch, `(B, K) bool`.

    Its tensors are not in checkpoints: like the mask, they are given and not learned.
    """

    columns: Tensor  # (E,) int16 or int32: the candidates of the first sample, of the second …
    starts: Tensor  # (N + 1,) int64: where in `columns` each sample begins, and the end

    def __init__(self, parts: Iterable[Tensor], classes: int) -> None:
        """From a mask in parts `(n, K) bool`, of which one at a time is needed; every row has a candidate."""
        super().__init__()
        kind = torch.int16 if classes <= 2**15 else torch.int32
        columns, sizes = [], []
        for part in parts:
            columns.append(part.nonzero()[:, 1].to(kind))
            sizes.append(part.sum(1))
        counts = torch.cat(sizes)
        assert bool((counts > 0).all()), "sets without a candidate are refused when data are read"
        self.register_buffer("columns", torch.cat(columns), persistent=False)
        self.register_buffer("starts", torch.cat([counts.new_zeros(1), counts.cumsum(0)]), persistent=False)
        self.shape = torch.Size([len(counts), classes])
        self.width = int(counts.max())

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        places = self.places(index)
        return self.unfold(places, torch.ones_like(places, dtype=torch.bool))

    def places(self, index: Tensor | slice) -> Tensor:
        """`(B, width)`: where the entries of each sample lie. A shorter row repeats its first entry."""
        if isinstance(index, slice):
            index = torch.arange(*index.indices(len(self)), device=self.starts.device)
        start, end = self.starts[index][:, None], self.starts[index + 1][:, None]
        place = start + torch.arange(self.width, device=start.device)
        return torch.where(place < end, place, start)

    def unfold(self, places: Tensor, values: Tensor) -> Tensor:
        """`(B, K)` from the values `(B, width)` of entries; zero where there is no candidate."""
        return values.new_zeros(len(places), self.shape[1]).scatter_(1, self.columns[places].long(), values)

    def sizes(self) -> Tensor:
        """How many candidates each sample has, `(N,)`."""
        return self.starts.diff()


class PackedConfidence(Confidence):
    """As `Confidence`, with one number for each candidate instead of each class."""

    entries: Tensor  # (E,) float32, in the order of `sets.columns`

    def __init__(self, sets: PackedSets) -> None:
        nn.Module.__init__(self)
        self.sets = sets
        sizes = sets.sizes()
        self.register_buffer("entries", (1 / sizes.float()).repeat_interleave(sizes))

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        places = self.sets.places(index)
        return self.sets.unfold(places, self.entries[places])

    @torch.no_grad()
    def replace(self, index: Tensor, guess: Tensor) -> None:
        places = self.sets.places(index)
        # A row that repeats its first entry writes the same value there again.
        self.entries[places] = guess.gather(1, self.sets.columns[places].long()).to(self.entries.dtype)

    @property
    def value(self) -> Tensor:  # type: ignore[override]
        """All rows unfolded, `(N, K)`: the memory that is saved otherwise."""
        return torch.cat([self[slice(start, start + _ROWS)] for start in range(0, len(self.sets), _ROWS)])


def worth_packing(candidates: Tensor) -> bool:
    """Whether a mask `(N, K) bool` is large, and its confidence and it take a quarter of the memory if packed."""
    samples, classes = candidates.shape
    if samples * classes <= PACKED_ABOVE:
        return False
    entries = int(candidates.count_nonzero())
    return 4 * ((4 + 2) * entries + 8 * samples) < (4 + 1) * samples * classes


def packed(candidates: Tensor) -> PackedSets:
    """A whole mask `(N, K) bool`, packed."""
    return PackedSets(torch.split(candidates, _ROWS), candidates.shape[1])
