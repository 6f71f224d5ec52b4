"""scikit-learn's own checks of NeuralEF as a transformer."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from reproduction.baselines import NeuralEF

# Small networks: the checks are about behaviour, and each shape compiles anew.
SMALL = {"n_components": 2, "hidden": (8,), "steps": 20, "batch_size": 16, "random_state": 0}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([NeuralEF(**SMALL)])
def test_scikit_learn_check(estimator, check):
    check(estimator)
