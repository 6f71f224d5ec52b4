import json
import shutil
from pathlib import Path

import pytest

from commands import piefs

CELL = "two-moons/piefs-off/supervised/paper/0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The pictures of the plane, the whole way on tiny budgets."""
    folder = tmp_path_factory.mktemp("reproduce")
    done = piefs("reproduce", "figure-maps", "--quick", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "2 cells, 0 of them done" in done.stdout
    assert "planned runs are done" in done.stdout
    assert "report.html" in done.stdout
    return folder


def test_records_and_report_are_left(folder):
    results = folder / "results" / "quick"
    assert (results / "records" / CELL / "metrics.json").is_file()
    assert (results / "figures" / "maps.png").stat().st_size > 10_000
    for name in ("report.html", "README.md", "summary.csv"):
        assert (results / name).is_file()


def test_a_second_call_does_only_what_is_missing(folder):
    again = folder / "again"
    shutil.copytree(folder / "results", again / "results")
    record = again / "results" / "quick" / "records" / CELL / "metrics.json"
    before = record.stat().st_mtime_ns
    missing = Path(str(record).replace("two-moons", "circles"))
    shutil.rmtree(missing.parent)
    done = piefs("reproduce", "figure-maps", "--quick", cwd=again)
    assert "2 cells, 1 of them done" in done.stdout
    assert record.stat().st_mtime_ns == before
    assert missing.exists()


def test_a_cell_can_be_shown(folder):
    done = piefs("reproduce", "--show", CELL, "--out", "results/quick", cwd=folder)
    document, command = done.stdout.split("\n\n")
    assert json.loads(document)["config"]["seed"] == 0
    assert f"piefs.paper.work {CELL}" in command


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["table-mian"], "no item 'table-mian'; there are table-main"),
        (["--dataset", "minst"], "no data set 'minst'; there are two-moons"),
        (["--show", "mnist"], "names are dataset/method/mode/variant/seed"),
        (["--show", "mnist/piefs-off/supervised/paper/0"], "has no record in"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(arguments, reason, tmp_path):
    done = piefs("reproduce", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
    assert not any(tmp_path.iterdir())
