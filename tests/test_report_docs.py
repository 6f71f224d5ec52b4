"""The guide to reports: its commands and code run as written, its links lead somewhere."""

import re
import shlex
from pathlib import Path

from matplotlib import pyplot as plt

from commands import piefs

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "docs/report.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, flags=re.DOTALL)


def test_the_commands_of_the_guide_leave_a_page(tmp_path):
    for line in "".join(blocks("sh")).splitlines():
        done = piefs(*shlex.split(line, comments=True)[1:], cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs/moons/report.html").is_file()


def test_the_code_of_the_guide_runs():
    names = {}
    for block in blocks("python"):
        exec(compile(block, "report.md", "exec"), names)
    assert names["ax"].get_xlabel() == "$\\phi_{1}$"
    plt.close("all")
