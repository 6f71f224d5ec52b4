"""A search does what is missing, keeps what is done, and prefers the defaults in doubt."""

import json

import numpy as np
import pytest

from commands import piefs
from piefs import PIEFSClassifier, tune
from piefs.app.tuning import search
from piefs.app.tuning.candidates import SPACE, candidate, open_to_choice
from piefs.app.tuning.trials import Problem, run_trial
from piefs.data.folders import held
from piefs.errors import InputError

TINY = {"hidden": (8,), "n_components": 2, "activation": "silu", "metric": "off"}
TINY |= {"steps_per_component": 90, "early_stopping": False, "batch_size": 64}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    return x, (x[:, 0] + x[:, 1] > 0).astype(int)


def fake_trial(losses):
    """A trial whose losses by candidate are given; it counts how often it is called."""
    calls = []

    def trial(problem, keywords, share, seed):
        calls.append((keywords, share))
        loss = losses(keywords, share)
        record = {"keywords": keywords, "share": share, "seconds": 1.0, "loss": loss}
        rows = [loss or 0.0] * len(problem.validation[0])
        record |= {"losses_error": 0.01, "score": 0.5, "row_losses": rows}
        return record

    return trial, calls


def test_the_defaults_are_the_first_candidate_and_others_are_drawn_by_their_index():
    assert candidate(0, 0, {}) == {}
    assert candidate(3, 0, {}) == candidate(3, 0, {}) != candidate(4, 0, {})
    assert candidate(3, 0, {}) != candidate(3, 1, {})
    for index in range(1, 30):
        drawn = candidate(index, 0, {"metric": "off"})
        assert drawn["metric"] == "off"
        assert len(candidate(index, 0, {})) >= 1
        assert set(drawn) <= set(SPACE)


@pytest.mark.parametrize("fixed", [{"schedule": "sequential"}, {"preset": "paper"}])
def test_only_what_the_schedule_uses_is_drawn(fixed):
    for index in range(1, 30):
        drawn = candidate(index, 0, fixed)
        assert drawn.keys() > fixed.keys()
        PIEFSClassifier(**drawn).check_settings(1000)
    assert "smoothness" in open_to_choice({})
    assert candidate(1, 0, dict.fromkeys(SPACE, 1)) == dict.fromkeys(SPACE, 1)


def test_each_round_keeps_a_third_and_the_best_wins(table, monkeypatch):
    def loss(keywords, share):
        return 1.0 if not keywords else 0.5 + abs(hash(json.dumps(keywords))) % 100 / 1000

    trial, calls = fake_trial(loss)
    monkeypatch.setattr(search, "run_trial", trial)
    tuned = tune(*table, n_trials=10)
    shares = [round(share, 3) for _, share in calls]
    assert (shares.count(0.111), shares.count(0.333), shares.count(1.0)) == (9, 3, 1 + 1)
    assert tuned.beats_defaults
    assert tuned.keywords
    assert tuned.gain == pytest.approx(1.0 - tuned.records[0]["loss"])


def test_the_defaults_win_ties(table, monkeypatch):
    monkeypatch.setattr(search, "run_trial", fake_trial(lambda *_: 0.7)[0])
    tuned = tune(*table, n_trials=4)
    assert not tuned.beats_defaults
    assert tuned.keywords == {}


def test_settings_that_cannot_be_fitted_drop_out(table, monkeypatch):
    trial, _ = fake_trial(lambda keywords, share: None if keywords else 0.7)
    monkeypatch.setattr(search, "run_trial", trial)
    assert tune(*table, n_trials=4).keywords == {}
    problem = Problem("classification", table, table, standardize=True)
    failed = run_trial(problem, TINY | {"learning_rate": 1e4}, 1.0, 0)
    assert failed["loss"] is None
    assert "learning_rate" in failed["error"]


