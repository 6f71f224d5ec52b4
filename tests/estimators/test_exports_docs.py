"""The page on exports: its code runs as written, its figures are what was measured."""

import shlex
import subprocess
import sys

import pandas as pd
import pytest

from commands import piefs
from pages import ROOT, commands, run_python, train_briefly

PAGE = ROOT / "docs" / "exports.md"
sys.path.insert(0, str(ROOT))

from lab.benchmarks.exports import CLOSE, OPEN, table  # noqa: E402
from lab.benchmarks.results import RESULTS  # noqa: E402

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.mark.slow
def test_the_code_of_the_page_runs_and_its_parts_agree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    train_briefly(monkeypatch)
    names = run_python(PAGE)
    assert abs(names["coordinates"] - names["phi"]).max() < 1e-5
    assert abs(names["probabilities"] - names["shares"]).max() < 1e-5
    assert (names["label"] == names["species"]).all()
    assert names["accuracy"] > 0.5
    assert isinstance(names["coordinates_frame"], pd.DataFrame)


@pytest.mark.slow
def test_the_commands_of_the_page_run(tmp_path):
    rows = [f"{i % 7},{i % 3},{'yn'[i % 7 > 3]}" for i in range(60)]
    (tmp_path / "new.csv").write_text("\n".join(["visits,calls,churn", *rows]))
    fit = ["fit", "new.csv", "--target", "churn", "-k", "2", "--steps", "5"]
    assert piefs(*fit, "--out", "runs/churn", cwd=tmp_path).returncode == 0
    for line in commands(PAGE):
        program, *arguments = shlex.split(line)
        if program == "piefs":
            assert piefs(*arguments, cwd=tmp_path).returncode == 0
        else:
            subprocess.run([sys.executable, *arguments], cwd=tmp_path, check=True)
    assert (tmp_path / "churn.onnx").is_file()


def test_the_differences_on_the_page_are_those_measured():
    found = RESULTS["exports"]
    assert f"{OPEN}{table(found)}{CLOSE}" in PAGE.read_text()
    single = [case for case in found["cases"] if "double" not in case["name"]]
    for case in single:
        for runtime in ("onnxruntime", "numpy"):
            assert case[runtime]["prediction"] < 1e-5
            assert case[runtime]["coordinates"] < 1e-6 * case["largest_coordinate"]
