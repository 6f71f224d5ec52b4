"""Values as numbers of their distinct ones."""

import numpy as np
import pytest

from piefs.data import cells
from piefs.data.cells import coded


@pytest.mark.parametrize(
    "values",
    [
        np.array([3, 1, 3, 2, 1, 1, 7]),
        np.array(list("bacab"), object),
        np.array([0.5, np.nan, -1, np.nan]),
        np.array([True, False, True]),
    ],
    ids=str,
)
def test_codes_in_blocks_are_those_of_numpy(values, monkeypatch):
    monkeypatch.setattr(cells, "BLOCK_ROWS", 2)
    distinct, found = coded(values)
    expected, inverse = np.unique(values, return_inverse=True)
    np.testing.assert_array_equal(distinct, expected)
    np.testing.assert_array_equal(found, inverse)
    assert found.dtype == np.int32
