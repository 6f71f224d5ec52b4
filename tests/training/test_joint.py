"""The joint objective against its definition, and what joint training must achieve."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import make_circles
from sklearn.metrics import log_loss

import toys
from piefs import PIEFSClassifier
from piefs.core.losses import (
    Readout,
    cross_entropy,
    gram_error,
    gram_sum,
    half_sums,
    init_readout,
    split_gram_error,
)
from piefs.core.maps import init_map, stack, unstack
from piefs.core.metric import Off, SharedDiag, init_metric
from piefs.core.networks import generator
from piefs.core.objectives import (
    Batch,
    JointObjective,
    SpectralObjective,
    Trainable,
    for_prefixes,
)
from piefs.core.weighting import Dampened, Static
from piefs.errors import InputError
from piefs.estimators.decisions import Facts, decided
from piefs.training.batches import Samples
from piefs.training.config import Settings
from piefs.training.evaluation import coordinates_of
from piefs.training.loop import train
from piefs.training.state import WarmStart
from piefs.training.step import descend
from toys import flat

K, D, N, C = 3, 4, 20, 2

# Compiled whole; operation by operation it would compile far longer.
loss_on = jax.jit(lambda loss, params, batch: loss(params, batch), static_argnums=0)


@pytest.fixture
def problem(rng, float64):
    maps = stack([init_map(generator(k), D, (5, 5), "tanh") for k in range(K)])
    readouts = Readout(
        jnp.asarray(rng.normal(size=(K, C, K))), jnp.asarray(rng.normal(size=(K, C)))
    )
    batch = Batch(
        jnp.asarray(rng.normal(size=(N, D))),
        jnp.zeros((N, K)),
        jnp.asarray(rng.integers(0, C, N)),
        jnp.asarray(rng.uniform(0.5, 2, N)),
        jnp.asarray(rng.uniform(0.5, 2, N)),
    )
    return Trainable(maps, Off(), readouts), batch


def test_the_loss_is_the_sum_of_its_definition(problem):
    params, batch = problem
    objective = JointObjective(0.3, 0.2, 1.5)
    loss, record = loss_on(objective, params, batch)
    phi, gradients = params.phi.coordinates_and_gradients(batch.x)
    w = np.asarray(batch.weight / batch.weight.sum())
    energies = np.einsum("n,nkd->", w, np.asarray(gradients) ** 2)
    prefix_losses = []
    for p in range(K):
        weights = np.asarray(params.readout.weights[p])[:, : p + 1]
        logits = np.asarray(phi)[:, : p + 1] @ weights.T + np.asarray(params.readout.bias[p])
        prefix_losses.append(
            np.average(cross_entropy(logits, batch.target), weights=batch.label_weight)
        )
    orth = split_gram_error(half_sums(phi, batch.weight))
    expected = prefix_losses[-1] + 1.5 * np.mean(prefix_losses[:-1]) + 0.3 * orth + 0.2 * energies
    assert float(loss) == pytest.approx(float(expected), rel=1e-12)
    assert float(record.gram_error) == pytest.approx(float(orth), rel=1e-12)
    assert float(record.loss_class) == pytest.approx(float(prefix_losses[-1]), rel=1e-12)
    assert float(record.loss_mde) == pytest.approx(float(energies), rel=1e-12)


def test_the_anisotropy_penalty_is_the_mean_square_of_log_scales(problem, rng):
    params, batch = problem
    metric = SharedDiag(jnp.asarray(rng.normal(size=D)), "volume")
    params = Trainable(params.phi, metric, params.readout)
    penalty = float(jnp.mean(metric.log_scales(batch.x)[0] ** 2))
    assert penalty > 0.1
    spectral = batch._replace(target=jnp.asarray(rng.normal(size=(N, K))))
    objectives = (
        (partial(JointObjective, 0.3, 0.2), batch),
        (partial(SpectralObjective, 0.2), spectral),
    )
    for objective, rows in objectives:
        without, penalised = (
            float(loss_on(objective(anisotropy=a), params, rows)[0]) for a in (0.0, 0.7)
        )
        assert penalised - without == pytest.approx(0.7 * penalty, rel=1e-9)


def test_joint_has_one_readout_and_no_prefix_losses(problem):
    params, batch = problem
    one = Trainable(params.phi, Off(), jax.tree.map(lambda a: a[-1:], params.readout))
    loss, record = loss_on(JointObjective(0.0, 0.0), one, batch)
    assert float(loss) == pytest.approx(float(record.loss_class), rel=1e-12)
    nested, _ = loss_on(JointObjective(0.0, 0.0, 1.0), params, batch)
    assert float(nested) > float(loss)


def test_without_labels_only_orthogonality_and_smoothness_count(problem):
    params, batch = problem
    loss, record = loss_on(JointObjective(1.0, 0.5, readout_loss=None), params, batch)
    assert float(loss) == pytest.approx(float(record.gram_error + 0.5 * record.loss_mde))
    assert float(record.w_class) == 0


def test_a_batch_of_all_rows_counts_its_own_gram_matrix(problem):
    params, batch = problem
    _, record = loss_on(JointObjective(1.0, 0.0, population_gram=False), params, batch)
    phi, _ = params.phi.coordinates_and_gradients(batch.x)
    assert float(record.gram_error) == pytest.approx(
        float(gram_error(gram_sum(phi, batch.weight).mean))
    )


def test_prefix_readouts_ignore_later_maps(problem):
    params, batch = problem
    gradient = jax.grad(lambda p: loss_on(JointObjective(0.0, 0.0, 1.0), p, batch)[0])(params)
    blind = np.triu(np.ones((K, K)), 1).astype(bool)  # prefix p, map k > p
    used = np.any(np.asarray(gradient.readout.weights) != 0, axis=1)
    np.testing.assert_array_equal(used, ~blind)


@pytest.mark.parametrize("metric", ["diag", "trotter"])
def test_one_metric_serves_all_maps(problem, metric):
    params, batch = problem
    shared = init_metric(metric, generator(1), D, (6,))
    together = JointObjective(0.0, 1.0, readout_loss=None)
    total, _ = loss_on(together, Trainable(params.phi, shared, params.readout), batch)
    single = [
        loss_on(together, Trainable(stack([phi]), shared, params.readout), batch)[0]
        for phi in unstack(params.phi)
    ]
    assert float(total) == pytest.approx(float(sum(single)), rel=1e-10)


def test_the_split_gram_error_is_unbiased_where_the_batchs_own_is_not(rng, float64):
    mix = rng.normal(size=(2, 2))
    truth = float(np.sum((mix @ mix.T - np.eye(2)) ** 2))
    draws = jnp.asarray(rng.normal(size=(20_000, 8, 2)) @ mix.T)
    weight = jnp.ones(8)
    split = jax.vmap(lambda phi: split_gram_error(half_sums(phi, weight)))(draws)
    naive = jax.vmap(lambda phi: gram_error(phi.T @ phi / len(phi)))(draws)
    error = float(split.std() / np.sqrt(len(split)))
    assert abs(float(split.mean()) - truth) < 4 * error
    assert float(naive.mean()) - truth > 10 * error


def test_every_prefix_has_a_readout_of_its_own_if_maps_are_nested():
    stacked = for_prefixes(init_readout(C, K), nested=True)
    assert stacked.weights.shape == (K, C, K)
    assert for_prefixes(init_readout(C, K), nested=False).weights.shape == (1, C, K)


# --- training ----------------------------------------------------------------------------------

CONFIG = toys.settings(
    schedule="nested",
    n_components=4,
    steps_per_component=400,
    batch_size=64,
    learning_rate=5e-3,
    weight_decay=0.1,
    warmup=0.05,
    hidden=(16, 16),
    orthogonality=1.0,
    smoothness=1e-4,
    log_every=100,
)


@pytest.fixture(scope="module")
def rings(float64):
    x, y = make_circles(600, noise=0.05, factor=0.5, random_state=0)
    return Samples(x, y.astype(np.int32))


@pytest.fixture(scope="module")
def final(rings):
    return train(rings, CONFIG, n_outputs=2)


def test_all_maps_end_together(final):
    assert (final.k, final.steps) == (4, (400,))
    assert len(final.energies) == len(final.log_scale_ranges) == len(final.frozen) == 4
    assert [row["step"] for row in final.history] == [100, 200, 300, 400]
    assert final.readout.weights.shape == (2, 4)


def test_joint_maps_are_nearly_orthonormal_and_classify(rings, final):
    phi = coordinates_of(final.maps, rings.x)
    assert float(gram_error(phi.T @ phi / len(phi))) < 0.1
    outputs = np.asarray(final.readout(jnp.asarray(phi)))
    assert np.mean(outputs.argmax(axis=1) == rings.target) > 0.98


@pytest.mark.slow
def test_prefix_losses_put_the_classes_into_the_first_map(rings):
    def accuracy_of_first(config):
        state = train(rings, config, n_outputs=2)
        first = coordinates_of(state.maps, rings.x)[:, 0]
        order = rings.target[np.argsort(first)]
        ones = np.cumsum(order)
        right = np.arange(1, len(order) + 1) - ones + ones[-1] - ones  # 0s below a cut, 1s above
        return max(right.max(), (len(order) - right).max()) / len(order)

    ordered = accuracy_of_first(toys.changed(CONFIG, prefix_weight=3.0, seed=1))
    assert ordered > 0.97


@pytest.mark.slow
def test_a_joint_run_can_polish_maps_that_were_trained_in_turn(rings):
    one_by_one = toys.changed(CONFIG, schedule="sequential", steps_per_component=50)
    begun = train(rings, one_by_one, n_outputs=2)
    warm = WarmStart(list(begun.frozen), begun.params.metric, begun.readout)
    still = toys.changed(CONFIG, learning_rate=0.0, steps_per_component=1)
    polished = train(rings, still, n_outputs=2, warm_start=warm)
    np.testing.assert_array_equal(
        coordinates_of(polished.maps, rings.x), coordinates_of(begun.maps, rings.x)
    )
    np.testing.assert_array_equal(polished.readout.weights, begun.readout.weights)


def test_unknown_solvers_are_refused():
    with pytest.raises(InputError, match="unknown solver"):
        Settings.of(solver="random")


# --- estimators --------------------------------------------------------------------------------

SMALL = {"n_components": 4, "steps_per_component": 150, "hidden": (16, 16), "random_state": 0}


@pytest.fixture(scope="module")
def table():
    return make_circles(500, noise=0.05, factor=0.5, random_state=1)


def test_whitened_coordinates_are_orthonormal_and_predictions_stay(table):
    X, y = table
    plain = PIEFSClassifier(preset=toys.preset(whiten=False), **SMALL).fit(X, y)
    white = PIEFSClassifier(**SMALL).fit(X, y)
    phi = white.transform(X).astype(float)
    assert np.abs(phi.T @ phi / len(X) - np.eye(4)).max() < 1e-6
    assert plain.gram_error_ > 1e-4
    np.testing.assert_allclose(white.predict_proba(X), plain.predict_proba(X), atol=1e-5)


def test_whitening_counts_rows_by_their_weight(table):
    X, y = table
    weight = np.random.default_rng(0).uniform(0, 3, len(X))
    phi = PIEFSClassifier(**SMALL).fit(X, y, weight).transform(X).astype(float)
    c = (phi * weight[:, None]).T @ phi / weight.sum()
    assert np.abs(c - np.eye(4)).max() < 1e-6


def test_energies_of_whitened_coordinates_are_those_of_their_gradients(table):
    X, y = table
    model = PIEFSClassifier(**flat(dtype="float64", **SMALL)).fit(X, y)
    with jax.enable_x64(True):
        feature_map = model.to_jax()
        jacobian = jax.jit(jax.vmap(jax.jacobian(lambda x: feature_map(x[None])[0])))(X)
        seen = np.asarray(jacobian) * model.scale_  # the maps see standardised inputs
    np.testing.assert_allclose((seen**2).sum(axis=2).mean(axis=0), model.energies_, rtol=1e-6)


def test_ritz_coordinates_have_their_eigenvalues_for_energies(table):
    X, y = table
    model = PIEFSClassifier(**SMALL).fit(X, y)
    values, rotation = model.ritz()
    assert np.all(np.diff(values) >= 0)
    np.testing.assert_allclose(values.sum(), model.energies_.sum(), rtol=1e-6)
    z = model.transform(X).astype(float) @ rotation.T
    assert np.abs(z.T @ z / len(X) - np.eye(4)).max() < 1e-5


def test_polishing_through_warm_start_goes_on_from_the_whitened_model(table):
    X, y = table
    model = PIEFSClassifier(**SMALL).fit(X, y)
    before = model.predict_proba(X)
    model.set_params(pretraining=model.model_, solver="joint")
    model.set_params(learning_rate=1e-12, steps_per_component=1).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), before, atol=1e-5)


@pytest.mark.parametrize(
    ("solver", "keyword", "words"),
    [
        ("nested", {"weighting": Dampened(t_orth=0.1)}, "has no meaning"),
        ("nested", {"weighting": Static(mde=2.0)}, "smoothness weighs the energies"),
        ("joint", {"weighting": Static(prefix=1.0)}, "prefix has no meaning"),
        ("spectral", {"weighting": Static(orth=1.0)}, "weighting has no meaning"),
        ("sequential", {"weighting": Static(prefix=1.0)}, "prefix has no meaning"),
        ("sequential", {"smoothness": 1e-3}, "smoothness has no meaning"),
    ],
)
def test_a_keyword_that_would_be_ignored_is_refused(solver, keyword, words):
    with pytest.raises(InputError, match=f"{words}.*"):
        PIEFSClassifier(solver=solver, **keyword).check_settings(100)


def test_the_automatic_budget_grows_with_the_rows_within_limits():
    found = [PIEFSClassifier(solver="nested").check_settings(n) for n in (100, 80_000, 10**7)]
    assert [settings.steps_per_component for settings in found] == [2000, 3750, 20_000]


def test_the_automatic_batch_is_an_eighth_of_the_rows_within_limits():
    found = [PIEFSClassifier(solver="nested").check_settings(n) for n in (40, 100, 1000, 5000)]
    assert [settings.batch_size for settings in found] == [40, 64, 125, 256]


def test_map_after_map_by_keyword_takes_the_settings_that_suit_it():
    settings = PIEFSClassifier(**flat(schedule="sequential")).check_settings(10_000)
    assert settings.batch_size == 1024
    assert (
        PIEFSClassifier(**flat(schedule="sequential", batch_size=99))
        .check_settings(10_000)
        .batch_size
        == 99
    )


def test_smoothness_is_a_pure_number_so_scaling_the_data_changes_nothing(table):
    X, y = table
    keywords = SMALL | {"standardize": False, "smoothness": 0.05, "dtype": "float64"}
    one = PIEFSClassifier(**flat(**keywords)).fit(X, y)
    ten = PIEFSClassifier(**flat(**keywords)).fit(10 * X, y)
    assert ten.settings_.energy_weight == pytest.approx(100 * one.settings_.energy_weight)


# --- how many steps ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def coin_flips():
    """Rows whose labels are half noise: soon learned by heart."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    flips = rng.random(400) < 0.3
    return X, ((X[:, 0] > 0) ^ flips).astype(int)


