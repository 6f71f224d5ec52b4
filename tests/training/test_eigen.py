from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg as la
from scipy.optimize import minimize

from piefs.core.kernel import Kernel
from piefs.core.ritz import leading_of_diagonal_and_rank
from piefs.training import eigen, features
from piefs.training.batches import Samples
from piefs.training.config import Metric, Settings
from piefs.training.eigen import leading, solve
from piefs.training.features import (
    Blocks,
    Features,
    accumulated,
    evenly_spaced,
    fits,
    least_left_out_error,
)
from piefs.training.labels import Labels
from piefs.training.solvers import NO_LABELS, Task

CLASSES, NUMBER = Task("classification", 3), Task("regression", 1)
SETTINGS = replace(Settings.of(solver="eigen", n_components=5), metric=Metric("diag"))


def table(n=120, d=4, seed=0, task=CLASSES):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    score = x[:, 0] ** 2 + x[:, 1] + 0.3 * rng.normal(size=n)
    if task is NUMBER:
        return Samples(x, ((score - score.mean()) / score.std())[:, None])
    return Samples(x, np.digitize(score, [0.2, 1.2]))


@pytest.fixture(scope="module")
def solved():
    return solve(table(), SETTINGS, CLASSES)


def parts(samples, task, kernel=None, landmarks=None):
    """Labels, blocks and sums over all rows, of a given kernel and landmarks or the usual ones."""
    labels, draw = Labels.of(samples, task), np.random.default_rng(0)
    kernel = eigen._kernel(samples, labels, SETTINGS, draw) if kernel is None else kernel
    landmarks = eigen._landmarks(samples, draw) if landmarks is None else landmarks
    blocks = Blocks(samples, Features.of(kernel, landmarks))
    return labels, blocks, accumulated(blocks, labels)


def test_coordinates_are_orthonormal_on_the_training_rows(solved):
    np.testing.assert_allclose(solved.gram, np.eye(5), atol=1e-10)


def test_maps_give_the_coordinates_of_the_training_rows(solved):
    found = solved.model.coordinates(table().x)
    np.testing.assert_allclose(found, solved.coordinates, atol=1e-9)


def test_fewer_coordinates_are_a_prefix_of_more(solved):
    fewer = solve(table(), replace(SETTINGS, n_components=3), CLASSES)
    np.testing.assert_allclose(fewer.coordinates, solved.coordinates[:, :3], atol=1e-8)


def test_the_first_coordinates_are_the_labels_then_come_smooth_ones(solved):
    y = np.eye(3)[table().target]
    explained = np.sum((y - y.mean(axis=0)).T @ solved.coordinates / 120, axis=0) ** 2
    explained = np.sum(((y - y.mean(axis=0)).T @ solved.coordinates / 120) ** 2, axis=0)
    assert explained[:2].sum() > 20 * explained[2:].sum()
    assert (np.diff(solved.energies[2:]) > 0).all()


def test_they_lead_the_generalised_eigenproblem():
    samples, n, alpha = table(), 5, 3.0
    labels, blocks, sums = parts(samples, CLASSES)
    w, _ = leading(sums, alpha, n, labels.scale)
    psi = blocks.features(samples.x)
    psi = psi - psi.mean(axis=0)
    g, t = psi.T @ psi / 120, psi.T @ (labels.y * labels.scale) / 120
    a = (1 - eigen.TAU) * t @ t.T + eigen.TAU * g
    b = g + alpha / 120 * np.eye(len(g))
    rho, _ = la.eigh(a, b, subset_by_index=(len(g) - n, len(g) - 1))
    wide = sums.u @ w
    found = la.eigh(wide.T @ a @ wide, wide.T @ b @ wide, eigvals_only=True)
    np.testing.assert_allclose(found, rho, rtol=1e-6)


def test_descent_on_the_same_features_finds_no_better_coordinates():
    """From several beginnings, and the best it finds is what the eigenproblem gives at once."""
    samples = table(80)
    labels, _, sums = parts(samples, CLASSES, landmarks=samples.x[:25])
    alpha, k = 1.0, 3
    g, t = sums.s / sums.mass, sums.t * labels.scale / sums.mass
    root = np.sqrt((sums.s + alpha) / sums.mass)[:, None]
    a = ((1 - eigen.TAU) * t @ t.T + eigen.TAU * np.diag(g)) / root / root.T

    def negative(flat):
        """−tr[(VᵀV)⁻¹VᵀAV] of V = B^½W, and its slope."""
        v = flat.reshape(-1, k)
        inner = np.linalg.inv(v.T @ v)
        spanned = v @ inner
        slope = 2 * (a @ spanned - spanned @ (v.T @ a @ spanned))
        return -np.trace(inner @ v.T @ a @ v), -slope.ravel()

    draw, options = np.random.default_rng(0), {"maxiter": 5000, "gtol": 1e-9}
    begins = [draw.normal(size=len(g) * k) for _ in range(3)]
    found = [minimize(negative, one, jac=True, options=options).fun for one in begins]
    w, _ = leading(sums, alpha, k, labels.scale)
    best, _ = negative((root * w).ravel())
    np.testing.assert_allclose(min(found), best, rtol=1e-6)
    assert min(found) >= best - 1e-9


