"""`piefs export`: what a fitted run becomes for programs without piefs."""

import csv
import io
import json
import runpy

import numpy as np
import onnx
import onnxruntime
import pytest

from commands import piefs
from piefs.app.model import open_model
from piefs.data.readers import read_table

pytestmark = pytest.mark.usefixtures("undrawn")

N_NEW = 40


def write_customers(path, n, seed, delimiter=","):
    """A table with a category, a date, a boolean, gaps, decimal commas if so asked, and an ID."""
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["customer", "joined", "age", " plan ", "member", "churn"])
        for i in range(n):
            age = f"{rng.normal(40, 10):.1f}".replace(".", "," if delimiter == ";" else ".")
            joined = f"2020-0{rng.integers(1, 10)}-1{rng.integers(0, 10)}"
            plan, member = rng.choice(["basic", "gold; plus", 'a "b"']), rng.choice(["yes", "no"])
            gap = rng.random() < 0.1
            row = [f"C{i}", joined, "n/a" if gap else age, plan, member, "ny"[i % 2]]
            writer.writerow(row)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    write_customers(folder / "old.csv", 120, 0)
    write_customers(folder / "new.csv", N_NEW, 1)
    write_customers(folder / "european.csv", N_NEW, 1, ";")
    fit = ["fit", "old.csv", "--target", "churn", "--id", "customer", "--missing", "impute"]
    done = piefs(*fit, "-k", "2", "--steps", "5", "--no-report", "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("rows", ["new.csv", "european.csv"])
def test_the_exported_module_says_of_encoded_rows_what_predict_says(folder, rows):
    assert piefs("export", "run", "--out", "churn.py", "--force", cwd=folder).returncode == 0
    expected = csv.reader(io.StringIO(piefs("predict", "run", rows, "--quiet", cwd=folder).stdout))
    header, *lines = expected
    assert header == ["customer", "prediction", "p(n)", "p(y)"]
    x = open_model(folder / "run").encoder.transform(read_table(folder / rows))
    names = runpy.run_path(str(folder / "churn.py"))
    assert names["predict"](x).tolist() == [line[1] for line in lines]
    probabilities = np.array([line[2:] for line in lines], float)
    assert np.abs(names["predict_proba"](x) - probabilities).max() < 1e-6


def test_onnx_is_written_into_the_run_and_says_what_it_takes(folder):
    done = piefs("export", "run", "--format", "onnx", "--force", cwd=folder)
    assert done.returncode == 0, done.stderr
    properties = {
        p.key: json.loads(p.value)
        for p in onnx.load(folder / "run" / "model.onnx").metadata_props
        if p.key in ("feature_names", "classes", "table")
    }
    names = ["joined", "age", 'plan=a "b"', "plan=basic", "plan=gold; plus", "member"]
    assert properties["feature_names"] == names
    assert properties["classes"] == ["n", "y"]
    assert properties["table"]["missing"] == "impute"
    assert all(name in done.stderr for name in names)
    session = onnxruntime.InferenceSession(folder / "run" / "model.onnx")
    rows = np.array([[18400, 40, 0, 1, 0, 1]], np.float32)
    assert session.run(["label"], {"X": rows})[0][0] in ("n", "y")


def test_a_model_saved_from_python_is_exported_too(folder, tmp_path):
    from piefs import load

    load(folder / "run" / "model").save(tmp_path / "saved")
    done = piefs("export", "saved", "--out", "saved.py", "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    names = runpy.run_path(str(tmp_path / "saved.py"))
    assert names["predict"](np.array([[18400, 40, 0, 1, 0, 1]]))[0] in ("n", "y")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "--format"),
        (["run", "--out", "model.txt"], ".onnx"),
        (["run", "--out", "model.onnx", "--format", "numpy"], "does not go with"),
        (["run", "--out", "my-model.py"], "underscores"),
        (["run", "--out", "there.py"], "--force"),
        (["nowhere", "--format", "onnx"], "nowhere"),
        (["run", "--format", "pmml"], "pmml"),
    ],
)
def test_bad_requests_are_one_line_and_write_nothing(folder, arguments, said):
    (folder / "there.py").write_text("mine")
    before = set(folder.iterdir())
    done = piefs("export", *arguments, cwd=folder)
    assert done.returncode == 2
    assert said in done.stderr
    assert set(folder.iterdir()) == before
    assert (folder / "there.py").read_text() == "mine"


@pytest.mark.parametrize("suffix", ["arrow", "feather", "parquet"])
def test_columnar_files_go_in_and_come_out(folder, suffix):
    from tables import write_table

    table = read_table(folder / "new.csv")
    write_table(folder / f"new.{suffix}", table.columns)
    arguments = ("predict", "run", f"new.{suffix}", "--out", f"out.{suffix}")
    done = piefs(*arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    found = read_table(folder / f"out.{suffix}")
    assert found.names == ("customer", "prediction", "p(n)", "p(y)")
    assert len(found) == N_NEW
