"""The built wheel works in empty environments: plain from Python, with [app] as a command too."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
PLAIN = """
import importlib.util, sys
import piefs
from sklearn.datasets import load_iris

extra = ("typer", "rich", "matplotlib", "pyarrow", "platformdirs", "requests", "filelock", "jinja2")
assert not any(importlib.util.find_spec(name) for name in extra)
assert "jax" not in sys.modules
X, y = load_iris(return_X_y=True)
model = piefs.PIEFSClassifier(n_components=3, steps_per_component=60, random_state=0).fit(X, y)
model.save("model")
print(piefs.__version__, piefs.load("model").score(X, y))
"""


def call(*command, **keywords):
    command = [str(part) for part in command]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=ENVIRONMENT, **keywords
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")  # a copy, so that no old build is packed as well
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    built = call(sys.executable, "-m", "build", "--wheel", cwd=folder)
    if built.returncode and "Could not find a version" in built.stdout + built.stderr:
        pytest.skip("no package index can be reached, so a wheel cannot be built in isolation")
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = folder.glob("dist/*.whl")
    return wheel


def install(environment, requirement):
    done = call(
        *(sys.executable, "-m", "pip", "--python", environment / "bin/python", "install"),
        *("--quiet", "--no-compile", "--constraint", ROOT / "constraints.txt", requirement),
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """An environment with the plain wheel; ours installs into it, which is quicker."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    install(folder, wheel)
    return folder


def test_plain_wheel_fits_predicts_and_keeps_a_model(environment, tmp_path):
    done = call(environment / "bin/python", "-c", PLAIN, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    version, accuracy = done.stdout.split()
    assert version == "0.1.0"
    assert float(accuracy) > 0.9


def test_command_without_the_extra_says_what_to_install(environment, tmp_path):
    done = call(environment / "bin/piefs", "--version", cwd=tmp_path)
    assert done.returncode == 2
    assert "pip install 'piefs-learn[app]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_command_with_the_extra_fits_draws_and_reports(wheel, environment, tmp_path):
    install(environment, f"{wheel}[app]")
    assert call(environment / "bin/piefs", "--version").stdout == "piefs 0.1.0\n"
    fit = ("fit", "two-moons", "-k", "2", "--steps", "50", "--out", "run")
    done = call(environment / "bin/piefs", *fit, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "accuracy" in done.stdout
    assert len(list((tmp_path / "run/figures").glob("*.png"))) > 5
    assert (tmp_path / "run/report.html").is_file()