@pytest.mark.parametrize(("m", "rank"), [(400, 3), (400, 0), (60, 5), (20, 1)])
def test_leading_pairs_of_a_diagonal_and_few_vectors_are_those_of_the_whole_matrix(m, rank):
    rng = np.random.default_rng(m)
    diagonal = 1e-3 * np.sort(rng.uniform(size=m))[::-1]
    u = rng.normal(size=(m, rank)) / np.sqrt(m)
    rho, v = leading_of_diagonal_and_rank(diagonal, u, 8)
    whole = np.diag(diagonal) + u @ u.T
    np.testing.assert_allclose(rho, la.eigvalsh(whole)[::-1][:8], rtol=1e-9)
    np.testing.assert_allclose(whole @ v, v * rho, atol=1e-6)


def refitted(psi, labels, weights, alpha, i):
    """The ridge fit of row i without it, solved from the rows that are left."""
    rest = np.delete(np.arange(len(psi)), i)
    w = weights[rest]
    # The features' centre, as they were made with it, is part of the fit.
    one = np.hstack([psi, np.ones((len(psi), 1))])
    h = (one[rest] * w[:, None]).T @ one[rest] + alpha * np.diag([*[1.0] * psi.shape[1], 0.0])
    t = (one[rest] * w[:, None]).T @ (labels.boost * labels.y[rest])
    return one[i] @ la.solve(h, t)


@pytest.mark.parametrize("n_groups", [None, 7, 2])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_fits_without_a_row_or_its_group_are_those_of_the_other_rows(is_weighted, n_groups):
    samples, rng = table(60), np.random.default_rng(1)
    weights = rng.uniform(0.2, 3, 60) if is_weighted else np.ones(60)
    groups = None if n_groups is None else rng.integers(n_groups, size=60)
    samples = replace(samples, weight=weights, label_weight=weights, groups=groups)
    labels, blocks, sums = parts(samples, CLASSES, landmarks=samples.x[:20])
    psi, ridges = blocks.features(samples.x) - sums.mean, np.array([0.5, 5])
    blocks.rotate(sums)
    found = np.empty((2, 60, 3))
    for numbers, _, left_out in fits(blocks, labels, sums, ridges, np.arange(60)):
        found[:, numbers] = left_out
    groups = np.arange(60) if groups is None else groups
    for ridge, one in zip(ridges, found, strict=True):
        for group in np.unique(groups):
            own = np.flatnonzero(groups == group)
            expected = refitted(psi, labels, weights, ridge, own)
            np.testing.assert_allclose(one[own], expected, atol=1e-6)


def test_left_out_coordinates_of_groups_know_none_of_their_rows():
    """Five copies of each row, a little apart: leaving out one row alone still sees its label."""
    rng, samples = np.random.default_rng(3), table(40)
    x = np.repeat(samples.x, 5, axis=0) + 0.01 * rng.normal(size=(200, 4))
    target = np.repeat(rng.permutation(samples.target), 5)
    alone = solve(Samples(x, target), SETTINGS, CLASSES)
    groups = np.repeat(np.arange(40), 5)
    together = solve(Samples(x, target, groups=groups), SETTINGS, CLASSES)
    assert explained_by(alone.left_out, target) > 0.4
    assert explained_by(together.left_out, target) < 0.15


def explained_by(phi, target):
    """The share of the classes' variance that two coordinates explain."""
    y = np.eye(3)[target] - np.eye(3)[target].mean(axis=0)
    phi = phi[:, :2] - phi[:, :2].mean(axis=0)
    return 1 - np.sum((y - phi @ np.linalg.lstsq(phi, y, rcond=None)[0]) ** 2) / np.sum(y**2)


def test_blocks_of_groups_have_whole_groups():
    groups = np.array([2, 0, 2, 1, 1, 1, 1, 3])
    found = [groups[one].tolist() for one in features._whole_groups(np.arange(8), groups, 3)]
    assert found == [[0], [1, 1, 1, 1], [2, 2, 3]]


