"""scikit-learn's own checks of what an estimator must do."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from piefs import PIEFSClassifier, PIEFSTransformer

# Small networks and budgets: the checks are about behaviour, and each shape compiles anew.
SMALL = {
    "n_components": 2,
    "preset": "fast",
    "steps_per_component": 120,
    "hidden": (16, 16),
    "random_state": 0,
}

STOCHASTIC = (
    "rows are drawn into mini-batches at random: a row of weight two is not the same draw as two "
    "rows of weight one, though both have the same expectation"
)


def expected_failures(estimator):
    return {
        "check_sample_weight_equivalence_on_dense_data": STOCHASTIC,
        "check_sample_weight_equivalence_on_sparse_data": STOCHASTIC,
    }


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        PIEFSClassifier(**SMALL),
        PIEFSTransformer(**SMALL),
        PIEFSTransformer(**SMALL, supervised=False),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
