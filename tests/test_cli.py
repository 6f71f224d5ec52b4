"""The command line, as a user meets it: real processes, real folders."""

import json
import subprocess
import sys

import pytest

SMALL = ["-k", "2", "--steps", "20", "--batch-size", "64"]


def piefs(*arguments, cwd=None, env=None):
    command = [sys.executable, "-c", "from piefs.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, check=False)


def test_help_lists_the_commands_without_loading_the_engine():
    done = piefs("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout
    assert "fit" in done.stdout
    probe = "import sys, piefs.cli; print({'jax', 'sklearn', 'matplotlib'} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert loaded.stdout.strip() == "set()"


def test_fit_prints_a_table_and_writes_the_folder(tmp_path):
    done = piefs("fit", "two-moons", *SMALL, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "accuracy" in done.stdout
    assert "energy" in done.stdout
    assert (tmp_path / "run" / "metrics.json").is_file()


def test_json_output_is_the_metrics_file_and_nothing_else(tmp_path):
    done = piefs("fit", "circles", *SMALL, "--metric", "trotter", "--out", tmp_path, "--json")
    assert json.loads(done.stdout) == json.loads((tmp_path / "metrics.json").read_text())
    assert json.loads(done.stdout)["config"]["metric"] == "trotter"


def test_quiet_prints_nothing(tmp_path):
    done = piefs("fit", "two-moons", *SMALL, "--out", tmp_path, "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit", "three-moons"], "two-moons"),
        (["fit", "two-moons", "--metric", "round"], "trotter"),
        (["fit", "two-moons", "-k", "0"], "n_components"),
        (["fit", "mnist", "--data-dir", "nowhere"], "mnist.npz"),
        (["fit", "two-moons", "--preset", "slow"], "paper"),
    ],
)
def test_bad_input_is_one_line_with_exit_code_2_and_leaves_nothing(tmp_path, arguments, said):
    done = piefs(*arguments, "--out", tmp_path / "run", cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_debug_shows_the_traceback(tmp_path):
    done = piefs("fit", "three-moons", "--debug", "--out", tmp_path)
    assert "Traceback" in done.stderr