def test_a_search_goes_on_where_it_was_cut_off(table, tmp_path, monkeypatch):
    trial, calls = fake_trial(lambda keywords, share: 0.5 + 0.01 * len(keywords))

    def cut_off(*arguments):
        if len(calls) == 4:
            raise KeyboardInterrupt
        return trial(*arguments)

    monkeypatch.setattr(search, "run_trial", cut_off)
    with pytest.raises(KeyboardInterrupt):
        tune(*table, n_trials=6, out=tmp_path)
    assert len(list((tmp_path / "trials").iterdir())) == 4
    assert not (tmp_path / "best.json").exists()
    monkeypatch.setattr(search, "run_trial", trial)
    first = tune(*table, n_trials=6, out=tmp_path)
    n_calls = len(calls)
    assert n_calls == 1 + 5 + 1 + 1
    again = tune(*table, n_trials=6, out=tmp_path)
    assert len(calls) == n_calls
    assert json.dumps(again.keywords) == json.dumps(first.keywords)
    with pytest.raises(InputError, match="another seed"):
        tune(*table, n_trials=6, out=tmp_path, seed=1)
    with pytest.raises(InputError, match="another data"):
        tune(table[0] + 1, table[1], n_trials=6, out=tmp_path)


def test_a_second_search_in_the_same_folder_is_refused_while_the_first_writes(table, tmp_path):
    with held(tmp_path), pytest.raises(InputError, match=r"process .* is writing to"):
        tune(*table, out=tmp_path, n_trials=1)
    assert not list(tmp_path.iterdir())


def test_a_budget_decides_how_many_are_tried_and_ends_the_search(table, monkeypatch):
    now = [0.0]
    trial, calls = fake_trial(lambda keywords, share: 0.5)

    def slow(*arguments):
        now[0] += 10 * arguments[2]
        return trial(*arguments) | {"seconds": 10 * arguments[2]}

    monkeypatch.setattr(search, "run_trial", slow)
    monkeypatch.setattr(search.time, "monotonic", lambda: now[0])
    tune(*table, budget_minutes=1)
    assert (
        len({json.dumps(keywords) for keywords, _ in calls}) == 16
    )  # 50 s left, a third of 10 s each
    assert now[0] <= 60 + 10
    calls.clear()
    tune(*table, budget_minutes=1e-3)
    assert [share for _, share in calls] == [1.0]  # the defaults, come what may


def test_bad_budgets_and_tasks_are_refused(table):
    for keywords in ({"n_trials": 0}, {"budget_minutes": 0}, {"task": "unsupervised"}):
        with pytest.raises(InputError):
            tune(*table, **keywords)


def test_a_real_search_gives_keywords_that_fit(table, tmp_path):
    told = []
    tuned = tune(*table, n_trials=4, fixed=TINY, out=tmp_path, tell=lambda *args: told.append(args))
    model = PIEFSClassifier(**tuned.keywords, random_state=0).fit(*table)
    assert model.score(*table) > 0.8
    assert json.loads((tmp_path / "best.json").read_text()) == json.loads(
        json.dumps(tuned.keywords)
    )
    assert told[0] == ("the defaults", 0, 1)
    assert {stage for stage, _, _ in told} == {"the defaults"} | {
        f"round {i} of 3" for i in (1, 2, 3)
    }
    numbers = tune(table[0], table[0][:, 0] * 1.5, n_trials=1, fixed=TINY)
    assert numbers.records[0]["score"] > 0.3  # R²


def test_the_command_never_looks_at_test_rows_and_says_how_to_fit(table, tmp_path, monkeypatch):
    rows = np.column_stack([table[0], table[1], np.arange(200)])
    path = tmp_path / "t.csv"
    np.savetxt(path, rows, delimiter=",", header="a,b,c,y,row", comments="")
    seen = []
    trial, _ = fake_trial(lambda keywords, share: 0.4 if keywords else 0.5)

    def look(problem, *arguments):
        seen.append(len(problem.train[0]) + len(problem.validation[0]))
        return trial(problem, *arguments)

    monkeypatch.setattr(search, "run_trial", look)
    arguments = (path, "--target", "y", "--id", "row", "--trials", 4, "--out", tmp_path / "tuned")
    done = piefs("tune", *arguments)
    assert done.returncode == 0, done.stderr
    assert set(seen) == {170}  # of 200 rows, 30 are for the test
    assert "Better than the defaults" in done.stdout
    best = tmp_path / "tuned" / "best.json"
    assert f"piefs fit {path} --target y --id row --config {best}" in done.stdout.replace("\n", "")
    summary = json.loads(piefs("tune", *arguments, "--json").stdout)
    assert summary["beats_defaults"]
    assert summary["keywords"] == json.loads(best.read_text())
    assert piefs("tune", *arguments[:-2], "--budget", 0).returncode == 2
