"""A solution: functions and gradients to call, residuals, files, and repetition by its seed."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from piefs import EigenProblem, EigenSolver
from piefs.errors import InputError, ModelFileError
from piefs.operators import Box, EigenSolution, known


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
    x = ((np.arange(2000) + 0.5) / 2000)[:, None]
    h = 1e-4
    second = (solution(x + h) - 2 * solution(x) + solution(x - h)) / h**2
    miss = -second - solution.eigenvalues * solution(x)
    by_hand = np.sqrt((miss**2).mean(axis=0) / (solution(x) ** 2).mean(axis=0))
    np.testing.assert_allclose(solution.residuals, by_hand, rtol=0.01)


def test_a_saved_solution_is_the_same_function(solution, string, tmp_path):
    solution.save(tmp_path / "model")
    assert {path.name for path in (tmp_path / "model").iterdir()} == {
        "model.json",
        "weights.safetensors",
    }
    loaded = EigenSolution.load(tmp_path / "model", string)
    assert json.loads((tmp_path / "model/model.json").read_text())["format_version"] == 3
    x = np.linspace(0, 1, 7)[:, None]
    np.testing.assert_array_equal(loaded(x), solution(x))
    np.testing.assert_array_equal(loaded.eigenvalues, solution.eigenvalues)
    assert loaded.seconds == solution.seconds
    with pytest.raises(InputError, match="no problem ''"):
        EigenSolution.load(tmp_path / "model")
    with pytest.raises(ModelFileError, match="not a model folder"):
        EigenSolution.load(tmp_path)


def test_a_solution_of_format_2_is_the_same_function(tmp_path):
    folder = Path(__file__).parent / "format2/interval"
    solution = EigenSolution.load(folder / "model")
    wanted = json.loads((folder / "eigen.json").read_text())
    np.testing.assert_array_equal(solution.eigenvalues, wanted["eigenvalues"])
    x = np.linspace(0, 1, 101)[:, None]
    modes = solution.problem.modes(x, 4)
    share = np.sum(solution(x) * modes, axis=0) ** 2 / np.sum(modes**2, axis=0)
    np.testing.assert_allclose(share, np.sum(solution(x) ** 2, axis=0), rtol=1e-6)
    solution.save(tmp_path)
    again = EigenSolution.load(tmp_path)
    np.testing.assert_array_equal(again(x), solution(x))
    assert again.settings["training"] == "joint"  # a keyword of its time


def test_a_document_that_does_not_fit_its_weights_is_refused(solution, string, tmp_path):
    solution.save(tmp_path)
    document = json.loads((tmp_path / "model.json").read_text())
    document["structure"]["net"]["weights"].pop()
    (tmp_path / "model.json").write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="do not fit"):
        EigenSolution.load(tmp_path, string)


def test_exact_values_are_given_only_if_all_of_them_are_known():
    problem = known("fokker-planck").problem
    assert len(problem.exact(20)) == 12


def test_zero_eigenvalues_are_judged_by_absolute_error(solution, string):
    problem = replace(string, exact=lambda k: np.array([0.0, -30.0]))
    judged = replace(solution, problem=problem)
    expected = [solution.eigenvalues[0], abs(solution.eigenvalues[1] + 30) / 30]
    np.testing.assert_allclose(judged.relative_error, expected)


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
