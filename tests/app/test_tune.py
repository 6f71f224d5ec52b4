"""A search does what is missing, keeps what is done, and prefers the defaults in doubt."""

import json
import sys

import numpy as np
import pytest

from commands import piefs
from piefs import PIEFSClassifier, tune
from piefs.app import search
from piefs.app.search import CHOICES, fitted, open_to_choice, tuning_data
from piefs.data.files import held
from piefs.errors import InputError

TINY = {"hidden": (8,), "n_components": 2, "activation": "silu", "metric": "off"}
TINY |= {"steps_per_component": 90, "early_stopping": False, "batch_size": 64}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    return x, (x[:, 0] + x[:, 1] > 0).astype(int)


@pytest.fixture
def fits(monkeypatch):
    """Fits whose losses by keywords can be given; they are listed as they are asked for.

    The loss of the defaults is 0.7 unless it is given.
    """
    asked = []

    def losses(keywords):
        return 0.7

    def fit(data, keywords):
        asked.append(keywords)
        loss = fit.losses(keywords)
        record = {"keywords": keywords, "seconds": 1.0, "loss": loss}
        rows = [loss or 0.0] * len(data.validation[0])
        return record | {"losses_error": 0.01, "score": 0.5, "row_losses": rows, "error": "bad"}

    fit.losses, fit.asked = losses, asked
    monkeypatch.setattr(search, "fitted", fit)
    return fit


def by_settings(keywords):
    """Another loss for every candidate; those of the defaults are the worst."""
    return 0.5 + len(json.dumps(keywords)) % 17 / 100 if keywords else 0.7


def test_candidates_differ_from_the_defaults_in_what_is_open_and_can_be_fitted(table, fits):
    tuned = tune(*table, n_trials=30, fixed={"metric": "off"})
    drawn = fits.asked[1:]
    assert 20 < len(drawn) <= 29  # equal ones are fitted once
    for keywords in drawn:
        assert "metric" not in keywords
        assert 0 < len(keywords) < len(CHOICES)
        PIEFSClassifier(**keywords).check_settings(1000)
    assert tuned.keywords == {"metric": "off"}


@pytest.mark.parametrize("fixed", [{"solver": "sequential"}, {"preset": "paper"}])
def test_only_what_the_solver_uses_is_tried(fixed):
    assert "smoothness" not in open_to_choice(fixed)
    assert "smoothness" in open_to_choice({})
    assert open_to_choice({"solver": "eigen"}) == ["n_components", "metric"]
    assert open_to_choice(dict.fromkeys(CHOICES, 1)) == []


def test_the_best_wins(table, fits):
    fits.losses = by_settings
    tuned = tune(*table, n_trials=20)
    assert fits.asked[0] == {}  # the defaults
    assert 15 < len(fits.asked) <= 20
    assert tuned.keywords == min(fits.asked, key=by_settings)
    assert tuned.beats_defaults
    assert tuned.gain == pytest.approx(0.7 - tuned.records[0]["loss"])
    losses = [record["loss"] for record in tuned.records]
    assert losses == sorted(losses)


def test_jobs_beside_each_other_find_settings_too(table, tmp_path):
    tuned = tune(*table, n_trials=3, n_jobs=2, fixed={"solver": "eigen"}, out=tmp_path)
    assert len(tuned.records) == len((tmp_path / "trials.jsonl").read_text().splitlines()) > 1
    assert tuned.keywords["solver"] == "eigen"


def test_the_defaults_win_ties(table, fits):
    tuned = tune(*table, n_trials=4)
    assert not tuned.beats_defaults
    assert tuned.keywords == {}


def test_a_gain_within_its_standard_error_by_rows_is_none(table, fits, monkeypatch):
    def noisy(data, keywords):
        record = fits(data, keywords)
        rows = np.full(30, 0.7)
        rows[0] -= 0.3 * bool(keywords)  # two rows decide
        rows[1] += 0.1 * bool(keywords)
        return record | {"row_losses": rows.tolist(), "loss": float(rows.mean())}

    monkeypatch.setattr(search, "fitted", noisy)
    tuned = tune(*table, n_trials=4)
    assert 0 < tuned.gain < tuned.gain_error
    assert not tuned.beats_defaults
    assert tuned.keywords == {}


def test_settings_that_cannot_be_fitted_drop_out(table, fits):
    fits.losses = lambda keywords: None if keywords else 0.7
    assert tune(*table, n_trials=4).keywords == {}
    fits.losses = lambda keywords: None
    with pytest.raises(InputError, match="no settings could be fitted: bad"):
        tune(*table, n_trials=2)


def test_a_fit_that_diverges_is_a_record_with_the_reason(table):
    data = tuning_data(*table, None, None, TINY)
    failed = fitted(data, {"learning_rate": 1e4})
    assert failed["loss"] is None
    assert "learning_rate" in failed["error"]