@pytest.mark.slow
def test_few_rows_are_trained_on_for_as_long_as_it_helps(coin_flips):
    X, y = coin_flips
    keywords = SMALL | {"steps_per_component": 2000, "hidden": (64, 64)}
    chosen = PIEFSClassifier(**flat(**keywords)).fit(X, y)
    spent = PIEFSClassifier(**flat(early_stopping=False, **keywords)).fit(X, y)
    assert chosen.n_iter_ < 1500 < spent.n_iter_ == 2000
    np.testing.assert_allclose(chosen.coordinates_, chosen.transform(X), atol=1e-5)
    rng = np.random.default_rng(1)
    fresh = rng.normal(size=(2000, 4))
    truth = (fresh[:, 0] > 0).astype(int)
    assert chosen.score(fresh, truth) > spent.score(fresh, truth) + 0.03


def test_given_validation_rows_decide_instead_of_some_set_aside(coin_flips):
    X, y = coin_flips
    keywords = SMALL | {"steps_per_component": 1000, "patience": 2}
    model = PIEFSClassifier(**flat(early_stopping=True, **keywords))
    model.fit(X[:300], y[:300], validation_data=(X[300:], y[300:]))
    assert model.n_iter_ < 1000
    assert len(model.coordinates_) == 300
    assert "validation_accuracy" in model.history_[-1]


