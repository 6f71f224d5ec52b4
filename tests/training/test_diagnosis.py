"""What goes wrong is said, once and with a remedy; what goes well is not."""

import json
import pickle
import warnings
from dataclasses import asdict, replace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

import toys
from commands import piefs
from piefs import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer, load
from piefs.errors import DivergedError, TrainingWarning
from piefs.training.batches import Samples
from piefs.training.diagnosis import Finding, RunRecord, findings, late_fall, loss_by_chance
from piefs.training.loop import train
from piefs.training.state import initial_state
from toys import flat

SMALL = toys.SMALL | {"log_every": 5}


def rows(n=20, **columns):
    """A history in which columns are constants or sequences."""
    whole = {"gram_error": 0.1, "loss_class": 0.2} | columns
    return [
        {name: float(np.broadcast_to(value, n)[i]) for name, value in whole.items()}
        for i in range(n)
    ]


HEALTHY = RunRecord(
    toys.settings(schedule="nested"),
    rows(validation_loss=0.25),
    gram_error=0.1,
    raw=np.random.default_rng(0).normal(size=(50, 4)),
    log_scale_ranges=((-2.0, 2.0),) * 4,
    chance=0.7,
)


def kinds(**changed):
    return [finding.kind for finding in findings(replace(HEALTHY, **changed))]


def test_nothing_is_said_of_a_healthy_run():
    assert kinds() == []


def test_each_sign_is_found_by_itself():
    constant = HEALTHY.raw.copy()
    constant[:, 1] = 3.0
    zero = HEALTHY.raw * [1, 1, 1, 1e-9]
    spoiled = np.linspace(0.3, 0.5, 20)
    assert kinds(raw=constant) == ["dead-maps"]
    assert kinds(raw=zero) == ["dead-maps"]
    assert kinds(log_scale_ranges=((-9.0, 2.0),)) == ["metric"]
    assert kinds(gram_error=3.0) == ["gram-error"]
    assert kinds(history=rows(gram_error=50.0)) == ["gram-error"]
    assert kinds(history=rows(validation_loss=np.linspace(0.7, 0.3, 20))) == ["still-improving"]
    assert kinds(history=rows(loss_class=1e-3, validation_loss=spoiled)) == ["saturated"]
    assert kinds(history=rows(validation_loss=0.6)) == ["overfitting"]


def test_every_finding_says_what_to_do():
    wrong = replace(
        HEALTHY,
        raw=np.zeros((50, 4)),
        log_scale_ranges=((-9.0, 9.0),),
        gram_error=4.0,
        history=rows(validation_loss=np.linspace(3.0, 2.0, 20)),
    )
    found = findings(wrong)
    assert {f.kind for f in found} == {
        "dead-maps",
        "metric",
        "gram-error",
        "still-improving",
        "overfitting",
    }
    remedies = ("learning_rate", "bound", "orth", "steps_per_component", "weight_decay")
    for finding, remedy in zip(found, remedies, strict=True):
        assert remedy in finding.advice
        assert finding.message == f"{finding.says} {finding.advice}"


def test_findings_outlive_their_documents_the_earlier_form_too():
    finding = Finding("metric", "The metric is degenerate.", "Set metric_bound=3.", bad=False)
    assert Finding.from_document(asdict(finding)) == finding
    earlier = {"kind": "metric", "message": "the metric is degenerate. Set metric_bound=3."}
    assert Finding.from_document(earlier) == replace(finding, bad=True)


def test_one_constant_map_is_as_it_should_be_without_labels():
    constant = HEALTHY.raw.copy()
    constant[:, 0] = 1.0
    assert kinds(raw=constant, chance=None) == []
    assert kinds(raw=constant, settings=toys.settings(schedule="sequential")) == []
    constant[:, 1] = 1.0
    assert kinds(raw=constant, chance=None) == ["dead-maps"]


def test_a_short_history_and_a_chosen_number_of_steps_are_not_judged():
    falling = rows(validation_loss=np.linspace(0.7, 0.3, 20))
    assert kinds(history=falling, used_all_steps=False) == []
    assert kinds(history=falling[:5]) == []


