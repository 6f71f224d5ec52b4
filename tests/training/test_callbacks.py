"""Callbacks see a run, record it, and end it; a run that was ended leaves a model that works."""

import csv
import io
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console
from sklearn.model_selection import cross_val_score

from piefs import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer, load
from piefs.callbacks import (
    Checkpoint,
    EarlyStopping,
    History,
    ProgressBar,
    ProgressPrinter,
    Stage,
    TargetScore,
    TimeBudget,
)
from piefs.errors import InputError
from piefs.training import graph
from piefs.training.callbacks import write_history
from piefs.training.config import PAPER
from piefs.training.progress import in_words
from toys import SMALL, flat


def fit(moons, *callbacks, **keywords):
    X, y = moons
    model = PIEFSClassifier(**flat(**SMALL | keywords, callbacks=callbacks))
    return model.fit(X, y, validation_data=(X[:50], y[:50]))


def after_steps(n):
    return lambda state: state.step >= n


def test_a_run_that_was_ended_is_a_model_that_works(moons, tmp_path):
    X, _ = moons
    model = fit(moons, after_steps(30))
    assert 30 <= model.n_iter_ < 60
    assert model.n_components_ == 3
    assert model.gram_error_ < 1e-6  # whitened as it stands
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), model.predict(X))


def test_maps_in_turn_end_with_those_there_are(moons, tmp_path):
    X, _ = moons

    def in_the_second_map(state):
        return state.k == 1 and state.step > 0

    model = fit(moons, in_the_second_map, schedule="sequential")
    whole = fit(moons, schedule="sequential")
    assert (model.n_components_, whole.n_components_) == (2, 3)
    assert model.transform(X).shape == (300, 2)
    np.testing.assert_array_equal(model.transform(X)[:, 0], whole.transform(X)[:, 0])
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.n_components_ == 2
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_an_interval_that_was_cut_off_has_its_row(moons):
    model = fit(moons, lambda state: True, log_every=50)
    assert [row["step"] for row in model.history_] == [model.n_iter_]
    assert "validation_loss" in model.history_[0]


def test_all_callbacks_see_the_chunk_in_which_one_of_them_ends_the_run(moons):
    seen = []
    fit(moons, lambda state: True, lambda state: seen.append(state.step))
    assert len(seen) == 2  # the chunk, and the maps frozen


def test_patience_ends_a_run_that_does_not_improve(moons):
    stalled = fit(moons, EarlyStopping("validation_loss", patience=2, min_improvement=10.0))
    assert len(stalled.history_) == 3  # a first row, which is the best, and two that are not
    assert len(fit(moons, EarlyStopping("loss_class", patience=1)).history_) == 3


def test_a_score_or_a_loss_that_is_reached_ends_a_run(moons):
    assert len(fit(moons, TargetScore(0.1)).history_) == 1
    assert len(fit(moons, TargetScore(1.1)).history_) == 3
    assert len(fit(moons, TargetScore(10.0, monitor="loss_class")).history_) == 1
    assert len(fit(moons, TargetScore(0.0, monitor="loss_class")).history_) == 3


def test_a_column_that_is_not_there_is_an_error_that_names_those_that_are(moons):
    X, y = moons
    for callback in (EarlyStopping(), TargetScore(0.5)):
        with pytest.raises(InputError, match=r"validation_data.*loss_class"):
            PIEFSClassifier(**flat(**SMALL, callbacks=[callback])).fit(X, y)
    for call in (
        lambda: EarlyStopping(patience=0),
        lambda: EarlyStopping(min_improvement=-1),
        lambda: TimeBudget(0),
    ):
        with pytest.raises(InputError, match=r"at least|above"):
            call()


