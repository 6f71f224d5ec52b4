"""Callbacks see a run, record it, and end it; a run that was ended leaves a model that works."""

import csv
import io
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console
from sklearn.model_selection import cross_val_score

from piefs import PIEFSClassifier, PIEFSTransformer, load
from piefs.callbacks import (
    Checkpoint,
    History,
    ProgressBar,
    ProgressPrinter,
    Stage,
)
from piefs.errors import InputError
from piefs.training import graph
from piefs.training.callbacks import in_words, write_history
from piefs.training.config import PAPER
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


def test_the_time_left_follows_from_the_pace(monkeypatch, capsys):
    now = iter([0.0, 10.0, 20.0])
    monkeypatch.setattr("piefs.training.callbacks.time.monotonic", lambda: next(now))
    pace = ProgressPrinter()
    pace.begin(Stage(PAPER))
    assert pace._time_left(10, 100) == ""  # compilation is no pace
    assert pace._time_left(20, 100) == "; about 80 s left"
    assert pace._time_left(100, 100) == ""
    assert [in_words(s) for s in (5, 600, 7200)] == ["5 s", "10 min", "2.0 h"]


def test_verbose_prints_each_tenth_and_the_time_left(moons, capsys):
    fit(moons, verbose=1, log_every=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "training: at most 60 steps"
    assert 3 <= len(lines) <= 11
    assert "all 3 maps: Gram error" in lines[1]
    assert "validation accuracy" in lines[1]
    assert lines[2].endswith("left")
    fit(moons, verbose=2, log_every=1)
    assert len(capsys.readouterr().out.splitlines()) >= len(lines)


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
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(InputError, match=r"pip install 'piefs-learn\[app\]'"):
        ProgressBar().prepare("neighbourhood graph", 0, 1)


def test_a_clone_in_cross_validation_keeps_callbacks_apart(moons):
    history = History()
    scores = cross_val_score(PIEFSClassifier(**flat(**SMALL, callbacks=[history])), *moons, cv=2)
    assert len(scores) == 2
    assert history.rows == []  # clones have callbacks of their own