@pytest.mark.slow
def test_the_maps_of_the_lowest_validation_loss_are_kept(coin_flips):
    X, y = coin_flips
    keywords = SMALL | {"steps_per_component": 800, "hidden": (64, 64), "weight_decay": 0.0}
    model = PIEFSClassifier(**flat(early_stopping=True, patience=4, **keywords))
    model.fit(X[:300], y[:300], validation_data=(X[300:], y[300:]))
    losses = [row["validation_loss"] for row in model.history_]
    kept = log_loss(y[300:], model.predict_proba(X[300:]))
    assert kept == pytest.approx(min(losses), rel=1e-3)
    assert kept < losses[-1] - 0.01
    assert model.settings_.weight_decay == 0.0


def test_weight_decay_left_to_the_rule_is_one_number():
    assert decided(Settings.of(solver="nested"), Facts(500)).weight_decay == 0.3
    assert decided(Settings.of(weight_decay=3), Facts(500)).weight_decay == 3


def test_callbacks_hear_of_one_run(coin_flips, capsys):
    X, y = coin_flips

    class Listener(list):
        def begin(self, stage):
            self.append((stage.settings.total_steps,))

        def __call__(self, state):
            self.append(state.step)

    heard = Listener()
    keywords = SMALL | {"steps_per_component": 220, "callbacks": [heard], "verbose": 1}
    model = PIEFSClassifier(**flat(**keywords)).fit(X, y)
    stages = [entry for entry in heard if isinstance(entry, tuple)]
    assert stages == [(220,)]
    assert model.settings_.early_stopping is True
    assert "training: at most 220 steps" in capsys.readouterr().out


