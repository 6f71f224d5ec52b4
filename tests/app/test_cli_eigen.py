"""`piefs eigen`: a table, a folder, JSON, and one line where something is wrong."""

import json
from functools import partial

import numpy as np
import pytest

import commands
from piefs.operators import PROBLEMS, EigenSolution

piefs = partial(commands.piefs, "eigen")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("eigen")
    done = piefs("interval", "-k", "3", "--steps", "32", "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "said").write_text(done.stdout)
    return folder


def test_a_table_shows_what_was_found_beside_the_truth(folder):
    said = (folder / "said").read_text()
    for word in ("9.8696044", "39.478418", "relative error", "residual", "exact", "run"):
        assert word in said


def test_numbers_functions_and_pictures_are_left_in_the_folder(folder):
    document = json.loads((folder / "run" / "eigen.json").read_text())
    assert {"eigenvalues", "exact", "relative_error", "residual", "seconds"} <= set(document)
    assert max(document["relative_error"]) < 1e-4
    assert document["versions"]["jax"]
    for name in ("modes.png", "training.png"):
        assert (folder / "run" / "figures" / name).stat().st_size > 10_000
    solution = EigenSolution.load(folder / "run" / "model")
    np.testing.assert_allclose(solution.eigenvalues, document["eigenvalues"])
    np.testing.assert_allclose(solution(np.array([[0.0], [1.0]])), 0, atol=1e-9)


def test_json_is_printed_alone(tmp_path):
    done = piefs("interval", "-k", "2", "--steps", "0", "--json", "--out", "run", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert document == json.loads((tmp_path / "run" / "eigen.json").read_text())
    assert document["problem"] == "interval"
    assert not (tmp_path / "run" / "figures" / "training.png").exists()


def test_all_problems_are_listed(tmp_path):
    listed = json.loads(piefs("--list", "--json", cwd=tmp_path).stdout)
    assert list(listed) == list(PROBLEMS)
    assert "Laplacian" in listed["sphere"]
    assert "hydrogen-2d" in piefs("--list", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["sqare"], "no problem 'sqare'; there are interval"),
        (["interval", "--points", "random"], "unknown points 'random'"),
        (["ou-10d", "--points", "quadrature"], "no quadrature is known"),
        ([], "name a problem"),
    ],
)
def test_bad_input_is_refused_with_exit_code_two(arguments, reason, tmp_path):
    done = piefs(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert reason in done.stderr
    assert not any(tmp_path.iterdir())
