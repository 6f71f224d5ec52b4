import time
from dataclasses import replace

import pytest

from piefs.app.clock import Clock, in_phases
from piefs.app.commands import _interrupted
from piefs.app.folder import RunFolder
from piefs.app.run import plan_in_words, run
from piefs.data import load
from piefs.training.config import Settings
from piefs.training.eigen import expected_seconds


@pytest.fixture
def now(monkeypatch):
    """The time that the clock reads, as a list of one number."""
    at = [100.0]
    monkeypatch.setattr("piefs.app.clock.time.monotonic", lambda: at[0])
    return at


def test_phases_add_up_to_all_the_time_since_the_beginning(now):
    clock, metrics = Clock(97.0), {"steps": 20}
    for phase, moment in (("reading", 101.0), ("fitting", 105.0), ("measuring", 106.0)):
        now[0] = moment
        clock.end(phase)
    now[0] = 108.0
    clock.told(metrics)
    assert metrics["phases"] == {"reading": 4, "fitting": 4, "measuring": 1, "drawing": 2}
    assert (metrics["seconds"], metrics["steps_per_second"]) == (11, 5)
    assert in_phases(metrics) == "11.0 s (reading 4.0, fitting 4.0, measuring 1.0, drawing 2.0)"


def test_what_was_told_stays(now):
    clock, metrics = Clock(), {"steps": 0}
    clock.end("fitting")
    clock.told(metrics, fitting=30.0)
    assert metrics["seconds"] == 30
    now[0] = 200.0
    clock.told(metrics)
    assert metrics["seconds"] == 30


def test_runs_of_earlier_versions_have_no_phases():
    assert in_phases({"seconds": 2.0}) == "2.0 s"


def test_a_run_tells_the_time_it_took(tmp_path):
    told, begun = [], time.monotonic()
    metrics = run(load("two-moons").head(200), tmp_path / "run", tell=told.append)
    assert metrics["seconds"] == pytest.approx(time.monotonic() - begun, rel=0.2)
    assert list(metrics["phases"]) == ["reading", "fitting", "measuring", "drawing"]
    assert told[0].startswith("In closed form (solver eigen): about 1 s to fit")
    page = (tmp_path / "run" / "report.html").read_text()
    assert f"{metrics['seconds']:.1f} s in all" in page


def test_networks_are_announced_by_their_steps():
    settings = replace(Settings.of(solver="nested"), steps_per_component=500)
    data = load("two-moons").head(50)
    assert plan_in_words(settings, data, report=True) == "500 steps of networks (solver nested)."


def test_more_rows_and_columns_take_longer():
    sizes = [(100, 5), (1_000, 5), (1_000, 50), (10_000, 50), (1_000_000, 50)]
    seconds = [expected_seconds(*size) for size in sizes]
    assert seconds == sorted(seconds)
    assert seconds[0] < 0.5
    assert 20 < expected_seconds(1_000_000, 20) < 120  # measured: 58


def test_ctrl_c_promises_to_continue_only_what_it_can(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path / "run")
    monkeypatch.setattr("piefs.app.folder", folder)
    fit = ["fit", "circles", "--force", "--out", "run"]
    assert _interrupted(fit) == "interrupted before there was anything to continue from"
    folder.path.mkdir()
    folder.checkpoint.touch()
    assert _interrupted(fit).endswith("continue with: piefs fit circles --out run --resume")
    assert "the same command continues" in _interrupted(["tune", "circles"])
