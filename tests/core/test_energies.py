import jax
import jax.numpy as jnp
import numpy as np
import pytest

from piefs.core.gradients import FactoredField, _of_rows, block_length, energy_sum
from piefs.core.metric import Diag, Off, RotatedDiag
from piefs.core.rotations import make_rotation

pytestmark = pytest.mark.usefixtures("float64")

D = 5


@pytest.fixture(params=["diag", "trotter"])
def metric(request, rng, network):
    """A metric that asks for blocks of 8 rows."""

    class BlockedDiag(Diag):
        block_rows = 8

    class BlockedRotation(RotatedDiag):
        block_rows = 8

    scale_net = network(rng, (D, 6, D))
    if request.param == "diag":
        return BlockedDiag(scale_net)
    return BlockedRotation(
        Diag(scale_net), network(rng, (D, 6, D - 1)), make_rotation(request.param)
    )


def batch(rng, n):
    x, u, frame = (jnp.asarray(rng.normal(size=s)) for s in ((n, D), (n, 4), (D, 4)))
    return x, FactoredField(u, frame), jnp.asarray(rng.uniform(0, 2, n))


@pytest.mark.parametrize("n", [7, 16, 21])
def test_energy_in_blocks_and_its_derivatives_equal_the_plain_ones(n, rng, metric):
    x, field, weight = batch(rng, n)

    def derivatives(energy):
        loss = lambda metric, field: 3.0 * energy(metric, x, field, weight) ** 2  # noqa: E731
        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(metric, field)

    plain, blocked = derivatives(_of_rows), derivatives(energy_sum)
    assert jax.tree.structure(plain) == jax.tree.structure(blocked)
    for a, b in zip(jax.tree.leaves(blocked), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_vectors_are_formed_for_one_block_at_a_time(rng, metric, equations):
    x, field, weight = batch(rng, 160)

    def products(energy):
        performed = equations(jax.grad(lambda m: energy(m, x, field, weight)), metric)
        return {e.outvars[0].aval.shape for e in performed if e.primitive.name == "dot_general"}

    assert any(160 in shape for shape in products(_of_rows))
    assert not any(160 in shape for shape in products(energy_sum))


def test_metrics_that_do_not_ask_are_left_whole(rng, equations):
    x, field, weight = batch(rng, 4096)
    performed = equations(lambda x: energy_sum(Off(), x, field, weight), x)
    assert "scan" not in {e.primitive.name for e in performed}
    assert RotatedDiag.block_rows == Diag.block_rows == 512


@pytest.mark.parametrize(
    ("n", "wanted", "expected"),
    [(2048, 512, 512), (1000, 512, 500), (512, 512, None), (1021, 512, None), (600, None, None)],
)
def test_blocks_divide_the_batch_or_it_stays_whole(n, wanted, expected):
    assert block_length(n, wanted) == expected
