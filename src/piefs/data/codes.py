"""Values as numbers of their distinct ones, block by block, in little memory."""

import numpy as np

BLOCK_ROWS = 2**20


def coded(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values in order, and which of them each value is (int32)."""
    starts = range(0, len(values), BLOCK_ROWS)
    parts = [np.unique(values[start : start + BLOCK_ROWS]) for start in starts]
    distinct = np.unique(np.concatenate(parts)) if parts else np.unique(values)
    codes = np.empty(len(values), np.int32)
    for start in starts:
        block = values[start : start + BLOCK_ROWS]
        codes[start : start + BLOCK_ROWS] = np.searchsorted(distinct, block)
    return distinct, codes
