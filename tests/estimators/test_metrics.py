"""The metric keywords: accepted, refused, kept in model folders."""

import numpy as np
import pytest

from piefs import PIEFSClassifier, load
from piefs.errors import InputError
from toys import flat

SMALL = {
    "n_components": 2,
    "steps_per_component": 30,
    "batch_size": 32,
    "hidden": (4,),
    "metric_hidden": (4,),
    "early_stopping": False,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def rows():
    x = np.random.default_rng(0).normal(size=(60, 4))
    return x, (x[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    "keywords",
    [
        {"metric": "agop", "metric_constraint": "trace", "metric_bound": 1.0},
        {
            "metric": "cayley",
            "metric_scope": "composed",
            "metric_constraint": "trace",
            "metric_bound": 1.0,
            "metric_depth": 2,
        },
    ],
)
def test_metric_survives_saving_and_its_bound_holds(keywords, rows, tmp_path):
    fitted = PIEFSClassifier(**flat(**SMALL, **keywords)).fit(*rows)
    low, high = fitted.log_scale_ranges_[-1]
    assert 0 < high - low <= 1.0 + 1e-6
    fitted.save(tmp_path)
    again = load(tmp_path)
    np.testing.assert_array_equal(again.transform(rows[0]), fitted.transform(rows[0]))
    assert again.settings_.metric == fitted.settings_.metric
    assert type(again.model_.metric) is type(fitted.model_.metric)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"metric_bound": 1.0}, 'bound has no meaning for the metric "off"'),
        ({"metric": "diag", "metric_bound": -1.0}, "bound must be a number above 0"),
        ({"metric": "diag", "metric_constraint": "norm"}, "choose one of volume, trace"),
        ({"metric": "diag", "metric_scope": "both"}, "unknown scope"),
        ({"metric": "cayley", "metric_depth": 0}, "depth must be a whole number"),
        ({"metric": "agop", "anisotropy": 0.1}, "use bound"),
        ({"metric": lambda key, d: None, "metric_scope": "global"}, "a metric of your own"),
    ],
)
def test_metric_keywords_that_cannot_work_are_refused(keywords, words):
    with pytest.raises(InputError, match=words):
        PIEFSClassifier(**flat(**keywords)).check_settings(100)
