"""Figures show what they say they show."""

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt

from piefs import plot

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


HISTORY = [
    {
        "step": 10 * i,
        "map": 1 + i // 3,
        "gram_residual": 0.1 * i,
        "w_orth": 1.0,
        "w_class": 0.5,
        "w_mde": 0.1 * i,
        "validation_accuracy": 0.5 + 0.1 * i,
        "validation_r2": 0.2 * i - 3 * (i == 0),
    }
    for i in range(5)
]


def test_heatmap_colours_the_function_and_draws_its_zero_level():
    x = np.array([[-1.0, -1.0], [1.0, 1.0]])
    ax = plot.plane_heatmap(lambda rows: rows[:, 0], x, np.array([0, 1]), contour=True, title="f")
    values = ax.images[0].get_array()
    assert np.all(np.diff(values, axis=1) > 0)
    np.testing.assert_allclose(np.diff(values, axis=0), 0, atol=1e-6)
    boundary = np.concatenate([path.vertices for path in ax.collections[0].get_paths()])
    np.testing.assert_allclose(boundary[:, 0], 0, atol=0.01)
    assert ax.get_title() == "f"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("$x_1$", "$x_2$")


def test_plane_maps_has_a_titled_panel_for_each_map():
    x = np.random.default_rng(0).normal(size=(20, 2))
    axes = plot.plane_maps(lambda rows: rows, x, maps=(0, 1))
    assert [ax.get_title() for ax in axes] == ["$\\phi_{1}$", "$\\phi_{2}$"]


@pytest.mark.parametrize("residual", [False, True])
def test_gram_matrix_names_the_distance_from_the_identity(residual):
    c = np.diag([1.0, 1.3]) + 0.2
    ax = plot.gram_matrix(c, residual=residual)
    assert f"{np.linalg.norm(c - np.eye(2)):.3f}" in ax.get_title()
    shown = c - np.eye(2) if residual else c
    np.testing.assert_allclose(ax.images[0].get_array(), shown)


def test_curves_plot_the_history_and_mark_frozen_maps():
    ax = plot.accuracy_history(HISTORY)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [50, 60, 70, 80, 90])
    assert [line.get_xdata()[0] for line in ax.lines[1:]] == [20]
    ax = plot.gram_history(HISTORY)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0, 0.1, 0.2, 0.3, 0.4])
    assert "frozen" in ax.get_xlabel()


def test_maps_that_were_trained_at_once_are_not_marked():
    ax = plot.gram_history([row | {"map": 2} for row in HISTORY])
    assert len(ax.lines) == 1
    assert ax.get_xlabel() == "training step"


def test_an_r2_far_below_zero_does_not_flatten_the_curve():
    ax = plot.r2_history(HISTORY)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [-3, 0.2, 0.4, 0.6, 0.8])
    assert ax.get_ylim()[0] == -0.25
    assert plot.r2_history(HISTORY[1:]).get_ylim()[0] > 0


def test_weight_curves_are_told_apart_by_a_legend():
    ax = plot.weight_history(HISTORY)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["orthogonality", "target", "smoothness"]
    np.testing.assert_allclose(ax.lines[2].get_ydata(), [0, 0.1, 0.2, 0.3, 0.4])


def test_energies_have_a_bar_for_each_map():
    ax = plot.energies([0.1, 2.0, 3.0])
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], [0.1, 2.0, 3.0])


def test_scatter_has_a_legend_with_the_class_names():
    phi, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 3
    ax = plot.coordinate_scatter(phi, y, i=2, j=3, class_names=("a", "b", "c"))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "c"]
    np.testing.assert_allclose(ax.collections[0].get_offsets(), phi[:, 2:])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("$\\phi_{3}$", "$\\phi_{4}$")
    assert plot.coordinate_scatter(phi, y, with_key=False).get_legend() is None


def test_scatter_of_numbers_has_a_colour_bar_that_outliers_do_not_stretch():
    phi, y = np.random.default_rng(0).normal(size=(300, 2)), np.linspace(0, 1, 300)
    y[-1] = 1e6
    ax = plot.coordinate_scatter(phi, y, label="price")
    points = ax.collections[0]
    np.testing.assert_array_equal(points.get_array(), y)
    assert points.norm.vmax < 1.1
    assert [other.get_ylabel() for other in ax.figure.axes[1:]] == ["price"]
    without = plot.coordinate_scatter(phi, y, with_key=False)
    assert len(without.figure.axes) == 1


def test_predictions_on_the_plane_and_the_true_numbers_share_their_colours():
    x = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    ax = plot.plane_prediction(lambda rows: rows[:, 0], x, x[:, 0], label="price")
    surface, points = ax.images[0], ax.collections[0]
    assert np.all(np.diff(surface.get_array(), axis=1) > 0)
    np.testing.assert_array_equal(points.get_array(), x[:, 0])
    assert surface.norm.vmin == points.norm.vmin
    assert surface.get_cmap() == points.get_cmap()
    assert ax.figure.axes[1].get_ylabel() == "price"


def test_predictions_are_drawn_against_the_truth_with_equal_axes():
    ax = plot.predictions(np.array([1.0, 2.0]), np.array([1.5, 4.0]), label="price")
    np.testing.assert_allclose(ax.collections[0].get_offsets(), [[1, 1.5], [2, 4]])
    np.testing.assert_array_equal(*ax.lines[0].get_data())
    assert ax.get_xlim() == ax.get_ylim()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("price, true", "price, predicted")
