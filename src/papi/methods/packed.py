"""Candidate sets, and how much each candidate is believed, where samples times classes would take too much memory.

Only the candidates' entries are kept, one row after another; the rows of a batch are unfolded to `(B, K)` when they are
asked for. An entry goes through the same arithmetic as in `DenseConfidence`, so results are bit-equal. This is for
methods that never believe in anything but a candidate: what lies outside the sets has no place here.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from papi import distributed
from papi.methods.state import Confidence, DenseConfidence

PACKED_ABOVE = 100_000_000  # entries N×K: from half a gigabyte on, as a mask of bytes and a matrix of float32
_ROWS = 16_384  # of the mask that are looked at, at a time
_PLACES = 2**22  # entries that are unfolded at a time, some 30 bytes each


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

    @property
    def device(self) -> torch.device:
        """Where the sets lie."""
        return self.starts.device

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        return self.unfold(index)

    def places(self, index: Tensor) -> Tensor:
        """`(B, width)`: where the entries of each sample lie. A shorter row repeats its first entry."""
        start, end = self.starts[index][:, None], self.starts[index + 1][:, None]
        place = start + torch.arange(self.width, device=start.device)
        return torch.where(place < end, place, start)

    def unfold(self, index: Tensor | slice, entries: Tensor | None = None) -> Tensor:
        """`(B, K)`: the entries `(E,)` of these samples, True without any, and zero where there is no candidate.

        One large set makes all places as wide as itself, so only so many samples are unfolded at once.
        """
        if isinstance(index, slice):
            index = torch.arange(*index.indices(len(self)), device=self.device)
        kind = torch.bool if entries is None else entries.dtype
        rows = torch.zeros(len(index), self.shape[1], dtype=kind, device=self.device)
        at_once = max(1, _PLACES // self.width)
        for part, some in zip(torch.split(rows, at_once), torch.split(index, at_once), strict=True):
            places = self.places(some)
            columns = self.columns[places].long()
            part.scatter_(1, columns, True) if entries is None else part.scatter_(1, columns, entries[places])
        return rows

    def sizes(self) -> Tensor:
        """How many candidates each sample has, `(N,)`."""
        return self.starts.diff()


class PackedConfidence(Confidence):
    """A number for each candidate instead of each class."""

    entries: Tensor  # (E,) float32, in the order of `sets.columns`

    def __init__(self, sets: PackedSets, *, learned: bool = True) -> None:
        super().__init__()
        self.sets = sets
        sizes = sets.sizes()
        self.register_buffer("entries", (1 / sizes.float()).repeat_interleave(sizes), persistent=learned)

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        return self.sets.unfold(index, self.entries)

    @torch.no_grad()
    def replace(self, index: Tensor, guess: Tensor) -> None:
        part = distributed.locate(len(index))
        self._write(self.sets.places(part.gather(index)), part.gather(guess))

    def start_from(self, value: Tensor) -> None:
        for rows in torch.split(torch.arange(len(self.sets)), _ROWS):
            self._write(self.sets.places(rows.to(self.entries.device)), value[rows].to(self.entries.device))

    def highest(self) -> tuple[Tensor, Tensor]:
        starts = range(0, len(self.sets), _ROWS)
        found = [(part.amax(1), part.argmax(1)) for part in (self[start : start + _ROWS] for start in starts)]
        return torch.cat([value for value, _ in found]), torch.cat([label for _, label in found])

    @property
    def all_rows(self) -> Tensor:
        """All rows unfolded, `(N, K)`: all the memory that is saved otherwise."""
        return self[:]

    def _write(self, places: Tensor, rows: Tensor) -> None:
        # A row that repeats its first entry writes the same value there again.
        self.entries[places] = rows.gather(1, self.sets.columns[places].long()).to(self.entries.dtype)


Candidates = Tensor | PackedSets
"""The candidate sets of all samples, `(N, K) bool`, in one of both forms."""


def uniform_confidence(candidates: Candidates, *, learned: bool = True) -> Confidence:
    """Every candidate of a sample is as likely as the others: what a method begins with, packed if the sets are.

    What is not `learned` but given with the data is not in checkpoints.
    """
    if isinstance(candidates, PackedSets):
        return PackedConfidence(candidates, learned=learned)
    return DenseConfidence(candidates, learned=learned)


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


def memory_notes(method: str, candidates: Candidates) -> list[str]:
    """What to say where a mask is large and could not be packed: the memory of a matrix of its size."""
    if isinstance(candidates, PackedSets) or candidates.numel() <= PACKED_ABOVE:
        return []
    gigabytes = 4 * candidates.numel() / 1e9
    return [f"{method} remembers a number for every sample and class with these settings and sets: {gigabytes:.1f} GB."]