def test_some_groups_are_chosen_whole():
    labels = Labels.of(replace(table(100), groups=np.arange(100) // 7), CLASSES)
    chosen = evenly_spaced(labels, 30)
    assert 20 <= len(chosen) <= 42
    assert all(
        np.sum(labels.groups == g) == np.sum(labels.groups[chosen] == g)
        for g in np.unique(labels.groups[chosen])
    )


@pytest.mark.parametrize("task", [CLASSES, NUMBER])
def test_left_out_coordinates_say_no_more_of_their_own_row_than_of_new_ones(task):
    """Labels without any structure: plain coordinates find some, left-out ones do not."""
    samples, rng = table(200, task=task), np.random.default_rng(3)
    shuffled = replace(samples, target=samples.target[rng.permutation(200)])
    found = solve(shuffled, SETTINGS, task)
    first = shuffled.target[:, 0] if task is NUMBER else (shuffled.target == 2).astype(float)
    plain = np.corrcoef(found.coordinates[:, 0], first)[0, 1]
    honest = np.corrcoef(found.left_out[:, 0], first)[0, 1]
    assert abs(plain) > 0.15
    assert abs(honest) < abs(plain) - 0.1


def test_left_out_coordinates_are_those_of_fits_without_the_row():
    """λ, α and landmarks held. What is left: the mixing of the label part is held, too."""
    samples = table(80, task=NUMBER)
    whole = solve(samples, SETTINGS, NUMBER)
    labels, blocks, sums = parts(samples, NUMBER)
    blocks.rotate(sums)
    alpha = least_left_out_error(blocks, labels, sums)
    kernel, landmarks = blocks.features.kernel, blocks.features.landmarks
    errors, plain = [], []
    for i in range(80):
        rest = samples.take(np.delete(np.arange(80), i))
        labels, others, sums = parts(rest, NUMBER, kernel, landmarks)
        w, _ = leading(sums, alpha, 2, labels.scale)
        without = ((others.features(samples.x[[i]]) - sums.mean) @ sums.u @ w)[0, 0]
        own, honest = whole.coordinates[i, 0], whole.left_out[i, 0]
        without *= np.sign(without * honest)  # signs are a matter of convention
        errors.append(without - honest)
        plain.append(without - own)
    assert np.sqrt(np.mean(np.square(errors))) < 0.05
    assert np.sqrt(np.mean(np.square(plain))) > 0.1


@pytest.mark.parametrize("kept", [2**25, 5000])
def test_blocks_of_rows_give_what_all_rows_at_once_give(kept, monkeypatch, solved):
    monkeypatch.setattr(features, "BLOCK_ROWS", 32)
    monkeypatch.setattr(features, "KEPT_ELEMENTS", kept)
    found = solve(table(), SETTINGS, CLASSES)
    np.testing.assert_allclose(found.coordinates, solved.coordinates, atol=1e-8)
    np.testing.assert_allclose(found.left_out, solved.left_out, atol=1e-8)


def test_rows_twice_are_rows_of_weight_two():
    samples = table(60)
    twice = samples.take(np.concatenate([np.arange(60), np.arange(20)]))
    weights = np.where(np.arange(60) < 20, 2.0, 1.0)
    weighted = replace(samples, weight=weights, label_weight=weights)
    both, kernel = [], Kernel(np.zeros(4))
    for rows in (twice, weighted):
        labels, blocks, sums = parts(rows, CLASSES, kernel, samples.x[:40])
        w, _ = leading(sums, 1.0, 3, labels.scale)
        both.append((blocks.features(samples.x) - sums.mean) @ sums.u @ w)
    np.testing.assert_allclose(both[0], both[1], atol=1e-8)


def test_rows_without_label_count_for_orthonormality_alone():
    samples = table(150)
    label = np.where(np.arange(150) < 60, 1.0, 0.0)
    found = solve(replace(samples, weight=np.ones(150), label_weight=label), SETTINGS, CLASSES)
    np.testing.assert_allclose(found.gram, np.eye(5), atol=1e-9)
    logits = found.model.outputs(samples.x[60:])
    assert np.mean(logits.argmax(axis=1) == samples.target[60:]) > 0.6


def test_without_labels_the_coordinates_of_largest_variance_come_first():
    found = solve(Samples(table().x), SETTINGS, NO_LABELS)
    assert (np.diff(found.energies) > 0).all()
    assert found.left_out is None
    assert found.model.readout.weights.shape == (0, 5)


def test_equal_rows_and_constant_columns_do_no_harm():
    samples = table(100)
    x = np.round(samples.x[:, :2])
    x = np.hstack([x, np.ones((100, 1))])
    found = solve(replace(samples, x=x), replace(SETTINGS, n_components=60), CLASSES)
    assert len(found.gram) < 60  # there are no more directions
    np.testing.assert_allclose(found.gram, np.eye(len(found.gram)), atol=1e-8)
    assert np.abs(found.coordinates).max() < 100


def test_far_numbers_do_not_decide_alone():
    samples = table(task=NUMBER)
    target = samples.target.copy()
    target[7] = 1000
    spoiled = solve(replace(samples, target=target), SETTINGS, NUMBER)
    y = np.delete(samples.target[:, 0], 7)
    fitted = np.delete(spoiled.model.outputs(samples.x)[:, 0], 7)
    assert np.corrcoef(fitted, y)[0, 1] > 0.6


def test_equal_rates_if_the_metric_is_off():
    found = solve(table(), replace(SETTINGS, metric=Metric("off")), CLASSES)
    assert np.ptp(found.log_scale_ranges) == 0
