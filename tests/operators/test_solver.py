"""Known spectra, degenerate ones as subspaces; small budgets, since the Ritz step does most."""

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.sparse.linalg import eigsh

from piefs import EigenProblem, EigenSolver
from piefs.errors import InputError, ModelFileError
from piefs.operators import (
    Box,
    EigenSolution,
    Implicit,
    PointCloud,
    clusters,
    known,
    principal_angles,
)
from piefs.operators.exact import drum_values
from piefs.operators.reference import polynomial_spectrum

SMALL = {"n_steps": 0, "n_maps": 6}


def solve(name, **settings):
    found = known(name)
    chosen = {"n_eigenpairs": found.n_eigenpairs} | found.settings | SMALL | settings
    return EigenSolver(**chosen).solve(found.problem)


@pytest.mark.parametrize(
    ("name", "tolerance", "settings"),
    [
        ("interval", 1e-4, {"n_maps": 8}),
        ("neumann-square", 1e-3, {}),
        ("torus", 1e-3, {"n_points": 1600}),
        ("disk", 1e-3, {"n_points": 2500}),
        ("anisotropic", 1e-3, {"n_points": 2500}),
        ("sphere", 1e-6, {"n_points": 1800}),
        ("ou-2d", 1e-3, {}),
        ("oscillator-2d", 1e-4, {"n_points": 1600}),
        ("hydrogen-2d", 1e-3, {"n_maps": 8, "n_points": 6400}),
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


def test_five_dimensions_with_their_multiplicities():
    solution = solve("ou-5d", n_eigenpairs=6, hidden=(24, 24), n_points=6**5)
    assert solution.relative_error.max() < 5e-3
    assert [part.stop - part.start for part in solution.subspaces(0.05)] == [1, 5]


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


def test_sequential_training_deflates_past_thirty_modes():
    problem = known("interval").problem
    solution = EigenSolver(
        32, training="sequential", n_steps=32, batch_size=64, hidden=(8, 8), n_points=200
    ).solve(problem)
    assert len(solution.history) == 33
    losses = np.array([row["loss"] for row in solution.history])
    lowest = np.cumsum(problem.exact(33))
    assert np.all(losses > 0.9 * lowest)  # a lost deflation falls back to the first mode
    assert solution.relative_error.max() < 0.02


def test_the_constant_is_there_or_deflated():
    whole = solve("neumann-square", n_eigenpairs=4)
    without = solve("neumann-square", n_eigenpairs=3, deflate_constant=True)
    assert abs(whole.eigenvalues[0]) < 1e-6
    np.testing.assert_allclose(without.eigenvalues, whole.eigenvalues[1:], rtol=1e-6)
    with pytest.raises(InputError, match="the constant is no eigenfunction"):
        solve("interval", deflate_constant=True)


@pytest.mark.parametrize("points", ["sobol", "random"])
def test_sampled_points_bring_error_bars_that_cover_the_error(points):
    solution = solve("sphere", n_eigenpairs=4, points=points, n_points=2**13, n_maps=3)
    error = np.abs(solution.eigenvalues - solution.exact)
    assert solution.points == points
    assert np.all(error[1:] < 4 * solution.error_bars[1:])
    assert solution.relative_error.max() < {"sobol": 1e-2, "random": 5e-2}[points]


def test_a_region_by_its_distance_has_the_drum_s_spectrum():
    disk = Implicit(lambda x: 1 - (x**2).sum(axis=1), [-1, -1], [1, 1])
    problem = EigenProblem(disk, boundary="dirichlet")
    solution = EigenSolver(3, n_maps=3, n_steps=0, n_points=2**14).solve(problem)
    np.testing.assert_allclose(solution.eigenvalues, drum_values(3), rtol=1e-2)


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


# --- against finite differences ----------------------------------------------------------------


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


@pytest.mark.parametrize("name", ["variable-metric", "fokker-planck"])
def test_coefficients_that_vary_agree_with_finite_elements(name):
    problem = known(name).problem
    coarse, fine = (bilinear_elements(problem, n, 6) for n in (30, 60))
    expected = fine + (fine - coarse) / 3  # the error falls as h²
    solution = solve(name, n_points=1600)
    np.testing.assert_allclose(solution.exact, expected, rtol=2e-4, atol=1e-6)
    np.testing.assert_allclose(solution.eigenvalues, expected, rtol=3e-3, atol=1e-6)


def test_reference_spectra_are_exact_where_the_answer_is_known():
    for name in ("interval", "neumann-square"):
        problem = known(name).problem
        found = polynomial_spectrum(problem, 6)
        np.testing.assert_allclose(found, problem.exact(6), rtol=1e-9, atol=1e-9)
    with pytest.raises(InputError, match="not periodic"):
        polynomial_spectrum(known("torus").problem, 3)


# --- the solution as an object -----------------------------------------------------------------


@pytest.fixture(scope="module")
def string():
    return EigenProblem(Box([0.0], [1.0]), boundary="dirichlet")


@pytest.fixture(scope="module")
def solution(string):
    return EigenSolver(2, n_maps=2, hidden=(8, 8), n_steps=0, n_points=100).solve(string)


def test_gradients_are_those_of_the_functions(solution):
    x, h = np.linspace(0.1, 0.9, 5)[:, None], 1e-5
    difference = (solution(x + h) - solution(x - h)) / (2 * h)
    np.testing.assert_allclose(solution.gradient(x)[:, :, 0], difference, rtol=1e-5, atol=1e-6)
    assert solution(np.zeros((0, 1))).shape == (0, 2)
    assert solution.gradient(np.zeros((0, 1))).shape == (0, 2, 1)
    with pytest.raises(InputError, match=r"shape \(n, 1\)"):
        solution(np.zeros((3, 2)))


def test_residuals_measure_the_distance_from_an_eigenfunction(solution):
    x = np.linspace(0.05, 0.95, 200)[:, None]
    h = 1e-4
    second = (solution(x + h) - 2 * solution(x) + solution(x - h)) / h**2
    miss = -second - solution.eigenvalues * solution(x)
    by_hand = np.sqrt((miss**2).mean(axis=0) / (solution(x) ** 2).mean(axis=0))
    np.testing.assert_allclose(solution.residuals, by_hand, rtol=1.0)


def test_a_saved_solution_is_the_same_function(solution, string, tmp_path):
    solution.save(tmp_path / "model")
    assert {path.name for path in (tmp_path / "model").iterdir()} == {
        "model.json",
        "weights.safetensors",
    }
    loaded = EigenSolution.load(tmp_path / "model", string)
    x = np.linspace(0, 1, 7)[:, None]
    np.testing.assert_array_equal(loaded(x), solution(x))
    np.testing.assert_array_equal(loaded.eigenvalues, solution.eigenvalues)
    assert loaded.seconds == solution.seconds
    with pytest.raises(InputError, match="no problem ''"):
        EigenSolution.load(tmp_path / "model")
    with pytest.raises(ModelFileError, match="not a model folder"):
        EigenSolution.load(tmp_path)


def test_a_seed_repeats_a_solution_bit_by_bit(string):
    make = lambda seed: EigenSolver(  # noqa: E731
        2, n_maps=2, hidden=(8,), n_steps=32, batch_size=64, n_points=100, random_state=seed
    ).solve(string)
    np.testing.assert_array_equal(make(1).eigenvalues, make(1).eigenvalues)
    assert np.any(make(1).coefficients != make(2).coefficients)


def test_a_callback_hears_of_training_and_the_ritz_step(string):
    heard = []
    EigenSolver(
        2, n_maps=2, hidden=(8,), n_steps=32, batch_size=64, n_points=100, random_state=1
    ).solve(string, heard.append)
    assert heard[0].stage == "training"
    assert heard[1].loss > 0
    assert heard[-1].done == heard[-1].total


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"n_eigenpairs": 0}, "n_eigenpairs must be at least 1"),
        ({"activation": "relu"}, "choose one of tanh"),
        ({"training": "greedy"}, "choose one of joint, sequential"),
        ({"points": "grid"}, "choose one of auto, quadrature"),
        ({"hidden": ()}, "at least one layer"),
        ({"learning_rate": -1.0}, "between 0 and 1"),
        ({"n_maps": 0}, "n_maps must be at least 1"),
    ],
)
def test_bad_settings_are_refused(settings, reason):
    with pytest.raises(InputError, match=reason):
        EigenSolver(**settings)


def test_what_cannot_be_solved_is_refused_before_training(string):
    with pytest.raises(InputError, match="take more maps"):
        EigenSolver(50, n_maps=2, hidden=(8,)).solve(string)
    with pytest.raises(InputError, match="no quadrature is known"):
        EigenSolver(points="quadrature").solve(known("ou-10d").problem)
    with pytest.raises(InputError, match="needs an EigenProblem"):
        EigenSolver().solve("interval")
