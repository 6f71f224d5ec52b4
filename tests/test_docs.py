"""The site: every command and block of code on its pages runs; it builds without a warning."""

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from unittest import mock

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

import piefs as library
from commands import piefs
from pages import ROOT, blocks, commands, run_python, train_briefly
from piefs import data, errors, operators, plot
from piefs.report import relevance

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
EXAMPLES = sorted((ROOT / "examples").rglob("plot_*.py"))
BIG_EXAMPLES = {"plot_pulsars": "htru2", "plot_image_embeddings": "cifar10-embedding"}
TESTED_ELSEWHERE = {
    *("operators.md", "exports.md", "watching.md", "choosing.md", "cluster.md", "paper.md")
}
"""With what they find: below, in test_parallel_cluster.py and in reproduction/tests."""


@pytest.fixture(scope="module", autouse=True)
def no_windows():
    backend = matplotlib.get_backend()
    matplotlib.use("agg")
    yield
    plt.close("all")
    matplotlib.use(backend)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the tables that the pages speak of; training ends after a few steps there."""
    monkeypatch.chdir(tmp_path)
    train_briefly(monkeypatch)
    rng = np.random.default_rng(0)
    for name in ("customers.csv", "new.csv"):
        rows = [f"C{i},{i % 7},{'' if i == 5 else i % 3},{'yn'[i % 7 > 3]}" for i in range(60)]
        Path(name).write_text("\n".join(["customer,visits,calls,churn", *rows]))
    flowers = [f"{a:.2f},{b:.2f},{'ab'[int(a > b)]}" for a, b in rng.normal(size=(80, 2))]
    np.save("big.npy", np.column_stack([rng.normal(size=(80, 3)), np.arange(80) % 2]))
    Path("flowers.csv").write_text("\n".join(["petal,sepal,species", *flowers]))
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if blocks(p, "python") and p.name not in TESTED_ELSEWHERE],
    ids=lambda page: page.name,
)
def test_python_of_a_page_runs(page, here):
    run_python(page)


@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if p.name not in TESTED_ELSEWHERE and commands(p)],
    ids=lambda p: p.name,
)
def test_commands_of_a_page_run(page, here):
    for command in commands(page):
        program, *arguments = shlex.split(command)
        if program == "python":  # a program of the repository's
            subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, capture_output=True)
            continue
        if program != "piefs":
            assert program in ("make", "pip")
            continue
        if arguments[0] == "demo":  # the README's, tested there
            continue
        if arguments[0] == "fit" and page.name != "report.md":
            arguments.append("--no-report")
        done = piefs(*arguments, cwd=here)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def mlflow(monkeypatch):
    """Stands for MLflow, which brings sixty packages: it keeps what it is given."""
    module = mock.MagicMock(spec=["start_run", "log_params", "log_metrics"])
    monkeypatch.setitem(sys.modules, "mlflow", module)
    return module


def test_the_page_on_watching(mlflow, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = run_python(DOCS / "watching.md")
    assert len((tmp_path / "history.csv").read_text().splitlines()) == 1 + len(
        names["history"].rows
    )
    assert "1 of 4\n2 of 4" in capsys.readouterr().out
    steps = [call.kwargs["step"] for call in mlflow.log_metrics.call_args_list]
    assert steps == sorted(set(steps))
    assert mlflow.log_params.call_args.args[0]["n_components"] == "4"
    assert list((tmp_path / "curves").glob("events.out.tfevents.*"))


def test_the_page_on_choosing(tmp_path, monkeypatch):
    train_briefly(monkeypatch, 60)
    monkeypatch.chdir(tmp_path)
    names = run_python(DOCS / "choosing.md")
    assert names["model"].score(names["X"], names["y"]) > 0.6
    assert len(names["tuned"].records) >= 3


def test_the_commands_of_the_page_on_choosing(tmp_path, monkeypatch):
    train_briefly(monkeypatch)
    monkeypatch.setattr("piefs.app.search.MOST_TRIALS", 3)  # 30 minutes would allow many
    rows = [f"C{i},{i % 7},{'' if i == 5 else i % 3},{'yn'[i % 7 > 3]}" for i in range(60)]
    (tmp_path / "customers.csv").write_text("\n".join(["customer,visits,calls,churn", *rows]))
    for command in commands(DOCS / "choosing.md"):
        arguments = shlex.split(command)[1:]
        arguments += ["--no-report"] if arguments[0] == "fit" else []
        done = piefs(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs/tune/best.json").is_file()


def test_the_page_on_exports(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    train_briefly(monkeypatch)
    names = run_python(DOCS / "exports.md")
    assert abs(names["coordinates"] - names["phi"]).max() < 1e-5
    assert abs(names["probabilities"] - names["shares"]).max() < 1e-5
    assert (names["label"] == names["species"]).all()
    assert names["accuracy"] > 0.5
    assert isinstance(names["coordinates_frame"], pd.DataFrame)


def test_the_commands_of_the_page_on_exports(tmp_path):
    rows = [f"{i % 7},{i % 3},{'yn'[i % 7 > 3]}" for i in range(60)]
    (tmp_path / "new.csv").write_text("\n".join(["visits,calls,churn", *rows]))
    fit = ["fit", "new.csv", "--target", "churn", "-k", "2", "--steps", "5"]
    assert piefs(*fit, "--out", "runs/churn", cwd=tmp_path).returncode == 0
    for line in commands(DOCS / "exports.md"):
        program, *arguments = shlex.split(line)
        if program == "piefs":
            assert piefs(*arguments, cwd=tmp_path).returncode == 0
        else:
            subprocess.run([sys.executable, *arguments], cwd=tmp_path, check=True)
    assert (tmp_path / "churn.onnx").is_file()


def test_the_page_on_operators():
    names = run_python(DOCS / "operators.md")
    assert names["phi"].shape == (1, 4)
    assert names["slope"].shape == (1, 4, 2)
    assert np.all(names["solution"].error_bars < 0.05 * names["solution"].eigenvalues[-1])
    first, second, third = names["clusters"].eigenvalues
    assert abs(first) < 1e-6
    assert second < third / 2
    sides = np.corrcoef(names["side"][:, 0], names["clusters"](names["table"])[:, 1])[0, 1]
    assert abs(sides) > 0.9


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example, here):
    if dataset := BIG_EXAMPLES.get(example.stem):
        try:
            data.load(dataset)
        except errors.DataNotFoundError as missing:
            pytest.skip(f"needs data that are not here: {missing}")
    runpy.run_path(str(example))
    assert plt.get_fignums()
    plt.close("all")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, with the gallery's scripts shown and not run."""
    target = tmp_path_factory.mktemp("site")
    call = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-D", "plot_gallery=0"]
    done = subprocess.run(
        [*call, str(DOCS), str(target)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return target


def public_names():
    yield from (f"piefs.{name}" for name in library.__all__)
    for module in (data, operators, plot):
        yield from (f"{module.__name__}.{name}" for name in module.__all__)
    for module in (relevance, errors):
        for name, value in vars(module).items():
            is_own = getattr(value, "__module__", "") == module.__name__
            if is_own and not name.startswith("_") and callable(value):
                yield f"{module.__name__}.{name}"


def test_every_public_name_is_documented(site):
    page = (site / "api.html").read_text()
    documented = {
        name.split(".")[-1] for name in re.findall(r'id="(?:module-)?(piefs[\w.]*)"', page)
    }
    names = {name.split(".")[-1] for name in public_names()}
    assert {name for name in names - documented if not name.isupper()} == set()


def test_the_page_of_commands_names_them_all(site):
    page = (site / "commands.html").read_text()
    for command in ("fit", "predict", "export", "reproduce", "eigen", "data list"):
        assert f"piefs {command}" in re.sub(r"<[^>]+>", "", page)
