"""Known spectra, degenerate ones as subspaces; small budgets, since the Ritz step does most.

The fast tier solves two problems, one by quadrature and one over sampled points; the slow tier all.
"""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.sparse.linalg import eigsh

from operators.reference import polynomial_spectrum
from piefs import EigenProblem, EigenSolver
from piefs.errors import DivergedError, InputError
from piefs.operators import Box, Implicit, PointCloud, clusters, exact, known, principal_angles

SMALL = {"n_steps": 0, "n_maps": 6}


def solve(name, **settings):
    found = known(name)
    chosen = {"n_eigenpairs": found.n_eigenpairs} | found.settings | SMALL | settings
    return EigenSolver(**chosen).solve(found.problem)


@pytest.mark.parametrize(
    ("name", "tolerance", "settings"),
    [
        ("interval", 1e-4, {"n_maps": 8}),
        pytest.param("neumann-square", 1e-3, {}, marks=pytest.mark.slow),
        pytest.param("torus", 1e-3, {"n_points": 1600}, marks=pytest.mark.slow),
        pytest.param("disk", 1e-3, {"n_points": 2500}, marks=pytest.mark.slow),
        pytest.param("anisotropic", 1e-3, {"n_points": 2500}, marks=pytest.mark.slow),
        pytest.param("sphere", 1e-6, {"n_points": 1800}, marks=pytest.mark.slow),
        pytest.param("ou-2d", 1e-3, {}, marks=pytest.mark.slow),
        pytest.param("oscillator-2d", 1e-4, {"n_points": 1600}, marks=pytest.mark.slow),
        pytest.param("hydrogen-2d", 1e-3, {"n_maps": 8, "n_points": 6400}, marks=pytest.mark.slow),
    ],
)
def test_known_spectra_are_found_and_their_eigenspaces_too(name, tolerance, settings):
    solution = solve(name, **settings)
    assert solution.relative_error.max() < tolerance
    assert np.linalg.norm(solution.gram - np.eye(len(solution))) < 1e-5
    assert np.all(solution.error_bars < tolerance * np.maximum(1, np.abs(solution.exact)))
    problem, k = solution.problem, len(solution)
    if problem.modes is not None:
        points = problem.measured(problem.domain.sobol(5)(1024))
        ours, exact = solution(points.x), problem.modes(points.x, k)
        for part in clusters(problem.exact(k + 1), 1e-6):
            if part.stop <= k:
                angle = principal_angles(ours[:, part], exact[:, part], points.weight)[0]
                assert angle < 20 * tolerance**0.5


@pytest.mark.slow
def test_five_dimensions_with_their_multiplicities():
    solution = solve("ou-5d", n_eigenpairs=6, hidden=(24, 24), n_points=6**5)
    assert solution.relative_error.max() < 5e-3
    assert [part.stop - part.start for part in solution.subspaces(0.05)] == [1, 5]


@pytest.mark.slow
def test_ten_dimensions_from_quasi_random_points():
    solution = solve("dirichlet-box-10d", n_eigenpairs=1, n_maps=2, hidden=(24,), n_points=2**14)
    assert solution.points == "sobol"
    assert solution.relative_error[0] < 8e-3  # the distance by itself is off by 13e-3


def test_training_lowers_the_sum_of_ritz_values_towards_the_exact_one():
    settings = {"n_eigenpairs": 4, "n_maps": 4, "batch_size": 512, "n_points": 400}
    problem = known("neumann-square").problem
    solution = EigenSolver(**settings, n_steps=320, hidden=(16, 16)).solve(problem)
    exact = problem.exact(5).sum()
    losses = [row["loss"] for row in solution.history]
    assert losses[0] > 1.1 * exact
    assert losses[-1] == pytest.approx(exact, rel=0.05)
    assert [row["step"] for row in solution.history] == list(range(32, 321, 32))


def test_sampled_points_bring_error_bars_that_cover_the_error():
    solution = solve("sphere", n_eigenpairs=4, points="sobol", n_points=2**13, n_maps=3)
    error = np.abs(solution.eigenvalues - solution.exact)
    assert solution.points == "sobol"
    assert np.all(error[1:] < 4 * solution.error_bars[1:])
    assert solution.relative_error.max() < 1e-2


@pytest.mark.slow
def test_a_region_by_its_distance_has_the_drum_s_spectrum():
    disk = Implicit(lambda x: 1 - (x**2).sum(axis=1), [-1, -1], [1, 1])
    problem = EigenProblem(disk, boundary="dirichlet")
    solution = EigenSolver(3, n_maps=3, n_steps=0, n_points=2**14).solve(problem)
    np.testing.assert_allclose(solution.eigenvalues, exact.DRUM.values(3), rtol=1e-2)


def test_a_sample_has_the_weighted_laplacian_of_its_density():
    """Rows of N(0, 1): Hermite polynomials, integers."""
    rows = np.random.default_rng(0).normal(size=(20_000, 1))
    solution = EigenSolver(3, n_maps=3, hidden=(8, 8), n_steps=0).solve(
        EigenProblem(PointCloud(rows))
    )
    np.testing.assert_allclose(solution.eigenvalues, [0, 1, 2], atol=0.06)
    assert solution.points == "sample"
    assert np.all(np.isnan(solution.residuals))
    slope = np.corrcoef(rows[:, 0], solution(rows)[:, 1])[0, 1]
    assert abs(slope) > 0.999


