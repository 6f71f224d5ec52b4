"""Tables that several tests read."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet


@pytest.fixture
def matrix(rng):
    return rng.normal(size=(23, 3)).astype(np.float32)


@pytest.fixture(scope="session")
def mixed(tmp_path_factory):
    """Numbers, words, dates, gaps, a counter and a target, in one file and in a folder of two."""
    folder, rng = tmp_path_factory.mktemp("mixed"), np.random.default_rng(0)
    price = rng.normal(size=240)
    price[7] = np.nan
    table = pa.table(
        {
            "price": price,
            "kind": rng.choice(["a", "b", "c"], 240),
            "day": [f"2024-01-{1 + i % 28:02}" for i in range(240)],
            "row": np.arange(240),
            "who": [f"w{i % 40}" for i in range(240)],
            "bought": np.where(price > 0, "yes", "no"),
        }
    )
    parquet.write_table(table, folder / "whole.parquet", row_group_size=50)
    (folder / "parts").mkdir()
    parquet.write_table(table[:100], folder / "parts/0.parquet")
    parquet.write_table(table[100:], folder / "parts/1.parquet", row_group_size=30)
    return folder