def test_a_search_continues_where_it_was_cut_off(table, tmp_path, fits, monkeypatch):
    fits.losses = by_settings

    def cut_off(*arguments):
        if len(fits.asked) == 5:
            raise KeyboardInterrupt
        return fits(*arguments)

    monkeypatch.setattr(search, "fitted", cut_off)
    with pytest.raises(KeyboardInterrupt):
        tune(*table, n_trials=8, out=tmp_path)
    records = tmp_path / "trials.jsonl"
    assert len(records.read_text().splitlines()) == 5
    assert not (tmp_path / "best.json").exists()
    with records.open("a") as file:
        file.write('{"keywords": {"smooth')  # killed while it wrote
    monkeypatch.setattr(search, "fitted", fits)
    first = tune(*table, n_trials=8, out=tmp_path)
    n_fits = len(fits.asked)
    assert len({json.dumps(asked) for asked in fits.asked}) == n_fits  # nothing twice
    assert tune(*table, n_trials=8, out=tmp_path) == first
    assert len(fits.asked) == n_fits == len(records.read_text().splitlines())
    assert json.loads((tmp_path / "best.json").read_text()) == json.loads(
        json.dumps(first.keywords)
    )
    with pytest.raises(InputError, match="another search"):
        tune(*table, n_trials=8, out=tmp_path, seed=1)
    with pytest.raises(InputError, match="another search"):
        tune(table[0] + 1, table[1], n_trials=8, out=tmp_path)


@pytest.mark.parametrize(
    "spoilt", ["{", "[]", '{"keywords": {}}', '{"keywords": [], "loss": null}']
)
def test_damaged_records_are_refused_with_what_to_do(table, tmp_path, fits, spoilt):
    tune(*table, n_trials=2, out=tmp_path)
    with (tmp_path / "trials.jsonl").open("a") as file:
        file.write(spoilt + "\n")
    with pytest.raises(InputError, match=r"trials\.jsonl is damaged .*remove it"):
        tune(*table, n_trials=2, out=tmp_path)


def test_a_record_that_was_changed_is_refused(table, tmp_path, fits):
    tune(*table, n_trials=2, out=tmp_path)
    records = tmp_path / "trials.jsonl"
    records.write_text(records.read_text().replace('"loss": 0.7', '"loss": 0.1'))
    with pytest.raises(InputError, match=r"trials\.jsonl is damaged or of another search"):
        tune(*table, n_trials=2, out=tmp_path)


def test_a_second_search_in_the_same_folder_is_refused_while_the_first_writes(table, tmp_path):
    with held(tmp_path), pytest.raises(InputError, match=r"process .* is writing to"):
        tune(*table, out=tmp_path, n_trials=1)
    assert not list(tmp_path.iterdir())


def test_a_budget_ends_the_search(table, fits, monkeypatch):
    now = [0.0]

    def slow(data, keywords):
        now[0] += 10
        return fits(data, keywords)

    told = []
    monkeypatch.setattr(search, "fitted", slow)
    monkeypatch.setattr(search.time, "monotonic", lambda: now[0])
    tune(*table, budget_minutes=1, tell=lambda *arguments: told.append(arguments))
    assert 60 <= now[0] <= 60 + 10
    assert told[0] == ("seconds", 10, 60)
    assert told[-1] == ("seconds", 60, 60)
    fits.asked.clear()
    tune(*table, budget_minutes=1e-3)
    assert fits.asked == [{}]  # the defaults, come what may


def test_bad_budgets_and_tasks_are_refused(table):
    for keywords in ({"n_trials": 0}, {"budget_minutes": 0}, {"task": "unsupervised"}):
        with pytest.raises(InputError):
            tune(*table, **keywords)


def test_without_optuna_the_error_says_what_to_install(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match=r"pip install 'piefs-learn\[tune\]'"):
        tune(*table, n_trials=2)


def test_a_real_search_gives_keywords_that_fit(table, tmp_path):
    told = []
    tuned = tune(*table, n_trials=3, fixed=TINY, out=tmp_path, tell=lambda *args: told.append(args))
    model = PIEFSClassifier(**tuned.keywords, random_state=0).fit(*table)
    assert model.score(*table) > 0.8
    assert told == [("fits", done, 3) for done in (1, 2, 3)]


def test_numbers_are_judged_by_squared_errors_in_units_of_the_variance(table):
    tuned = tune(table[0], table[0][:, 0] * 1.5, n_trials=1, fixed=TINY)
    record = tuned.records[0]
    assert record["score"] > 0.3  # R²
    assert record["loss"] == pytest.approx(1 - record["score"], abs=0.2)


def test_the_command_never_looks_at_test_rows_and_says_how_to_fit(
    table, tmp_path, fits, monkeypatch
):
    rows = np.column_stack([table[0], table[1], np.arange(200)])
    path = tmp_path / "t.csv"
    np.savetxt(path, rows, delimiter=",", header="a,b,c,y,row", comments="")
    fits.losses = lambda keywords: 0.4 if keywords else 0.5
    seen = []

    def look(data, *arguments):
        seen.append(len(data.train[0]) + len(data.validation[0]))
        return fits(data, *arguments)

    monkeypatch.setattr(search, "fitted", look)
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
    assert summary["n_trials"] == 4
    assert piefs("tune", *arguments[:-2], "--budget", 0).returncode == 2


def test_the_command_to_fit_with_repeats_the_options_that_cut_and_read_the_table(
    table, tmp_path, fits
):
    rows = np.column_stack([table[0], np.arange(200) % 9])
    path = tmp_path / "t.csv"
    np.savetxt(path, rows, delimiter=",", header="a,b,c,y", comments="")
    options = "--target y --task regression --drop a --drop b --split-seed 3"
    done = piefs("tune", path, *options.split(), "--trials", 1, "--out", tmp_path / "t", "--json")
    assert json.loads(done.stdout)["command"] == f"piefs fit {path} {options}"
