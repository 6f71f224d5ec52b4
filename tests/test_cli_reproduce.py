import io
import json
import shlex
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from commands import piefs
from pages import ROOT, commands
from piefs.cli.reproduce import Display
from piefs.paper.cells import Cell
from piefs.paper.progress import Progress

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


def test_a_second_call_makes_what_is_missing_and_makes_it_the_same(folder):
    again = folder / "again"
    shutil.copytree(folder / "results", again / "results")
    record = again / "results" / "quick" / "records" / CELL / "metrics.json"
    before = record.stat().st_mtime_ns
    missing = Path(str(record).replace("two-moons", "circles"))
    first = json.loads(missing.read_text())
    shutil.rmtree(missing.parent)
    by_name = CELL.replace("two-moons", "circles")
    done = piefs("reproduce", CELL, by_name, "--quick", cwd=again)
    assert "2 cells, 1 of them done" in done.stdout
    assert record.stat().st_mtime_ns == before
    second = json.loads(missing.read_text())
    assert second["accuracy"] == first["accuracy"]
    assert second["energies"] == first["energies"]


def test_a_cell_can_be_shown(folder):
    done = piefs("reproduce", "--quick", "--show", CELL, cwd=folder)
    metrics = json.loads((folder / "results/quick/records" / CELL / "metrics.json").read_text())
    lines = [" ".join(line.replace("│", " ").split()) for line in done.stdout.splitlines()]
    accuracies = (metrics["accuracy"][split] for split in ("train", "validation", "test"))
    assert "accuracy " + " ".join(f"{value:.4f}" for value in accuracies) in lines
    assert "the paper's accuracy, test rows: 99.87 ± 0.00 %" in lines
    assert "n_components 3" in lines
    assert any(f"jax {metrics['versions']['jax']}" in line for line in lines)
    assert lines[-1] == f"Make it again: piefs reproduce {CELL} --out DIR"


def test_all_that_is_on_record_of_a_cell_is_shown_as_json(folder):
    done = piefs("reproduce", "--show", CELL, "--json", "--out", "results/quick", cwd=folder)
    record = folder / "results" / "quick" / "records" / CELL / "metrics.json"
    assert json.loads(done.stdout) == json.loads(record.read_text())


def test_the_display_shows_what_is_done_running_and_left():
    forest = CELL.replace("piefs-off", "random-forest")
    progress = Progress(dict(zip(map(Cell.parse, (CELL, forest)), (5400.0, 600.0), strict=True)))
    display = Display()
    display.watch(progress)
    progress.done.append(Cell.parse(forest))
    progress.running[Cell.parse(CELL)] = progress.clock()
    console = Console(width=80, file=io.StringIO())
    console.print(display)
    line, running = console.file.getvalue().splitlines()
    assert line.strip().endswith("1 of 2 cells  about 30 min left")
    assert running == f"  {CELL}"


def test_data_that_are_not_here_are_named_once_and_their_cells_left_out(tmp_path, monkeypatch):
    begun = []

    def run_grid(cells, *_, **__):
        begun.extend(cells)
        return Progress(dict.fromkeys(cells, 1.0))

    monkeypatch.setattr("piefs.cli.reproduce.run_grid", run_grid)
    items = ("table-batch", "figure-maps")
    done = piefs("reproduce", *items, "--quick", "--data-dir", "nowhere", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert said.count("data set 'mnist' not found: run `piefs data fetch mnist`") == 1
    assert "left out 5 cells" in said
    assert {cell.dataset for cell in begun} == {"two-moons", "circles"}


@pytest.mark.parametrize("command", commands(ROOT / "docs" / "paper.md"))
def test_commands_of_the_page_ask_for_runs_that_there_are(command, tmp_path):
    """They take days, so the report is all that is made; the record shown is a real one."""
    record = "mnist/piefs-off/supervised/paper/0"
    shutil.copytree(ROOT / "results/records" / record, tmp_path / "results/records" / record)
    _, *arguments = shlex.split(command)
    done = piefs(*arguments, *([] if "--show" in command else ["--report-only"]), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert record in done.stdout or "planned runs are done" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["table-mian"], "no item 'table-mian'; there are table-main"),
        (["--dataset", "minst"], "no data set 'minst'; there are two-moons"),
        (["--show", "mnist"], "names are dataset/method/mode/variant/seed"),
        (["--show", CELL], f"has no record in results; make it with `piefs reproduce {CELL}`"),
        (["--json"], "--json goes with --show"),
        (["table-batch", "--data-dir", "nowhere"], "data set 'mnist' not found: run `piefs data"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(arguments, reason, tmp_path):
    done = piefs("reproduce", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
    assert not any(tmp_path.iterdir())
