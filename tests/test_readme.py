"""What the README tells people to type works as written."""

import re
import shlex
from pathlib import Path

import pytest

from commands import piefs
from lab.experiments.report import insets, load_records, page
from pages import train_briefly
from reproduction.records import Records
from reproduction.report import contents, readme

pytestmark = pytest.mark.usefixtures("undrawn")

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def commands():
    lines = "\n".join(blocks("sh")).splitlines()
    return [line.split("#")[0].strip() for line in lines if line.strip()]


def test_python_example_runs_and_scores_well(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = blocks("python")
    exec(compile(example, "README.md", "exec"), {})
    accuracy = float(capsys.readouterr().out.splitlines()[0])
    assert accuracy > 0.99


@pytest.mark.parametrize(
    "command",
    [c for c in commands() if c.startswith("piefs") and c != "piefs demo"],  # test_wheel.py
)
def test_command_runs(command, tmp_path, monkeypatch):
    train_briefly(monkeypatch)
    _, *arguments = shlex.split(command)
    if arguments[0] == "fit":  # the budget does not matter here
        arguments += ["-k", "3", "--no-report"]
    done = piefs(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert arguments[0] == "data" or list(tmp_path.glob("runs/*/metrics.json"))


def test_a_table_of_ones_own_goes_the_way_the_readme_shows(tmp_path, monkeypatch):
    train_briefly(monkeypatch)
    for name in ("customers.csv", "new.csv"):
        rows = [f"C{i},{i % 7},{'' if i == 5 else i % 3},{'yn'[i % 7 > 3]}" for i in range(60)]
        (tmp_path / name).write_text("\n".join(["customer,visits,calls,churn", *rows]))
    (session,) = blocks("console")
    for line in session.splitlines():
        _, *arguments = shlex.split(line.removeprefix("$ "))
        if arguments[0] == "fit":
            arguments += ["--steps", "20", "-k", "2"]
        done = piefs(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "predictions.csv").read_text().startswith("customer,prediction,p(")


def test_make_targets_exist():
    targets = [c.split()[1] for c in commands() if c.startswith("make")]
    assert targets == ["demo", "test"]
    makefile = (ROOT / "Makefile").read_text()
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_every_module_is_on_the_map():
    modules = {
        path.name if path.is_file() else f"{path.name}/"
        for path in (ROOT / "src" / "piefs").iterdir()
        if not path.name.startswith("_") and path.name != "py.typed"
    }
    known_elsewhere = {"errors.py", "model.py"}
    assert {name for name in modules if name not in README} <= known_elsewhere


def test_pictures_exist():
    for path in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README):
        assert (ROOT / path).is_file()
        assert (ROOT / path).stat().st_size > 10_000


def test_tables_are_what_the_records_say(monkeypatch):
    monkeypatch.chdir(ROOT)
    records = load_records(ROOT / "results" / "beyond" / "records")
    for path, name, made in insets(records):
        text = (ROOT / path).read_text(encoding="utf-8")
        assert f"<!-- {name} -->\n{made}<!-- /{name} -->" in text
    assert page(records) == (ROOT / "results" / "beyond" / "README.md").read_text()
    strict = contents(Records("results/records"))
    assert readme(strict) == Path("results/README.md").read_text()
