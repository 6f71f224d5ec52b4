"""What the README tells people to type works as written."""

import re
import shlex
from pathlib import Path

import pytest

from commands import piefs
from pages import blocks, commands, train_briefly

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")


def test_readme_is_short():
    assert len(TEXT.splitlines()) <= 110


@pytest.mark.slow
def test_python_example_runs_and_scores_well(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = blocks(README, "python")
    exec(compile(example, "README.md", "exec"), {})
    accuracy = float(capsys.readouterr().out.splitlines()[0])
    assert accuracy > 0.99


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_session_with_a_table_runs_as_shown(tmp_path, monkeypatch):
    train_briefly(monkeypatch)
    for name in ("customers.csv", "new.csv"):
        rows = [f"C{i},{i % 7},{'' if i == 5 else i % 3},{'yn'[i % 7 > 3]}" for i in range(60)]
        (tmp_path / name).write_text("\n".join(["customer,visits,calls,churn", *rows]))
    (session,) = blocks(README, "console")
    for line in session.splitlines():
        _, *arguments = shlex.split(line.removeprefix("$ "))
        if arguments[0] == "fit":
            arguments += ["--steps", "20", "-k", "2"]
        done = piefs(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "predictions.csv").read_text().startswith("customer,prediction,p(")
    assert (tmp_path / "churn.onnx").is_file()


def test_make_targets_exist():
    targets = [c.split()[1] for c in commands(README) if c.startswith("make")]
    assert targets == ["demo", "test"]
    makefile = (ROOT / "Makefile").read_text()
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_pictures_and_links_exist():
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", TEXT):
        assert (ROOT / picture).stat().st_size > 10_000
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert (ROOT / target).is_file(), target
