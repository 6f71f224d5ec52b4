"""Figures show what they say they show."""

import numpy as np
import pytest

from piefs import EigenSolver, plot
from piefs.operators import known
from piefs.report.plot.modes import modes

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
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x₁", "x₂")


def test_plane_maps_has_a_titled_panel_for_each_map():
    x = np.random.default_rng(0).normal(size=(20, 2))
    axes = plot.plane_maps(lambda rows: rows, x, maps=(0, 1))
    assert [ax.get_title() for ax in axes] == ["φ₁", "φ₂"]


def test_gram_matrix_names_the_distance_from_the_identity():
    c = np.diag([1.0, 1.3]) + 0.2
    ax = plot.gram_matrix(c)
    assert f"{np.linalg.norm(c - np.eye(2)):.3f}" in ax.get_title()
    np.testing.assert_allclose(ax.images[0].get_array(), c)


def test_curves_plot_the_history_and_mark_frozen_maps():
    ax = plot.history(HISTORY, "accuracy")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0.5, 0.6, 0.7, 0.8, 0.9])
    assert [line.get_xdata()[0] for line in ax.lines[1:]] == [20]
    ax = plot.history(HISTORY, "gram")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0, 0.1, 0.2, 0.3, 0.4])
    assert "frozen" in ax.get_xlabel()


def test_maps_that_were_trained_at_once_are_not_marked():
    ax = plot.history([row | {"map": 2} for row in HISTORY], "gram")
    assert len(ax.lines) == 1
    assert ax.get_xlabel() == "training step"


def test_an_r2_far_below_zero_does_not_flatten_the_curve():
    ax = plot.history(HISTORY, "r2")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [-3, 0.2, 0.4, 0.6, 0.8])
    assert ax.get_ylim()[0] == -0.25
    assert plot.history(HISTORY[1:], "r2").get_ylim()[0] > 0


def test_weight_curves_are_told_apart_by_a_legend():
    ax = plot.history(HISTORY, "weights")
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
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("φ₃", "φ₄")
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
    ax = plot.plane_heatmap(lambda rows: rows[:, 0], x, x[:, 0], label="price")
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


def test_names_are_shown_letter_by_letter():
    phi, y = np.random.default_rng(0).normal(size=(9, 2)), np.arange(9) % 2
    ax = plot.coordinate_scatter(phi, y, class_names=("$5$", "$x_1"))
    ax.figure.canvas.draw()  # a formula that is none would fail here
    shown = [text.get_text() for text in ax.get_legend().get_texts()]
    assert shown == [r"\$5\$", r"\$x_1"]
    assert plot.predictions(np.arange(2.0), np.arange(2.0), label="a$").get_xlabel() == r"a\$, true"


def test_losses_that_a_run_has_are_drawn_on_a_log_scale():
    history = [
        row | {"loss_class": 0.5, "loss_mde": 0.0, "validation_loss": 0.6} for row in HISTORY
    ]
    ax = plot.history(history, "losses")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["training", "validation"]
    assert ax.get_yscale() == "log"


def test_scores_by_maps_kept_have_a_line_for_each_split():
    scores = {"validation": [0.5, 0.9], "test": [0.4, 0.8]}
    ax = plot.score_by_maps([1, 4], scores, label="R²")
    np.testing.assert_allclose(ax.lines[1].get_xydata(), [[1, 0.4], [4, 0.8]])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["validation", "test"]
    assert ax.get_ylabel() == "R²"