def test_many_rows_very_few_rows_and_small_budgets_do_not_stop_early():
    for n, steps, expected in (
        *((50, 201, False), (150, 201, True), (150, 200, False)),
        *((9_999, 2000, True), (10_000, 2000, False)),
    ):
        model = PIEFSClassifier(steps_per_component=steps, n_components=2)
        assert model.check_settings(n).early_stopping is expected


def test_few_features_have_smooth_maps_and_many_cheap_ones():
    rng = np.random.default_rng(0)
    few = {"steps_per_component": 1, "n_components": 1, "hidden": (4,), "random_state": 0}
    for n_features, expected in ((64, "silu"), (65, "relu")):
        X = rng.normal(size=(40, n_features))
        model = PIEFSClassifier(**few).fit(X, X[:, 0] > 0)
        assert model.settings_.activation == expected


def test_one_program_serves_tables_of_different_scale():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    few = {"n_components": 2, "hidden": (4,), "steps_per_component": 2, "standardize": False}
    PIEFSClassifier(**few, random_state=0).fit(X, X[:, 0] > 0)
    compiled = descend._cache_size()
    PIEFSClassifier(**flat(**few, random_state=0, orthogonality=0.5)).fit(3 * X, X[:, 0] > 0)
    assert descend._cache_size() == compiled