def test_training_that_diverges_is_an_error_with_the_last_finite_maps():
    pole = lambda x: 1 / jnp.maximum(x[:, 0] - 0.01, 0)  # noqa: E731
    problem = EigenProblem(Box([0.0], [1.0]), potential=pole)
    solver = EigenSolver(2, n_maps=2, hidden=(8,), n_steps=32, batch_size=64, n_points=100)
    with pytest.raises(DivergedError, match="try a smaller learning_rate") as caught:
        solver.solve(problem)
    assert caught.value.state.net.weights[0].shape == (2, 1, 8)


# --- against finite differences ----------------------------------------------------------------


@pytest.mark.slow
def test_double_well_agrees_with_finite_differences():
    n = 4000
    x, h = np.linspace(-5, 5, n + 1, retstep=True)
    x = x[1:-1]
    potential = (x**2 - 4) ** 2 / 4
    laplacian = sparse.diags([np.ones(n - 2), -2 * np.ones(n - 1), np.ones(n - 2)], [-1, 0, 1])
    matrix = (-0.5 * laplacian / h**2 + sparse.diags(potential)).tocsc()
    expected = np.sort(eigsh(matrix, 6, sigma=0, return_eigenvectors=False))
    solution = solve("double-well", n_maps=8)
    np.testing.assert_allclose(solution.eigenvalues, expected, rtol=1e-4)
    np.testing.assert_allclose(solution.exact, expected, rtol=2e-5)


def mesh(problem, n):
    """Corners of n × n cells, the four corners of each cell, and the cells' sides."""
    low, high = problem.domain.bounds()
    h = (high - low) / n
    axes = [low[i] + h[i] * (np.arange(n + 1)) for i in (0, 1)]
    corners = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    index = np.arange((n + 1) ** 2).reshape(n + 1, n + 1)
    cells = [index[:-1, :-1], index[1:, :-1], index[:-1, 1:], index[1:, 1:]]
    cells = np.stack([c.ravel() for c in cells], axis=1)
    return corners, cells, h


def bilinear_elements(problem, n, k):
    """Finite elements on n × n cells with one Gauss rule of 2 × 2 points a cell."""
    corners, cells, h = mesh(problem, n)
    nodes = (np.array([-1, 1]) / 3**0.5 + 1) / 2
    total = len(corners)
    dirichlet, gram = sparse.csr_matrix((total, total)), sparse.csr_matrix((total, total))
    for s in nodes:
        for t in nodes:
            value = np.array([(1 - s) * (1 - t), s * (1 - t), (1 - s) * t, s * t])
            slope = np.array([[-(1 - t), 1 - t, -t, t], [-(1 - s), -s, 1 - s, s]]) / h[:, None]
            x = corners[cells[:, 0]] + h * np.array([s, t])
            p = np.ones(len(x)) if problem.density is None else np.asarray(problem.density(x))
            a = np.asarray(problem.metric(x)) if problem.metric else np.eye(2)[None]
            flux = a @ slope
            rows, columns = np.repeat(cells, 4, axis=1), np.tile(cells, (1, 4))
            stiff = p[:, None, None] * np.einsum("nia,nib->nab", flux, flux)
            mass = p[:, None, None] * np.outer(value, value)
            where = (rows.ravel(), columns.ravel())
            stiff = np.broadcast_to(stiff, (len(x), 4, 4)).ravel()
            dirichlet = dirichlet + sparse.coo_matrix((stiff, where), (total, total))
            gram = gram + sparse.coo_matrix((mass.ravel(), where), (total, total))
    return np.sort(eigsh(dirichlet.tocsc(), k, gram.tocsc(), sigma=-1, return_eigenvectors=False))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["variable-metric", "fokker-planck"])
def test_coefficients_that_vary_agree_with_finite_elements(name):
    problem = known(name).problem
    coarse, fine = (bilinear_elements(problem, n, 6) for n in (30, 60))
    expected = fine + (fine - coarse) / 3  # the error falls as h²
    solution = solve(name, n_points=1600)
    np.testing.assert_allclose(solution.exact, expected, rtol=2e-4, atol=1e-6)
    np.testing.assert_allclose(solution.eigenvalues, expected, rtol=3e-3, atol=1e-6)


def test_polynomials_reproduce_closed_forms():
    problem = known("interval").problem
    np.testing.assert_allclose(polynomial_spectrum(problem, 6), problem.exact(6), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["double-well", "fokker-planck", "variable-metric"])
def test_stored_spectra_are_those_of_polynomials(name):
    problem = known(name).problem
    found = polynomial_spectrum(problem, 12)
    np.testing.assert_allclose(problem.exact(12), found, rtol=1e-7, atol=1e-9)


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"n_eigenpairs": 0}, "n_eigenpairs must be at least 1"),
        ({"activation": "relu"}, "choose one of tanh"),
        ({"points": "random"}, "choose one of auto, quadrature, sobol"),
        ({"hidden": ()}, "at least one layer"),
        ({"learning_rate": -1.0}, "between 0 and 1"),
        ({"n_maps": 0}, "n_maps must be at least 1"),
    ],
)
def test_bad_settings_are_refused(settings, reason):
    with pytest.raises(InputError, match=reason):
        EigenSolver(**settings)


def test_what_cannot_be_solved_is_refused_before_training():
    string = EigenProblem(Box([0.0], [1.0]), boundary="dirichlet")
    with pytest.raises(InputError, match="take more maps"):
        EigenSolver(50, n_maps=2, hidden=(8,)).solve(string)
    with pytest.raises(InputError, match="no quadrature is known"):
        EigenSolver(points="quadrature").solve(known("ou-10d").problem)
    with pytest.raises(InputError, match="needs an EigenProblem"):
        EigenSolver().solve("interval")
