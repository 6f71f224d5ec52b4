"""The benchmarks are not run here; what they say of themselves is checked."""

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from piefs.core.losses import init_readout
from piefs.core.maps import init_map
from piefs.core.metric import init_metric
from piefs.core.objectives import Batch, SequentialObjective, Trainable, loss_on
from piefs.core.weighting import Dampened

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from lab.benchmarks import company_page, report, scale_page  # noqa: E402
from lab.costs import step_flops  # noqa: E402


def test_page_on_speed_says_what_was_measured():
    assert (ROOT / "docs/speed.md").read_text() == report.page(report.load())


def test_page_on_planning_says_what_was_measured():
    found = json.loads((ROOT / "lab/benchmarks/results/company.json").read_text())
    assert (ROOT / "docs/plan.md").read_text() == company_page.page(found)


def test_page_on_large_tables_says_what_was_measured():
    text = scale_page.PAGE.read_text()
    found = json.loads(scale_page.RESULT.read_text())
    assert found["peak_mb"] <= found["limit_mb"]
    assert scale_page.section(found) in text


def test_every_result_names_its_machine_and_versions():
    for path in (ROOT / "lab/benchmarks/results").glob("*.json"):
        machine = json.loads(path.read_text())["machine"]
        assert machine["processor"]
        assert {"jax", "piefs"} <= set(machine["versions"])


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
    key = jax.random.key(0)
    params = Trainable(init_map(key, d), init_metric(metric, key, d), init_readout(3, n_components))
    rows = Batch(
        jnp.ones((batch, d)),
        jnp.zeros((batch, n_components)),
        jnp.zeros(batch, int),
        jnp.ones(batch),
        jnp.ones(batch),
    )
    step = jax.grad(lambda p: loss_on(SequentialObjective(Dampened()), p, rows, 1)[0])
    performed = [e for e in equations(step, params) if e.primitive.name == "dot_general"]
    # Sensitivities of the networks to x are written down too; nothing uses them, so they are never
    # computed.
    n_networks = {"off": 1, "diag": 2, "trotter": 3}[metric]
    counted = step_flops(d, batch, metric, merged=True) + n_networks * 2 * batch * d * 64
    # Products with vectors (output layer, readout, weighted means) are left out of the count.
    assert sum(map(products, performed)) == pytest.approx(counted, rel=0.03)
