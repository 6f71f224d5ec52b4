"""The benchmarks are not run here; what they say of themselves is checked."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from piefs.core.losses import init_readout
from piefs.core.maps import init_map
from piefs.core.metric import init_metric
from piefs.core.networks import generator
from piefs.core.objectives import Batch, SequentialObjective, Trainable
from piefs.core.weighting import Dampened

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from lab.benchmarks import pages  # noqa: E402
from lab.benchmarks.results import RESULTS  # noqa: E402
from lab.costs import step_flops  # noqa: E402


def test_pages_say_what_was_measured():
    for path, text in pages.pages(RESULTS).items():
        assert path.read_text(encoding="utf-8") == text, path
    for path, name, text in pages.insets(RESULTS):
        whole = path.read_text(encoding="utf-8")
        assert f"<!-- {name} -->\n{text}<!-- /{name} -->" in whole, f"{path}: {name}"


def test_large_tables_were_fitted_within_the_limit():
    assert RESULTS["memory"]["peak_mb"] <= RESULTS["memory"]["limit_mb"]


def test_every_result_names_its_machine_and_versions():
    for name, found in RESULTS.items():
        assert name == found["benchmark"]
        assert found["machine"]["processor"]
        assert {"jax", "piefs"} <= set(found["machine"]["versions"])


def products(equation):
    """Two operations for each multiply-add of a matrix product, times the loop's length."""
    a = equation.invars[0].aval.shape
    (contracted, _), _ = equation.params["dimension_numbers"]
    inner = 1
    for axis in contracted:
        inner *= a[axis]
    size = 2 * inner
    for extent in equation.outvars[0].aval.shape:
        size *= extent
    return size


@pytest.mark.parametrize("d", [96, 784])
@pytest.mark.parametrize("metric", ["off", "diag", "trotter"])
def test_counted_work_of_a_step_is_what_the_step_does(metric, d, equations):
    batch, n_components = 64, 4
    key = generator(0)
    params = Trainable(init_map(key, d), init_metric(metric, key, d), init_readout(3, n_components))
    rows = Batch(
        jnp.ones((batch, d)),
        jnp.zeros((batch, n_components)),
        jnp.zeros(batch, int),
        jnp.ones(batch),
        jnp.ones(batch),
    )
    step = jax.grad(lambda p: SequentialObjective(Dampened(), k=1)(p, rows)[0])
    performed = [e for e in equations(step, params) if e.primitive.name == "dot_general"]
    # Sensitivities of the networks to x are written down too; nothing uses them, so they are never
    # computed.
    n_networks = {"off": 1, "diag": 2, "trotter": 3}[metric]
    counted = step_flops(d, batch, metric, merged=True) + n_networks * 2 * batch * d * 64
    # Products with vectors (output layer, readout, weighted means) are left out of the count.
    assert sum(map(products, performed)) == pytest.approx(counted, rel=0.03)