def test_confusion_matrix_colours_shares_of_the_true_class_and_writes_counts():
    ax = plot.confusion_matrix(np.array([[3, 1], [0, 8]]), ("cat", "dog"))
    np.testing.assert_allclose(ax.images[0].get_array(), [[0.75, 0.25], [0, 1]])
    assert [text.get_text() for text in ax.texts] == ["3", "1", "8"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["cat", "dog"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("predicted", "true")


def test_a_confusion_matrix_of_many_classes_has_no_words():
    ax = plot.confusion_matrix(np.eye(100, dtype=int), [f"class {c}" for c in range(100)])
    assert not ax.texts


def test_reliability_shows_each_bins_gap_to_the_diagonal():
    ax = plot.reliability(np.array([0.6, 0.9]), np.array([0.5, 1.0]), np.array([10, 30]))
    np.testing.assert_allclose(ax.collections[-1].get_offsets(), [[0.6, 0.5], [0.9, 1.0]])
    small, large = ax.collections[-1].get_sizes()
    assert small < large
    gaps = np.array(ax.collections[0].get_segments())
    np.testing.assert_allclose(gaps[:, :, 1], [[0.6, 0.5], [0.9, 1.0]])


def test_residuals_are_true_minus_predicted():
    ax = plot.residuals(np.array([1.0, 5.0]), np.array([2.0, 3.0]), label="price")
    np.testing.assert_allclose(ax.collections[0].get_offsets(), [[2, -1], [3, 2]])
    assert ax.get_xlabel() == "price, predicted"


def test_partial_dependence_has_a_line_for_each_map():
    curves = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    ax = plot.partial_dependence(np.array([1.0, 2.0, 3.0]), curves, name="age")
    np.testing.assert_allclose(ax.lines[1].get_xydata(), [[1, 1], [2, 3], [3, 5]])
    assert ax.lines[1].get_label() == "φ₂"
    assert ax.get_xlabel() == "age"


def test_relevance_by_map_has_the_inputs_that_matter_on_top():
    shares = np.array([[0.1, 0.2], [0.9, 0.3], [0.0, 0.5]] + 18 * [[0.0, 0.0]])
    names = [*"abc", *map(str, range(18))]
    ax = plot.relevance_by_map(shares, names)
    assert len(ax.images[0].get_array()) == 20
    np.testing.assert_allclose(ax.images[0].get_array()[:3], shares[[1, 2, 0]])
    assert [label.get_text() for label in ax.get_yticklabels()][:3] == ["b", "c", "a"]


def test_a_long_name_keeps_its_beginning_and_its_end():
    assert plot.shortened("short") == "short"
    name = plot.shortened("excess kurtosis of the DM-SNR curve", 20)
    assert name == "excess kur…SNR curve"
    assert len(name) == 20


def test_ellipses_are_long_where_slopes_are_cheap():
    x = np.array([[0.0, 0.0], [1.0, 1.0]])
    cheap_upwards = np.diag([4.0, 0.5])
    ax = plot.plane_metric(lambda rows: np.repeat(cheap_upwards[None], len(rows), 0), x)
    (ellipses,) = [c for c in ax.collections if hasattr(c, "get_angles")]
    assert len(ellipses.get_offsets()) == 12**2
    np.testing.assert_allclose(np.abs(ellipses.get_angles()), 90)
    np.testing.assert_allclose(ellipses.get_widths() / ellipses.get_heights(), 8)


def test_bars_show_the_most_relevant_columns_first():
    ax = plot.relevance_bars(np.array([0.1, 0.6, 0.3] + 18 * [0.0]), [*"abc", *map(str, range(18))])
    assert [label.get_text() for label in ax.get_yticklabels()][:3] == ["b", "c", "a"]
    assert "20 of 21 columns" in ax.get_xlabel()


def test_image_shows_the_relevance_of_each_pixel():
    ax = plot.relevance_image(np.arange(6.0), (2, 3))
    np.testing.assert_array_equal(ax.images[0].get_array(), [[0, 1, 2], [3, 4, 5]])


# --- eigenfunctions: masked outside the domain, and labelled as slices or halves --------------

SMALL = {"n_steps": 0, "n_maps": 3, "n_points": 900}


@pytest.fixture
def drawn(request):
    problem = known(request.param).problem
    return modes(EigenSolver(n_eigenpairs=5, **SMALL).solve(problem))


def pictures(figure):
    return [ax.images[0].get_array() for ax in figure.axes if ax.images]


@pytest.mark.parametrize("drawn", ["disk"], indirect=True)
def test_nothing_is_drawn_outside_of_a_disk(drawn):
    found = pictures(drawn)
    assert len(found) == 5
    seen = np.ma.getmaskarray(np.ma.masked_invalid(found[0]))
    assert 1 - seen.mean() == pytest.approx(np.pi / 4, abs=0.02)  # pixels on the edge
    assert not seen[80, 80]
    titles = [ax.get_title() for ax in drawn.axes]
    assert titles[0].startswith(r"$\lambda_{1}$ = 5.78")


@pytest.mark.parametrize("drawn", ["sphere"], indirect=True)
def test_of_a_sphere_one_half_is_seen(drawn):
    assert "one half of the sphere" in drawn.get_suptitle()
    assert np.nanstd(pictures(drawn)[0].filled(np.nan)) < 1e-3  # the first is constant
    assert np.nanstd(pictures(drawn)[1].filled(np.nan)) > 0.1
