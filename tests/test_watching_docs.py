"""The code of the pages on watching and choosing runs as written."""

import shlex
import sys
from unittest import mock

import pytest

from commands import piefs
from pages import ROOT, commands, run_python, train_briefly

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]


@pytest.fixture
def mlflow(monkeypatch):
    """Stands for MLflow, which brings sixty packages: it keeps what it is given."""
    module = mock.MagicMock(spec=["start_run", "log_params", "log_metrics"])
    monkeypatch.setitem(sys.modules, "mlflow", module)
    return module


def test_the_page_on_watching(mlflow, tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    monkeypatch.chdir(tmp_path)
    names = run_python(ROOT / "docs/watching.md")
    assert len((tmp_path / "history.csv").read_text().splitlines()) == 1 + len(
        names["history"].rows
    )
    assert "training: 1 of 4" in capsys.readouterr().out
    assert len(names["scores"]) > 1
    steps = [call.kwargs["step"] for call in mlflow.log_metrics.call_args_list]
    assert steps == sorted(set(steps))
    assert mlflow.log_params.call_args.args[0]["n_components"] == "4"
    assert list((tmp_path / "curves/training").glob("events.out.tfevents.*"))


def test_the_page_on_choosing(tmp_path, monkeypatch):
    train_briefly(monkeypatch, 60)
    monkeypatch.chdir(tmp_path)
    names = run_python(ROOT / "docs/choosing.md")
    assert names["model"].score(names["X"], names["y"]) > 0.6
    assert len(names["tuned"].records) >= 3


def test_the_commands_of_the_page_on_choosing(tmp_path, monkeypatch):
    train_briefly(monkeypatch)
    monkeypatch.setattr("piefs.app.search.MOST_TRIALS", 3)  # 30 minutes would allow many
    rows = [f"C{i},{i % 7},{'' if i == 5 else i % 3},{'yn'[i % 7 > 3]}" for i in range(60)]
    (tmp_path / "customers.csv").write_text("\n".join(["customer,visits,calls,churn", *rows]))
    for command in commands(ROOT / "docs/choosing.md"):
        arguments = shlex.split(command)[1:]
        arguments += ["--no-report"] if arguments[0] == "fit" else []
        done = piefs(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs/tune/best.json").is_file()
