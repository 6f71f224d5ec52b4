"""n_components="auto": the fewest coordinates that match the best loss on rows left out."""

import json

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons

from commands import piefs
from piefs import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer, load
from piefs.errors import InputError
from piefs.training.readout import fewest_within_error

pytestmark = pytest.mark.usefixtures("undrawn")

AUTO = {"n_components": "auto", "random_state": 0}


def line_and_blobs():
    """Two classes along a line, a tenth of the labels wrong, and ten that lie around in space."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    wrong = rng.random(400) < 0.1
    blobs = make_blobs(400, 6, centers=10, cluster_std=0.6, random_state=0)
    return (x, ((x[:, 0] > 0) ^ wrong).astype(int)), blobs


def test_two_classes_on_a_line_need_few_coordinates_and_ten_classes_more(tmp_path):
    (x, y), (many_x, many_y) = line_and_blobs()
    few = PIEFSClassifier(**AUTO).fit(x[:300], y[:300])
    more = PIEFSClassifier(**AUTO).fit(many_x[:300], many_y[:300])
    assert few.n_components_ <= 2 < more.n_components_ < 30
    assert few.score(x[300:], y[300:]) > 0.8
    assert more.score(many_x[300:], many_y[300:]) > 0.9
    assert few.transform(x).shape == (400, few.n_components_)
    assert few.n_components == "auto"  # a keyword stays as it was given
    few.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.n_components_ == few.n_components_
    np.testing.assert_array_equal(again.predict(x), few.predict(x))


def test_numbers_to_predict_have_their_coordinates_chosen_too():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (300, 2))
    model = PIEFSRegressor(**AUTO).fit(x, x[:, 0] + 0.1 * x[:, 1])
    assert model.n_components_ <= 4
    assert model.score(x, x[:, 0] + 0.1 * x[:, 1]) > 0.9


def test_the_fewest_within_an_error_of_the_best_are_taken():
    noise = np.where(np.arange(100) % 2, 0.5, -0.5)[:, None]  # a standard error of 0.05
    means = np.array([3.0, 1.1, 1.04, 1.0, 1.1])
    assert fewest_within_error(noise + means) == 3
    assert fewest_within_error(np.tile(means, (9, 1))) == 4
    assert fewest_within_error(np.tile(means, (9, 1)), chance=10.0) == 2


def test_no_more_are_tried_than_a_tenth_of_the_rows_and_32():
    assert [PIEFSClassifier(**AUTO).check_settings(n).n_components for n in (5, 100, 9999)] == [
        *(1, 10, 32)
    ]


def test_where_nothing_says_how_many_do_it_is_refused():
    x, y = make_moons(60, random_state=0)
    with pytest.raises(InputError, match="needs labels"):
        PIEFSTransformer(**AUTO).fit(x)
    for solver in ("joint", "nested", "sequential"):
        with pytest.raises(InputError, match='goes with solver="eigen"'):
            PIEFSClassifier(**AUTO, solver=solver).fit(x, y)


def test_the_command_line_refuses_other_words_than_auto(tmp_path):
    done = piefs("fit", "circles", "--out", tmp_path / "run", "-k", "few")
    assert done.returncode == 2
    assert 'must be a whole number of at least 1 or "auto", not' in done.stderr


@pytest.mark.slow
def test_the_command_line_takes_auto(tmp_path):
    (x, y), _ = line_and_blobs()
    table = np.column_stack([x, y])[:150]
    np.savetxt(tmp_path / "t.csv", table, delimiter=",", header="a,b,c,y", comments="")
    arguments = (tmp_path / "t.csv", "--target", "y", "--out", tmp_path / "run")
    done = piefs("fit", *arguments, "-k", "auto")
    assert done.returncode == 0, done.stderr
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["config"]["n_components"] == len(metrics["energies"]) < 10
