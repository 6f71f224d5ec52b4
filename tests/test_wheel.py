"""The built wheel works by itself, in an empty environment, outside the repository."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def call(*command, **keywords):
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **keywords
    )


def test_installed_wheel_fits_draws_and_reports(tmp_path):
    built = call(
        sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", ROOT, cwd=tmp_path
    )
    if built.returncode and "Could not find a version" in built.stdout + built.stderr:
        pytest.skip("no package index can be reached, so a wheel cannot be built in isolation")
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    venv.create(tmp_path / "env", with_pip=False)  # ours installs into it, which is quicker
    bin_folder = tmp_path / "env" / "bin"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    installed = call(
        *(sys.executable, "-m", "pip", "--python", bin_folder / "python", "install", "--quiet"),
        *("--no-compile", "--constraint", ROOT / "constraints.txt", wheel),
        env=environment,
    )
    assert installed.returncode == 0, installed.stderr
    fit = ("fit", "two-moons", "-k", "2", "--steps", "50", "--out", "run")
    done = call(bin_folder / "piefs", *fit, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert "accuracy" in done.stdout
    assert len(list((tmp_path / "run/figures").glob("*.png"))) == 6
    assert (tmp_path / "run/report.html").is_file()
