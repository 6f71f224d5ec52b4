"""The command line with a number to predict, from a table to predictions."""

import csv
import json

import numpy as np
import pytest
from sklearn.metrics import r2_score

from commands import piefs
from piefs.app.model import inspect
from piefs.app.options import Rows
from piefs.app.predict import predict, transform
from piefs.app.predict import score as score_rows
from piefs.errors import InputError
from piefs.training.diagnosis import overfitting

pytestmark = pytest.mark.usefixtures("undrawn")

SMALL = ["--preset", "fast", "-k", "2", "--batch-size", "64", "--config", "small.toml"]
SMALL += ["--no-report"]
COLUMNS = ["flat", "area", "district", "rooms", "price"]


def write_homes(path, n, columns, seed):
    """Homes with an ID, a category, a whole number, and a price that some rows lack."""
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        for i in range(n):
            area, district = rng.uniform(20, 120), rng.choice(["north", "south", "centre"])
            price = area * (5 if district == "centre" else 3) + rng.normal(0, 5)
            writer.writerow(
                {
                    "flat": f"F{i:05d}",
                    "area": f"{area:.1f}",
                    "district": district,
                    "rooms": rng.integers(1, 6),
                    "price": "" if i % 25 == 7 else f"{price:.2f}",
                }
            )


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    """A folder with two tables of homes, and a run fitted on the first."""
    folder = tmp_path_factory.mktemp("homes")
    (folder / "small.toml").write_text("hidden = [16, 16]")
    write_homes(folder / "homes.csv", 400, COLUMNS, 0)
    write_homes(folder / "new.csv", 50, COLUMNS[::-1], 1)
    done = piefs(
        *("fit", "homes.csv", "--target", "price", "--id", "flat", "--out", "run"),
        *(*SMALL, "--steps", "200", "--report"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def score(run, data, target=None, *, as_json=False):
    """`piefs score` without a process of its own, which takes seconds to start."""
    score_rows(run, Rows(str(data)), target=target, as_json=as_json)


def test_one_command_fits_numbers_and_says_that_it_did(homes):
    folder, printed = homes
    assert "the task is regression, since column 'price' holds numbers with fractions" in printed
    assert "--task classification|regression|unsupervised" in printed
    assert "16 rows have no value in 'price'" in printed
    for label in ("R²", "RMSE", "MAE", "Gram error"):
        assert label in printed
    assert "accuracy" not in printed
    metrics = json.loads((folder / "run" / "metrics.json").read_text())
    assert metrics["task"] == "regression"
    assert metrics["r2"]["test"] > 0.8
    for name in ("rmse", "mae"):
        assert set(metrics[name]) == {"train", "validation", "test"}


def test_the_report_of_numbers_has_residuals_and_no_classes(homes):
    page = (homes[0] / "run" / "report.html").read_text()
    for name in ("predictions", "residuals", "dependence-1", "score-by-maps"):
        assert f'id="figure-{name}"' in page
    assert "figure-confusion" not in page
    for baseline in ("mean", "ridge", "gradient boosting"):
        assert f"<td>{baseline}</td>" in page


def test_predictions_are_numbers_behind_the_ids_and_score_agrees_with_them(homes):
    folder, _ = homes
    done = piefs("predict", "run", "new.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert list(rows[0]) == ["flat", "prediction"]
    assert [row["flat"] for row in rows] == [f"F{i:05d}" for i in range(50)]
    truth = list(csv.DictReader((folder / "new.csv").read_text().splitlines()))
    pairs = zip(truth, rows, strict=True)
    known = [(row["price"], other["prediction"]) for row, other in pairs if row["price"]]
    true, predicted = np.array(known, dtype=float).T
    scores = json.loads(piefs("score", "run", "new.csv", "--json", cwd=folder).stdout)
    assert scores["n_rows"] == 48
    assert scores["r2"] == pytest.approx(r2_score(true, predicted))
    assert scores["rmse"] == pytest.approx(np.mean((true - predicted) ** 2) ** 0.5)
    assert scores["mae"] == pytest.approx(np.mean(np.abs(true - predicted)))


def test_predictions_do_not_depend_on_the_order_of_columns(homes):
    folder, _ = homes
    write_homes(folder / "same.csv", 50, COLUMNS, 1)
    stored = []
    for name in ("new", "same"):
        out = folder / f"{name}.npz"
        table = Rows(str(folder / f"{name}.csv"))
        predict(folder / "run", table, out, quiet=True)
        with np.load(out) as columns:
            stored.append(columns["prediction"])
    assert stored[0].dtype == np.float64
    np.testing.assert_array_equal(*stored)


def test_score_shows_a_table_and_one_row_has_no_r2(homes, capsys):
    folder, _ = homes
    score(folder / "run", folder / "new.csv")
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("R²", "RMSE", "MAE", "Gram error"))
    (folder / "one.csv").write_text("flat,area,district,rooms,price\nF1,50,north,2,150\n")
    score(folder / "run", folder / "one.csv")
    r2 = next(line for line in capsys.readouterr().out.splitlines() if " R² " in line)
    assert "–" in r2


def test_transform_and_inspect_know_a_regressor(homes, capsys):
    folder, _ = homes
    table = Rows(str(folder / "new.csv"))
    transform(folder / "run", table, None, quiet=True)
    assert capsys.readouterr().out.splitlines()[0] == "flat,phi1,phi2"
    inspect(folder / "run", as_json=False)
    printed = capsys.readouterr().out
    assert "PIEFSRegressor" in printed
    assert "predicts price: a number" in printed
    inspect(folder / "run", as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert (document["target"], document["class_names"]) == ("price", [])


def test_resuming_a_finished_run_tells_its_metrics_again(homes):
    folder, _ = homes
    again = ["fit", "homes.csv", "--target", "price", "--out", "run", *SMALL, "--resume"]
    done = piefs(*again, "--json", cwd=folder)
    assert json.loads(done.stdout) == json.loads((folder / "run" / "metrics.json").read_text())


@pytest.mark.slow
def test_whole_numbers_are_predicted_as_numbers_if_that_is_asked_for(homes):
    folder, _ = homes
    done = piefs(
        *("fit", "homes.csv", "--target", "rooms", "--drop", "price", "--drop", "flat", *SMALL),
        *("--task", "regression", "--steps", "20", "--out", "rooms"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert "R²" in done.stdout
    assert "the task is" not in done.stdout


@pytest.mark.parametrize(
    ("name", "target", "said"),
    [
        ("new.csv", "district", "'district' has '.*' in line 2"),
        ("new.csv", "prize", "did you mean 'price'"),
        ("empty.csv", None, "nothing to compare with"),
    ],
)
def test_what_cannot_be_scored_is_said(homes, name, target, said):
    folder, _ = homes
    (folder / "empty.csv").write_text("area,district,rooms,price\n50,north,2,\n")
    with pytest.raises(InputError, match=said):
        score(folder / "run", folder / name, target)


@pytest.mark.slow
def test_a_regressor_of_the_plane_predicts_for_classes_but_is_not_scored_on_them(tmp_path, capsys):
    rows = (f"{i % 7},{i % 5},{i / 2}" for i in range(40))
    (tmp_path / "plane.csv").write_text("\n".join(["a,b,y", *rows]))
    (tmp_path / "small.toml").write_text("hidden = [8, 8]")
    fit = ["fit", "plane.csv", "--target", "y", *SMALL, "--steps", "20", "--out", "run"]
    done = piefs(*fit, "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    predict(tmp_path / "run", Rows("two-moons"), None, quiet=True)
    assert capsys.readouterr().out.startswith("prediction\n")
    with pytest.raises(InputError, match="predicts numbers"):
        score(tmp_path / "run", "two-moons")


@pytest.mark.parametrize(
    ("task", "name", "train", "validation", "said"),
    [
        ("classification", "accuracy", 0.99, 0.95, "4.0 points of accuracy"),
        ("classification", "accuracy", 0.99, 0.98, None),
        ("classification", "accuracy", 0.90, 0.95, None),
        ("unsupervised", "accuracy", 0.99, 0.90, None),
        ("regression", "r2", 0.90, 0.80, "0.10 of R²"),
        ("regression", "r2", 0.90, 0.87, None),
        ("regression", "r2", 0.90, None, None),
    ],
)
def test_a_gap_between_training_and_validation_is_said(task, name, train, validation, said):
    gap = overfitting({"task": task, name: {"train": train, "validation": validation}})
    if said is None:
        assert gap is None
    else:
        assert said in gap.says
        assert "cross_val_predict(" in gap.advice


@pytest.mark.slow
def test_the_gap_is_printed_under_the_scores(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{rng.integers(2)}" for a, b in rng.normal(size=(60, 2))]
    (tmp_path / "noise.csv").write_text("\n".join(["a,b,y", *rows]))
    done = piefs(
        *("fit", "noise.csv", "--target", "y", "--preset", "fast", "-k", "4", "--no-report"),
        *("--out", "run", "--solver", "nested"),  # the closed form hardly learns noise by heart
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "their coordinates are optimistic" in done.stdout
