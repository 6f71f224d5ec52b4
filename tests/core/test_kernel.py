import numpy as np
import pytest
from scipy.stats import multivariate_normal

from piefs.core import kernel
from piefs.core.kernel import Evidence, Kernel, KernelMaps, learned, typical_distance


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def toy(rng, n=40, d=3, outputs=2):
    x = rng.normal(size=(n, d))
    y = np.stack([np.sin(2 * x[:, 0]), x[:, 1]][:outputs], axis=1)
    return x, y - y.mean(axis=0)


def test_the_kernel_is_what_its_formula_says(rng):
    x, z = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    k, lam = Kernel(np.log([0.5, 1.0, 2.0]), additive=0.3, linear=0.7), np.array([0.5, 1.0, 2.0])
    for i, one in enumerate(x):
        for j, other in enumerate(z):
            apart = np.sum(lam * abs(one - other))
            reach = np.sum(lam * (abs(one) + abs(other)))
            expected = np.exp(-apart) + 0.15 * (reach - apart) + 0.7 * one @ other / 3
            assert k(x, z)[i, j] == pytest.approx(expected)


def test_the_kernel_is_positive_definite(rng):
    x = rng.normal(size=(60, 2))
    assert np.linalg.eigvalsh(Kernel(np.zeros(2), 1.0, 0.0)(x, x))[0] > 0


def test_blocks_and_threads_make_no_difference(maps, rng, monkeypatch):
    x, z, k = rng.normal(size=(70, 3)), rng.normal(size=(9, 3)), Kernel(np.zeros(3), 0.3, 0.2)
    whole, coordinates = k(x, z), maps.coordinates(x)
    monkeypatch.setattr(kernel, "CACHED_ELEMENTS", 64)
    np.testing.assert_array_equal(k(x, z), whole)
    np.testing.assert_allclose(maps.coordinates(x), coordinates, rtol=1e-12)


def test_the_evidence_is_that_of_a_gaussian_process(rng):
    """Up to its constant, with the scale that makes it largest."""
    x, y = toy(rng, outputs=1)
    n, weight = len(x), rng.uniform(0.5, 2, 40)
    weight /= weight.mean()
    p = np.array([0.1, -0.3, 0.2, -2.0, -0.5, -1.0])
    s = Kernel(p[:3], np.exp(p[4]), np.exp(p[5]))(x, x)
    s += np.diag(np.exp(p[3]) / weight + kernel.JITTER)
    scale = float(y[:, 0] @ np.linalg.solve(s, y[:, 0])) / n
    log_density = multivariate_normal(np.zeros(n), scale * s).logpdf(y[:, 0])
    found = Evidence(x, y, weight, 1)(p)[0] - kernel.PRIOR * np.var(p[:3])
    assert found == pytest.approx(-2 * log_density / n - 1 - np.log(2 * np.pi), abs=1e-5)


def test_the_gradient_of_the_evidence_is_that_of_finite_differences(rng):
    x, y = toy(rng)
    evidence = Evidence(x, y, rng.uniform(0.5, 2, len(x)), 2)
    p, step = np.array([0.1, -0.3, 0.2, -1.0, -0.5, -1.0]), 1e-2
    unit = step * np.eye(len(p))
    # Distances are in single precision, so the step is large and the formula of fourth order.
    slopes = [
        (
            8 * (evidence(p + e)[0] - evidence(p - e)[0])
            - evidence(p + 2 * e)[0]
            + evidence(p - 2 * e)[0]
        )
        / (12 * step)
        for e in unit
    ]
    np.testing.assert_allclose(evidence(p)[1], slopes, atol=2e-5)


def test_the_evidence_tells_inputs_that_matter_from_noise(rng):
    x = rng.normal(size=(150, 4))
    y = np.sin(3 * x[:, [0]])
    found = learned(x, y - y.mean(), np.ones(150), 1)
    assert found.lam[0] > 5 * found.lam[1:].max()
    equal = learned(x, y - y.mean(), np.ones(150), 1, equal=True)
    assert np.ptp(equal.log_lam) == 0


def test_equal_rows_have_no_typical_distance_of_zero():
    assert typical_distance(np.ones((5, 2))) == 1.0


@pytest.fixture
def maps(rng):
    shapes = {"landmarks": (8, 3), "log_lam": (3,), "weights": (8, 2)}
    parts = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    more = {"slopes": (3, 2), "offset": (2,)}
    parts |= {name: rng.normal(size=shape) for name, shape in more.items()}
    return KernelMaps(**parts, additive=np.array(0.4))


def test_gradients_of_kernel_maps_are_those_of_finite_differences(maps, rng):
    z, step = rng.normal(size=(6, 3)), 1e-6
    values, gradients = maps.coordinates_and_gradients(z)
    np.testing.assert_allclose(values, maps.coordinates(z))
    for i, e in enumerate(step * np.eye(3)):
        slopes = (maps.coordinates(z + e) - maps.coordinates(z - e)) / (2 * step)
        np.testing.assert_allclose(gradients[:, :, i], slopes, atol=1e-6)


def test_kernel_maps_are_the_same_function_in_jax(maps, rng, float64):
    import jax
    import jax.numpy as jnp

    z = rng.normal(size=(6, 3))
    values, gradients = maps.coordinates_and_gradients(z)
    np.testing.assert_allclose(jax.jit(maps.coordinates)(jnp.asarray(z)), values, atol=1e-12)
    slopes = jax.vmap(jax.jacobian(lambda one: maps.coordinates(one[None])[0]))(jnp.asarray(z))
    np.testing.assert_allclose(slopes, gradients, atol=1e-12)