def test_a_late_fall_is_that_of_the_second_half():
    assert late_fall([10.0] * 20 + [4.0] * 20) == 0
    assert late_fall([4.0] * 36 + [3.0] * 4) == 1


def test_the_loss_by_chance_is_entropy_or_variance():
    x = np.zeros((4, 1))
    classes = Samples(x, np.array([0, 0, 1, 1]))
    assert loss_by_chance(classes) == pytest.approx(np.log(2))
    numbers = Samples(x, np.array([[0.0], [0.0], [2.0], [2.0]]))
    assert loss_by_chance(numbers) == pytest.approx(1)
    assert loss_by_chance(Samples(x)) is None


# --- provoked ------------------------------------------------------------------------------------


def warned(model, *data, **keywords):
    """The kinds of warnings that a fit raised."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*data, **keywords)
    said = [str(w.message) for w in caught if issubclass(w.category, TrainingWarning)]
    assert said == [finding.message for finding in model.warnings_]
    return [finding.kind for finding in model.warnings_]


def test_maps_that_nothing_keeps_orthonormal_are_said(moons):
    model = PIEFSClassifier(
        **flat(
            **SMALL | {"orthogonality": 0.0, "smoothness": 1.0, "preset": toys.preset(whiten=False)}
        )
    )
    assert "gram-error" in warned(model, *moons)


def test_too_few_steps_are_said(moons):
    model = PIEFSClassifier(**flat(**SMALL | {"learning_rate": 0.03, "random_state": 1}))
    assert warned(model, *moons, validation_data=moons) == ["still-improving"]


def test_a_rate_far_too_high_is_an_error(moons):
    with pytest.raises(DivergedError, match=r"learning_rate \(it is 1e\+08\)"):
        PIEFSClassifier(**flat(**SMALL | {"learning_rate": 1e8})).fit(*moons)


def test_a_rate_too_high_is_cut_and_said(moons):
    assert "rate-cut" in warned(PIEFSClassifier(**flat(**SMALL | {"learning_rate": 100.0})), *moons)


def test_dead_units_are_said(moons):
    X, y = moons
    model = PIEFSClassifier(**flat(**SMALL | {"activation": "relu", "steps_per_component": 5})).fit(
        X, y
    )
    maps = model.model_.maps
    buried = tuple(bias - 1e3 for bias in maps.net.biases[:-1])
    dead = replace(maps, net=replace(maps.net, biases=(*buried, maps.net.biases[-1])))
    model.model_ = replace(model.model_, maps=dead)
    assert "dead-maps" in warned(model.set_params(pretraining=model.model_), X, y)


def test_maps_that_are_constant_are_left_out_and_the_count_is_honest(moons):
    X, y = moons
    settings = {"solver": "nested", "hidden": (8,), "activation": "relu", "steps_per_component": 5}
    model = PIEFSClassifier(4, random_state=0, **settings).fit(X, y)
    net = model.model_.maps.net
    buried = net.biases[0].copy()
    buried[[1, 3]] = -1e3  # all units of two maps are off
    maps = replace(model.model_.maps, net=replace(net, biases=(buried, *net.biases[1:])))
    half_dead = replace(model.model_, maps=maps)
    with pytest.warns(TrainingWarning, match=r"2 of 4 maps are constant .*\(map 2, 4\).*left out"):
        model.set_params(pretraining=half_dead).fit(X, y)
    assert model.n_components_ == model.transform(X).shape[1] == len(model.energies_) == 2
    assert model.model_.readout.weights.shape[1] == 2
    assert model.gram_error_ < 1e-6
    assert model.score(X, y) > 0.5
    assert list(model.get_feature_names_out()) == ["phi1", "phi2"]


def test_a_metric_without_bounds_is_said(moons, tmp_path):
    keywords = SMALL | {"metric": "diag", "steps_per_component": 5, "learning_rate": 1e-6}
    model = PIEFSClassifier(**flat(**keywords)).fit(*moons)
    net = model.model_.metric.scale_net
    run_away = replace(net, biases=(*net.biases[:-1], np.array([0.0, 30.0], np.float32)))
    model.model_ = replace(model.model_, metric=replace(model.model_.metric, scale_net=run_away))
    model.set_params(pretraining=model.model_)
    assert warned(model, *moons) == ["metric"]
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").warnings_ == model.warnings_
    assert pickle.loads(pickle.dumps(model)).warnings_ == model.warnings_
    assert all(type(one) is dict for one in model.__getstate__()["warnings_"])


def test_a_model_of_an_earlier_version_keeps_its_warnings(moons, tmp_path):
    model = PIEFSClassifier(**flat(**SMALL | {"steps_per_component": 5})).fit(*moons)
    model.save(tmp_path / "model")
    path = tmp_path / "model/model.json"
    document = json.loads(path.read_text())
    document["warnings"] = [{"kind": "metric", "message": "it is degenerate. Bound it."}]
    path.write_text(json.dumps(document))
    expected = [Finding("metric", "It is degenerate.", "Bound it.")]
    assert load(tmp_path / "model").warnings_ == expected


def test_rows_learned_by_heart_are_said():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 10)), rng.integers(0, 2, 120)
    keywords = {"steps_per_component": 400, "log_every": 20, "learning_rate": 0.01}
    keywords |= {"smoothness": 0.0, "weight_decay": 0.0, "n_components": 2}
    model = PIEFSClassifier(**flat(**SMALL | keywords))
    assert "saturated" in warned(model, X[:60], y[:60], validation_data=(X[60:], y[60:]))


def test_losses_that_are_not_finite_end_the_run_and_leave_the_last_good_state(moons):
    X, y = moons
    config = toys.settings(
        n_components=2, steps_per_component=40, batch_size=32, hidden=(8,), log_every=10
    )
    samples = Samples(X.astype(np.float32), y.astype(np.int32))
    start = initial_state(samples, config, 2)
    good = train(samples, config, n_outputs=2, callbacks=[lambda s: s.step >= 10], state=start)
    spoiled = replace(samples, x=np.where(np.arange(len(X))[:, None] == 7, np.inf, samples.x))
    with pytest.raises(DivergedError, match=r"learning_rate \(it is 0.001\)") as failed:
        train(spoiled, config, n_outputs=2, state=start)
    assert failed.value.state is not None
    assert np.isfinite(failed.value.state.params.readout.bias).all()
    assert np.isfinite(np.asarray(good.readout.bias)).all()


# --- told ----------------------------------------------------------------------------------------


def test_the_command_line_tells_what_went_wrong_and_shows_no_python_warning(monkeypatch, capsys):
    told = {
        "task": "classification",
        "gram_error": {"train": 0.0},
        "energies": [1.0],
        "seconds": 1.0,
        "steps_per_second": 1.0,
        "steps": 1,
        "steps_saved": 0,
        "warnings": [asdict(Finding("metric", "The metric is degenerate.", "Bound it."))],
    }

    def run(*_, **__):
        warnings.warn("the metric is degenerate", TrainingWarning, stacklevel=2)
        return told

    monkeypatch.setattr("piefs.app.run.run", run)
    done = piefs("demo")
    assert done.returncode == 0
    assert "Warning: The metric is degenerate. Bound it." in done.stdout
    assert "degenerate" not in done.stderr


@pytest.mark.slow
def test_healthy_runs_raise_no_alarm(moons):
    small = {"n_components": 3, "random_state": 0}
    short = {"steps_per_component": 500, "early_stopping": False}
    paper = {"preset": "paper", "steps_per_component": 200, "batch_size": 256, "log_every": 50}
    for estimator, keywords, data in (
        (PIEFSClassifier, short, moons),
        (PIEFSClassifier, paper, moons),
        (PIEFSTransformer, short, moons[:1]),
        (PIEFSRegressor, short, load_diabetes(return_X_y=True)),
    ):
        assert warned(estimator(**flat(**small, **keywords)), *data) == []
