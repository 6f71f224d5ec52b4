"""What estimators do with a solver that does not descend: nothing of it needs JAX."""

import subprocess
import sys

import numpy as np
import pytest

from piefs.estimators.rows import TrainingRows
from piefs.training.config import Settings
from piefs.training.solvers import SOLVERS, Task, solver_for

WITHOUT_JAX = """
import resource, sys, time, types
import sklearn.linear_model, sklearn.model_selection, scipy.special
before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
from piefs import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer, load
seconds = time.process_time() - start
megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024

import numpy as np
from piefs.core.model import Model, Readout
from piefs.training.readout import solved_readout
from piefs.training.solvers import SOLVERS, Fitted

class Lines:
    needs_jax = False

    def __init__(self, directions):
        self.directions = directions

    def coordinates(self, x):
        return x @ self.directions

def solve(samples, settings, task, *, validation=None, callbacks=(), warm_start=None):
    assert validation is None and task.kind == "classification"
    K, x = settings.n_components, samples.x
    lines = Lines(np.linalg.qr(x.T @ x)[0][:, :K].astype(x.dtype))
    phi = lines.coordinates(x)
    readout = solved_readout(phi, samples, task.n_outputs)
    model = Model(None, lines, np.eye(K, dtype=x.dtype), None, readout)
    gram = phi.T @ phi / len(phi)
    return Fitted(model, settings, phi, gram, gram, np.diag(gram), np.zeros((K, 2)))

sys.modules["lines"] = types.SimpleNamespace(solve=solve)
SOLVERS["eigen"] = "lines"
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
y = np.where(X[:, 0] > 0, "yes", "no")
model = PIEFSClassifier(2, random_state=0).fit(X, y)
assert model.score(X, y) > 0.9, model.score(X, y)
assert model.transform(X).shape == model.coordinates_.shape == (200, 2)
assert np.allclose(model.coordinates_, model.transform(X), atol=1e-5)
assert model.model_.scaling.clip == 3
assert model.gram_errors(X)["gram_error"] > 0
found = {name.partition(".")[0] for name in sys.modules}
print(sorted(found & {"jax", "jaxlib", "equinox", "optax"}), seconds < 0.4, megabytes < 20)
print(seconds, megabytes)
"""


def test_fitting_and_predicting_with_a_solver_in_numpy_import_no_jax():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_JAX], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[] True True"), done.stdout


def test_all_solvers_are_found_by_name():
    for name in SOLVERS:
        assert callable(solver_for(name))


def test_robust_scaling_bounds_what_is_far_out(rng):
    X = rng.normal(3, 2, size=(2000, 2))
    X[0] = 1e6
    X[:, 1] = np.arange(2000) % 10 == 0  # its quartiles are the same
    scaling = TrainingRows(X).scaling(Settings(solver="eigen"))
    assert scaling.scale[0] == pytest.approx(2, rel=0.1)
    assert scaling.center[0] == pytest.approx(3, abs=0.2)
    assert scaling.scale[1] == pytest.approx(X[:, 1].std())
    assert np.abs(scaling(X)).max() <= 3
    twice = TrainingRows(X, weight=np.full(2000, 2.0)).scaling(Settings(solver="eigen"))
    np.testing.assert_allclose(twice.scale, scaling.scale, rtol=0.01)


def test_losses_and_scores_of_a_task_are_those_of_its_definition(rng):
    logits, labels = rng.normal(size=(50, 3)), rng.integers(3, size=50)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    losses = Task("classification", 3).losses(logits, labels)
    np.testing.assert_allclose(losses, -np.log(p[np.arange(50), labels]))
    numbers, truth = rng.normal(size=(50, 2)), rng.normal(size=(50, 2))
    scores = Task("regression", 2).scores(numbers, truth)
    assert scores["validation_loss"] == pytest.approx(np.mean((numbers - truth) ** 2))
