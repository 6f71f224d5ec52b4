"""A run of format 2, as version 0.1.0 left it: commands work on it, with the numbers of then."""

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from commands import piefs

OLD = Path(__file__).parent / "format2"
"""`pred.csv` is what `piefs predict` said of `churn.csv` then; none of it is written again."""


@pytest.fixture
def run(tmp_path):
    shutil.copytree(OLD, tmp_path / "run")
    (tmp_path / "run" / "history.csv").write_text(
        "step,map,loss_class,loss_mde,gram_residual,validation_accuracy,validation_loss\n"
        "250,3,0.5,1.2,0.4,0.8,0.6\n500,3,0.3,1.1,0.3,0.9,0.5\n"
    )
    return tmp_path / "run"


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_predictions_are_those_it_made_then():
    done = piefs("predict", OLD, OLD / "churn.csv")
    assert done.returncode == 0, done.stderr
    now, then = table(done.stdout), table((OLD / "pred.csv").read_text())
    assert [list(row) for row in now] == [list(row) for row in then]
    for name in then[0]:
        ours, theirs = ([row[name] for row in rows] for rows in (now, then))
        if name.startswith("p("):
            np.testing.assert_allclose(np.array(ours, float), np.array(theirs, float), atol=1e-6)
        else:
            assert ours == theirs


def test_scores_agree_with_the_predictions():
    scores = json.loads(piefs("score", OLD, OLD / "churn.csv", "--json").stdout)
    truth = {row["customer"]: row["churn"] for row in table((OLD / "churn.csv").read_text())}
    predicted = table((OLD / "pred.csv").read_text())
    right = [row["prediction"] == truth[row["customer"]] for row in predicted]
    assert scores["accuracy"] == pytest.approx(np.mean(right))


def test_it_can_be_inspected():
    done = piefs("inspect", OLD)
    assert done.returncode == 0, done.stderr
    for words in ("PIEFSClassifier fitted on churn", "predicts churn: no, yes", "learning_rate"):
        assert words in done.stdout


def test_it_can_be_exported(run):
    assert piefs("export", run, "--format", "numpy").returncode == 0
    assert (run / "model.py").is_file()


def test_its_report_can_be_written_again(run):
    done = piefs("report", run)
    assert done.returncode == 0, done.stderr
    page = (run / "report.html").read_text()
    accuracy = json.loads((run / "metrics.json").read_text())["accuracy"]["test"]
    assert f"{100 * accuracy:.1f}" in page
