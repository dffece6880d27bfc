"""The samples that a run was trained on are found again in the data."""

from dataclasses import replace

import numpy as np
import pytest

from papi.data.dataset import Dataset
from papi.runs.record import sets_of
from papi.runs.samples import trained_on
from toy_data import make_toy_dataset


def named(dataset: Dataset) -> Dataset:
    return replace(dataset, file_names=tuple(f"{i:03}.png" for i in range(len(dataset.samples)))[::-1])


@pytest.mark.parametrize("change", [lambda whole: whole, named, lambda whole: whole.taking(np.arange(1, 30, 2))])
def test_a_part_is_found_by_name_or_position(change) -> None:  # type: ignore[no-untyped-def]
    whole = change(make_toy_dataset())
    rows = np.array([0, 2, 3, 9])
    part = whole.taking(rows)
    sets = sets_of(part, np.ones((4, 2), bool))
    np.testing.assert_array_equal(trained_on(whole, sets).samples, part.samples)
    assert trained_on(part, sets) is part
    lacking = whole.taking(np.array([0, 2, 4, 5, 6, 7, 9]))
    assert trained_on(lacking, sets) is lacking