def test_a_time_budget_is_renewed_with_each_fit(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("piefs.training.callbacks.time.monotonic", lambda: now[0])
    budget = TimeBudget(90)

    def is_over_at(seconds):
        now[0] = seconds
        return budget(None)

    budget.begin(Stage(PAPER))
    assert (is_over_at(89), is_over_at(90)) == (False, True)
    budget.end()
    budget.begin(Stage(PAPER))
    assert (is_over_at(179), is_over_at(180)) == (False, True)


def test_a_time_budget_runs_from_the_first_work_on(monkeypatch):
    now = iter([0.0, 60.0])
    monkeypatch.setattr("piefs.training.callbacks.time.monotonic", lambda: next(now))
    budget = TimeBudget(100)
    budget.prepare("neighbourhood graph", 0, 1)
    budget.begin(Stage(PAPER))
    assert budget._end == 100


def test_a_history_keeps_all_rows_and_grows_as_a_table(moons, tmp_path):
    path, lengths = tmp_path / "history.csv", []

    def count_lines(state):
        lengths.append(len(path.read_text().splitlines()) if path.exists() else 0)

    history = History(path)
    keywords = {"early_stopping": True, "weight_decay": 0.3, "steps_per_component": 220}
    keywords |= {"learning_rate": 0.02}
    model = fit(moons, history, count_lines, **keywords)
    with path.open() as file:
        table = list(csv.DictReader(file))
    assert [float(row["loss_class"]) for row in table] == [r["loss_class"] for r in history.rows]
    assert history.rows == model.history_
    assert lengths[0] < lengths[len(lengths) // 2] < lengths[-1]
    model.fit(*moons, validation_data=moons)
    assert history.rows == model.history_  # of the second only


def test_columns_that_only_some_rows_have_are_empty_in_the_others(tmp_path):
    write_history(tmp_path / "h.csv", [{"step": 1}, {"step": 2, "validation_loss": 0.5}])
    assert (tmp_path / "h.csv").read_text() == "step,validation_loss\n1,\n2,0.5\n"


def test_the_bar_shows_stage_maps_score_and_time_and_goes_away(moons):
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=120, color_system=None)
    shown = []
    bar = ProgressBar(console)

    def look(state):
        task = bar._bar.tasks[0]
        shown.append((task.description, task.completed, task.fields["note"]))

    fit(moons, bar, look)
    assert shown[-1][:2] == ("training, all 3 maps", 60)
    assert shown[-1][2].startswith("validation ")
    assert bar._bar is None
    assert "training" in out.getvalue()


@pytest.fixture
def short_distillation(monkeypatch):
    """A warm start in 250 steps, looked at after 0, 100 and 200 of them."""
    monkeypatch.setattr(graph, "N_STEPS", 250)


def test_a_warm_start_tells_how_far_it_is(moons, short_distillation, capsys):
    heard = []

    class Ear:
        def prepare(self, *what):
            heard.append(what)

        def __call__(self, state):
            heard.append("training")

    fit(moons, Ear(), pretraining="graph-laplacian", verbose=1)
    before = heard[: heard.index("training")]
    begun, ended, *steps = before
    assert [begun, ended] == [("neighbourhood graph", done, 1) for done in (0, 1)]
    assert steps == [("maps that follow the graph", done, 250) for done in (0, 100, 200, 250)]
    assert capsys.readouterr().out.splitlines()[:3] == [
        "neighbourhood graph",
        "maps that follow the graph: 250 steps",
        "training: at most 60 steps",
    ]


def test_a_graph_without_labels_is_told_of_too(moons, capsys):
    PIEFSTransformer(**flat(supervised=False, verbose=1, **SMALL)).fit(moons[0])
    assert "neighbourhood graph\n" in capsys.readouterr().out


def test_the_bar_shows_what_comes_before_training(moons, short_distillation):
    bar = ProgressBar(Console(file=io.StringIO(), force_terminal=True))
    shown = []

    class Eye:
        def prepare(self, *_):
            task = bar._bar.tasks[0]
            shown.append((task.description, task.completed, task.total))

        def __call__(self, state):
            pass

    fit(moons, bar, Eye(), pretraining="graph-laplacian")
    assert shown[0] == ("neighbourhood graph", 0, 1)
    assert shown[-1] == ("maps that follow the graph", 250, 250)


def test_the_bar_goes_away_when_a_warm_start_fails(moons):
    bar = ProgressBar(Console(file=io.StringIO(), force_terminal=True))

    class Failing:
        def prepare(self, *_):
            raise RuntimeError("on purpose")

        def __call__(self, state):
            pass

    with pytest.raises(RuntimeError, match="on purpose"):
        fit(moons, bar, Failing(), pretraining="graph-laplacian")
    assert bar._bar is None


def test_the_bar_is_quiet_away_from_a_terminal(moons, capsys):
    fit(moons, ProgressBar())
    assert capsys.readouterr().out == ""


def test_the_bar_goes_away_when_a_fit_fails(moons):
    bar = ProgressBar(Console(file=io.StringIO(), force_terminal=True))

    def fail(state):
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        fit(moons, bar, fail)
    assert bar._bar is None


def test_the_time_left_follows_from_the_pace(monkeypatch):
    now = iter([0.0, 10.0, 20.0])
    monkeypatch.setattr("piefs.training.progress.time.monotonic", lambda: next(now))
    pace = ProgressPrinter()
    assert pace._time_left(10, 100) == ""  # compilation is no pace
    assert pace._time_left(20, 100) == "; about 80 s left"
    assert pace._time_left(100, 100) == ""
    assert [in_words(s) for s in (5, 600, 7200)] == ["5 s", "10 min", "2.0 h"]


def test_verbose_tells_the_time_left_once_for_all_maps_at_once(moons, capsys):
    fit(moons, verbose=1, log_every=5)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "training: at most 60 steps"
    assert len(lines) == 3
    assert lines[1].startswith("  step 10")
    assert "validation accuracy" in lines[1]
    assert lines[1].endswith("left")
    assert lines[2].startswith("all 3 maps: Gram error")


def test_checkpoints_are_here_too(moons, tmp_path):
    fit(moons, Checkpoint(tmp_path / "run.ckpt", every_seconds=0))
    assert (tmp_path / "run.ckpt").is_file()


@pytest.mark.slow
def test_callbacks_do_not_import_what_they_do_not_use():
    code = (
        "import sys; from piefs.callbacks import *; ProgressPrinter(), ProgressBar(); "
        "print(sorted({'rich', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_bar_without_rich_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(InputError, match=r"pip install 'piefs-learn\[app\]'"):
        ProgressBar().prepare("neighbourhood graph", 0, 1)


# --- scikit-learn's own callbacks ----------------------------------------------------------------

sklearn_callback = pytest.importorskip(
    "sklearn.callback", reason="scikit-learn has callbacks from 1.9 on"
)


class Listener:
    """A callback of scikit-learn that notes what it hears, and may ask to stop."""

    def __init__(self, stop_after=None):
        self.stop_after, self.tasks, self.scores = stop_after, [], []

    def setup(self, estimator, context):
        self.tasks.append("setup")

    def teardown(self, estimator, context):
        self.tasks.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.tasks.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.tasks.append(f"end {context.task_name}")
        if fitted_estimator is not None:
            self.scores.append(fitted_estimator.score(X, y))
        return context.task_name == self.stop_after


def test_callbacks_of_scikit_learn_hear_of_the_fit_its_stages_and_intervals(moons):
    X, y = moons
    listener = Listener()
    model = PIEFSClassifier(**flat(**SMALL)).set_callbacks(listener).fit(X, np.array(["a", "b"])[y])
    intervals = [f"{what} step {n}" for n in (20, 40, 60) for what in ("begin", "end")]
    inner = ["begin fit", "begin training", *intervals, "end training", "end fit"]
    assert listener.tasks == ["setup", *inner, "teardown"]
    assert len(listener.scores) == 4
    assert listener.scores[-1] == listener.scores[-2] == model.score(X, np.array(["a", "b"])[y])


def test_callbacks_of_scikit_learn_can_end_a_run(moons):
    model = (
        PIEFSClassifier(**flat(**SMALL)).set_callbacks(Listener(stop_after="step 20")).fit(*moons)
    )
    assert model.n_iter_ == 20
    sequential = PIEFSClassifier(**flat(**SMALL, schedule="sequential"))
    model = sequential.set_callbacks(Listener(stop_after="step 80")).fit(*moons)
    assert model.n_components_ == 2


@pytest.mark.slow
def test_the_progress_bar_of_scikit_learn_works_on_every_estimator(moons, capsys):
    X, y = moons
    for estimator in (PIEFSClassifier, PIEFSRegressor, PIEFSTransformer):
        bar = sklearn_callback.ProgressBar()
        estimator(**flat(**SMALL)).set_callbacks(bar).fit(X, y)
        assert estimator.__name__ in capsys.readouterr().out


def test_the_scoring_monitor_of_scikit_learn_scores_each_interval(moons):
    monitor = sklearn_callback.ScoringMonitor(scoring="accuracy")
    PIEFSClassifier(**flat(**SMALL)).set_callbacks(monitor).fit(*moons)
    scores = [row["accuracy"] for row in monitor.get_logs().data if "accuracy" in row]
    assert len(scores) >= 4
    assert all(0 <= score <= 1 for score in scores)


@pytest.mark.slow
def test_an_older_scikit_learn_without_callbacks_does():
    code = (
        "import sys, sklearn.linear_model, sklearn.model_selection\n"
        "sys.modules['sklearn.callback'] = None\n"
        "from piefs import PIEFSClassifier\n"
        "assert not hasattr(PIEFSClassifier, 'set_callbacks')\n"
        "from piefs.estimators.scikit import with_callbacks\n"
        "assert with_callbacks(len) is len\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_clone_in_cross_validation_keeps_callbacks_apart(moons):
    history = History()
    scores = cross_val_score(PIEFSClassifier(**flat(**SMALL, callbacks=[history])), *moons, cv=2)
    assert len(scores) == 2
    assert history.rows == []  # clones have callbacks of their own
