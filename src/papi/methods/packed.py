"""Sparse candidate sets and confidences, for data where `(N, K)` matrices would take too much memory.

Only the entries of candidates are stored, row by row; the rows of a batch are unpacked to `(B, K)` on access. The
arithmetic is that of `DenseConfidence`, so results are bit-equal. Only methods that give no weight to labels outside
the candidates can use this form.
"""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from papi.methods.state import Confidence, DenseConfidence

PACKED_ABOVE = 2**24  # entries N×K: 84 MB for a mask of bytes and a float32 matrix
TOLD_ABOVE = 100_000_000  # entries above which a matrix that cannot be packed is reported
_ROWS = 16_384  # rows of the mask processed at a time
_PLACES = 2**22  # entries unpacked at a time, about 30 bytes each


class PackedSets(nn.Module):
    """Replaces the mask `(N, K) bool`: `sets[index]` returns the rows of a batch, `(B, K) bool`.

    Like the mask, its tensors come with the data and are not part of checkpoints.
    """

    columns: Tensor  # (E,) int16 or int32: the candidates of the first sample, of the second …
    starts: Tensor  # (N + 1,) int64: where in `columns` each sample begins, and the end

    def __init__(self, parts: Iterable[Tensor], classes: int) -> None:
        """Build from chunks `(n, K) bool` of a mask, read one at a time; every row has a candidate."""
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
        """The device of the sets."""
        return self.starts.device

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        return self.unfold(index)

    def places(self, index: Tensor) -> Tensor:
        """`(B, width)`: positions of each sample's entries. A shorter row repeats its first entry."""
        start, end = _entries(self.starts, index)[:, None], _entries(self.starts, index + 1)[:, None]
        place = start + torch.arange(self.width, device=start.device)
        return torch.where(place < end, place, start)

    def unfold(self, index: Tensor | slice, entries: Tensor | None = None) -> Tensor:
        """`(B, K)`: the entries `(E,)` of these samples, True if none are given, and zero outside the candidates.

        All rows are as wide as the largest set, so the number of samples unpacked at once is limited.
        """
        if isinstance(index, slice):
            index = torch.arange(*index.indices(len(self)), device=self.device)
        kind = torch.bool if entries is None else entries.dtype
        rows = torch.zeros(len(index), self.shape[1], dtype=kind, device=self.device)
        at_once = max(1, _PLACES // self.width)
        for part, some in zip(torch.split(rows, at_once), torch.split(index, at_once), strict=True):
            places = self.places(some)
            columns = _entries(self.columns, places).long()
            part.scatter_(1, columns, True if entries is None else _entries(entries, places))
        return rows

    def sizes(self) -> Tensor:
        """The number of candidates of each sample, `(N,)`."""
        return self.starts.diff()


class PackedConfidence(Confidence):
    """One value per candidate instead of one per class."""

    entries: Tensor  # (E,) float32, in the order of `sets.columns`

    def __init__(self, sets: PackedSets, *, learned: bool = True) -> None:
        super().__init__()
        self.sets = sets
        sizes = sets.sizes()
        self.register_buffer("entries", (1 / sizes.float()).repeat_interleave(sizes), persistent=learned)

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        return self.sets.unfold(index, self.entries)

    def write(self, index: Tensor, guess: Tensor) -> None:
        self._write(self.sets.places(index), guess)

    def start_from(self, value: Tensor, rows: slice = slice(None)) -> None:
        index = torch.arange(len(self.sets))[rows]
        for part, some in zip(torch.split(index, _ROWS), torch.split(value, _ROWS), strict=True):
            self._write(self.sets.places(part.to(self.entries.device)), some.to(self.entries.device))

    def entries_of(self, value: Tensor) -> Tensor:
        """The values of `(N, K)` at the candidates, `(E,)`."""
        rows = torch.arange(len(self.sets), device=value.device).repeat_interleave(self.sets.sizes().to(value.device))
        return value[rows, self.sets.columns.to(value.device).long()]

    def highest(self) -> tuple[Tensor, Tensor]:
        starts = range(0, len(self.sets), _ROWS)
        found = [(part.amax(1), part.argmax(1)) for part in (self[start : start + _ROWS] for start in starts)]
        return torch.cat([value for value, _ in found]), torch.cat([label for _, label in found])

    @property
    def all_rows(self) -> Tensor:
        """All rows unpacked, `(N, K)`; this needs the full memory of a dense matrix."""
        return self[:]

    def _write(self, places: Tensor, rows: Tensor) -> None:
        # A row that repeats its first entry writes the same value there again.
        values = rows.gather(1, _entries(self.sets.columns, places).long()).to(self.entries.dtype)
        self.entries.index_copy_(0, places.flatten(), values.flatten())


def _entries(values: Tensor, places: Tensor) -> Tensor:
    """`values[places]`, in half the time on a CPU."""
    return values.index_select(0, places.flatten()).view_as(places)


Candidates = Tensor | PackedSets
"""The candidate sets of all samples, `(N, K) bool`, dense or packed."""


def uniform_confidence(candidates: Candidates, *, learned: bool = True) -> Confidence:
    """The initial confidence, equal for all candidates of a sample; packed if the sets are.

    A confidence that is given with the data, not `learned`, is not saved in checkpoints.
    """
    if isinstance(candidates, PackedSets):
        return PackedConfidence(candidates, learned=learned)
    return DenseConfidence(candidates, learned=learned)


def packed_state(state: Mapping[str, Tensor], module: nn.Module) -> dict[str, Tensor]:
    """Convert a saved state to the packed form where `module` uses it; earlier versions saved `(N, K)` instead."""
    known = dict(state)
    for name, part in module.named_modules():
        value = known.get(f"{name}.value")
        if isinstance(part, PackedConfidence) and value is not None and value.shape == part.sets.shape:
            known[f"{name}.entries"] = part.entries_of(known.pop(f"{name}.value"))
    return known


def worth_packing(candidates: Tensor) -> bool:
    """Whether a mask `(N, K) bool` is large, and packing reduces it and its confidence to a quarter of the memory."""
    samples, classes = candidates.shape
    if samples * classes <= PACKED_ABOVE:
        return False
    entries = int(candidates.count_nonzero())
    return 4 * ((4 + 2) * entries + 8 * samples) < (4 + 1) * samples * classes


def packed(candidates: Tensor) -> PackedSets:
    """A whole mask `(N, K) bool`, packed."""
    return PackedSets(torch.split(candidates, _ROWS), candidates.shape[1])


def memory_notes(method: str, candidates: Candidates) -> list[str]:
    """A message about the memory of a large mask that cannot be packed."""
    if isinstance(candidates, PackedSets) or candidates.numel() <= TOLD_ABOVE:
        return []
    gigabytes = 4 * candidates.numel() / 1e9
    return [f"{method} stores one number per sample and class with these settings and sets: {gigabytes:.1f} GB."]
