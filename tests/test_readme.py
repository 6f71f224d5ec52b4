"""What the README tells people to type works as written."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def commands():
    lines = "\n".join(blocks("sh")).splitlines()
    return [line.split("#")[0].strip() for line in lines if line.strip()]


def test_python_example_runs_and_scores_well(capsys):
    (example,) = blocks("python")
    exec(compile(example, "README.md", "exec"), {})
    accuracy = float(capsys.readouterr().out.splitlines()[0])
    assert accuracy > 0.99


@pytest.mark.parametrize("command", [c for c in commands() if c.startswith("piefs")])
def test_command_runs(command, tmp_path):
    program, *arguments = shlex.split(command)
    call = [sys.executable, "-c", f"from {program}.cli import main; main()", *arguments]
    if arguments[0] == "fit":  # the budget does not matter here
        call += ["--steps", "20"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("runs/*/metrics.json"))


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
