"""Domains: their points integrate, their distances vanish where they should."""

import numpy as np
import pytest

from piefs.errors import InputError
from piefs.operators import Ball, Box, Ellipsoid, Gaussian, Implicit, PointCloud, Radial, Sphere

pytestmark = pytest.mark.usefixtures("float64")

SECOND_MOMENTS = {
    "box": (Box([0, 0], [1, 2]), [1 / 3, 4 / 3]),
    "disk": (Ball(2, 2.0), [1.0, 1.0]),
    "ellipse": (Ellipsoid([[2, 0], [0, 1]]), [1.0, 0.25]),
    "sphere": (Sphere(3), [1 / 3] * 3),
    "gaussian": (Gaussian(2, 1.5), [2.25, 2.25]),
    "radial": (Radial(2, 2.0), [4.0, 4.0]),
}


@pytest.mark.parametrize("name", SECOND_MOMENTS)
def test_quadrature_has_the_exact_second_moments(name):
    domain, moments = SECOND_MOMENTS[name]
    x, weight = domain.quadrature(2500)
    assert weight.sum() == pytest.approx(1)
    np.testing.assert_allclose(weight @ x**2, moments, rtol=1e-6)
    assert len(x) <= 2600


@pytest.mark.parametrize("name", SECOND_MOMENTS)
def test_drawn_points_have_nearly_those_moments(name):
    domain, moments = SECOND_MOMENTS[name]
    x, weight = domain.sobol(0)(4096)
    np.testing.assert_allclose(weight @ x**2, moments, rtol=0.02)


def test_a_stream_goes_on_where_it_ended():
    draw = Box([0.0], [1.0]).sobol(3)
    first, second = draw(64).x, draw(64).x
    both = Box([0.0], [1.0]).sobol(3)(128).x
    np.testing.assert_array_equal(np.concatenate([first, second]), both)


def test_a_rule_for_too_many_dimensions_is_none():
    assert Box([0] * 10, [1] * 10).quadrature(2**16) is None
    assert Ball(3).quadrature(2**16) is None


@pytest.mark.parametrize(
    ("domain", "edge"),
    [
        (Box([0, -1], [2, 1]), [[0, 0], [2, 0.3], [1, 1], [0.7, -1]]),
        (Ball(2, 2.0), [[2, 0], [0, -2]]),
        (Ellipsoid([[2, 0], [0, 1]]), [[2, 0], [0, 1]]),
    ],
)
def test_distance_is_zero_on_the_boundary_and_positive_inside(domain, edge):
    np.testing.assert_allclose(domain.distance(np.array(edge, float)), 0, atol=1e-12)
    assert np.all(domain.distance(domain.sobol(0)(256).x) > 0)


def test_an_implicit_region_gives_as_many_points_as_asked_all_inside():
    crescent = Implicit(
        lambda x: (1 - (x**2).sum(1)) * ((x - 0.5) ** 2).sum(1) - 0.1, [-1, -1], [1, 1]
    )
    x = crescent.sobol(0)(300).x
    assert x.shape == (300, 2)
    assert np.all(crescent.distance(x) > 0)
    assert crescent.quadrature(400) is None


def test_a_cloud_is_drawn_in_proportion_to_its_weights():
    cloud = PointCloud(np.array([[0.0], [1.0]]), weight=np.array([1.0, 3.0]))
    assert cloud.sobol(0)(4000).x.mean() == pytest.approx(0.75, abs=0.03)
    np.testing.assert_allclose(cloud.quadrature(1).weight, [0.25, 0.75])


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Box([0, 0], [1]), "corners of one length"),
        (lambda: Box([1.0], [0.0]), "must lie below"),
        (lambda: Ball(2, -1.0), "positive radius"),
        (lambda: Sphere(1), "at least 2 coordinates"),
        (lambda: Gaussian(0), "dimension of at least 1"),
        (lambda: Radial(1), "at least 2 dimensions"),
        (lambda: Ellipsoid([[1, 0], [1, 0]]), "invertible"),
        (lambda: Implicit(lambda x: -np.ones(len(x)), [0.0], [1.0]), "positive inside"),
        (lambda: Implicit(lambda x: x, [0.0], [1.0]), "one value a row"),
        (lambda: PointCloud(np.array([1.0, 2.0])), "table of finite numbers"),
        (lambda: PointCloud(np.ones((2, 1)), weight=np.array([1.0])), "for each row"),
        (lambda: Sphere(3).distance(np.ones((1, 3))), "has no boundary"),
    ],
)
def test_nonsense_is_refused_with_a_reason(make, reason):
    with pytest.raises(InputError, match=reason):
        make()
