"""scikit-learn's own checks of what an estimator must do."""

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from piefs import Optimizer, PIEFSClassifier, PIEFSRegressor, PIEFSTransformer

# Small networks, batches and budgets: the checks are about behaviour, and every new shape is
# compiled. Double precision, since one check wants decisions that agree to 1e-7.
SMALL = {
    "n_components": 2,
    "preset": "fast",
    "steps_per_component": 200,
    "hidden": (4,),
    "batch_size": 8,
    "optimizer": Optimizer(dtype="float64"),
    "random_state": 0,
}

# Rows that are repeated or weighed are the same rows only where each step sees all of them, and the
# regressor's score is asked of so short a training.
OF_ALL_ROWS = {"check_sample_weight_equivalence_on_dense_data", "check_regressors_train"}

GRAPH = "a neighbourhood graph knows rows and not weights: a row twice has itself for a neighbour"


def expected_failures(estimator):
    if getattr(estimator, "supervised", True) is False:
        return {"check_sample_weight_equivalence_on_dense_data": GRAPH}
    return {}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([PIEFSClassifier(**SMALL)])
def test_scikit_learn_check(estimator, check):
    checked(estimator, check)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([PIEFSClassifier(), PIEFSRegressor(), PIEFSTransformer()])
def test_scikit_learn_check_of_default_settings(estimator, check):
    """In closed form, and with no failure declared beforehand."""
    check(estimator)


@pytest.mark.slow  # all three share `fit`
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        PIEFSRegressor(**SMALL),
        PIEFSTransformer(**SMALL, supervised=False),  # with labels it is the classifier's fit
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_check_of_the_others(estimator, check):
    checked(estimator, check)


def checked(estimator, check):
    if check.func.__name__ in OF_ALL_ROWS:
        estimator = clone(estimator).set_params(batch_size=None)
    check(estimator)
