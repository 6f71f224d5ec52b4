"""`kill -9` at random moments: the resumed run ends at the same weights, byte for byte."""

import random
import subprocess
import sys
import time

RUN = """
import sys
from piefs.compilation import keep_compiled
from piefs.datasets import load
from piefs.runs import run

keep_compiled()  # as the command line does
run(
    load("two-moons"), sys.argv[1], resume=True, checkpoint_seconds=0.0, n_components=3,
    schedule="sequential", early_stopping=False, steps_per_component=600, batch_size=256,
    hidden=(16, 16), random_state=0, log_every=50, report=False,
)
"""


def start(folder):
    return subprocess.Popen([sys.executable, "-c", RUN, str(folder)], stderr=subprocess.PIPE)


def finish(folder):
    process = start(folder)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said.decode()
    return (folder / "model" / "weights.safetensors").read_bytes()


def test_three_kills_at_random_moments_do_not_change_a_byte(tmp_path):
    begun = time.monotonic()
    undisturbed = finish(tmp_path / "whole")
    seconds = time.monotonic() - begun
    moments = random.Random(0)
    n_kills, n_runs = 0, 0
    while n_kills < 3:
        assert n_runs < 16, "runs end before they can be killed"
        folder = tmp_path / f"killed{n_runs}"
        process, begun = start(folder), time.monotonic()
        try:
            process.communicate(timeout=moments.uniform(0.2, 1.0) * seconds)
            seconds = time.monotonic() - begun  # the machine has become faster: kill earlier
        except subprocess.TimeoutExpired:
            n_kills += 1
            process.kill()
            process.communicate()
        if (folder / "metrics.json").exists():  # it got to the end: the next kills hit a new run
            assert (folder / "model" / "weights.safetensors").read_bytes() == undisturbed
            n_runs += 1
    assert finish(tmp_path / f"killed{n_runs}") == undisturbed
