"""Tables read and written block by block, from the command line."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from commands import piefs

pytestmark = pytest.mark.usefixtures("undrawn")

QUICK = ("--steps", "30", "-k", "2", "--no-report", "--quiet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of two Parquet files, the same table as one, and a model of the folder."""
    folder, rng = tmp_path_factory.mktemp("streaming"), np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    table = pa.table(
        {
            **{f"c{j}": x[:, j] for j in range(3)},
            "kind": np.where(x[:, 2] > 0, "a", "b"),
            "who": [f"r{i}" for i in range(200)],
            "bought": np.where(x[:, 0] > 0, "yes", "no"),
        }
    )
    (folder / "parts").mkdir()
    parquet.write_table(table, folder / "whole.parquet")
    parquet.write_table(table[:90], folder / "parts/0.parquet", row_group_size=40)
    parquet.write_table(table[90:], folder / "parts/1.parquet")
    columns = ("--target", "bought", "--id", "who")
    done = piefs("fit", "parts", *columns, "--out", "run", *QUICK, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_a_folder_of_parquet_files_is_fitted_and_described(folder):
    document = json.loads((folder / "run/model/model.json").read_text())
    kinds = [column["kind"] for column in document["table"]["columns"]]
    assert kinds == ["number", "number", "number", "category"]
    metrics = json.loads((folder / "run/metrics.json").read_text())
    assert set(metrics["accuracy"]) == {"train", "validation", "test"}


@pytest.mark.parametrize(("command", "ending"), [("transform", "parquet"), ("predict", "csv")])
def test_what_is_streamed_is_what_is_computed_at_once(folder, command, ending):
    for data, out in {"parts": f"a.{ending}", "whole.parquet": f"b.{ending}"}.items():
        done = piefs(command, "run", data, "--out", out, cwd=folder)
        assert "200 rows" in done.stderr
    if ending == "csv":
        assert (folder / "a.csv").read_text() == (folder / "b.csv").read_text()
    else:
        found, expected = (parquet.read_table(folder / f"{name}.parquet") for name in "ab")
        assert found.equals(expected)


def test_a_format_that_is_not_written_is_refused_before_any_work(folder):
    (folder / "damaged.parquet").write_bytes(b"")
    done = piefs("transform", "run", "damaged.parquet", "--out", "a.xlsx", cwd=folder)
    assert done.returncode == 2
    assert "must end in one of .csv" in done.stderr
