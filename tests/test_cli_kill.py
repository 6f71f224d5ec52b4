"""`kill -9` at random moments: the resumed run ends at the same weights, byte for byte."""

import random
import subprocess
import sys
import time

RUN = """
import sys
from piefs.datasets import load
from piefs.runs import run

run(
    load("two-moons"), sys.argv[1], resume=True, checkpoint_seconds=0.0, n_components=3,
    steps_per_component=600, batch_size=256, hidden=(16, 16), random_state=0, log_every=50,
)
"""


def start(folder):
    return subprocess.Popen([sys.executable, "-c", RUN, str(folder)], stderr=subprocess.PIPE)


def finish(folder):
    process = start(folder)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said.decode()
    return (folder / "model" / "weights.safetensors").read_bytes()


def test_twenty_kills_at_random_moments_do_not_change_a_byte(tmp_path):
    begun = time.monotonic()
    undisturbed = finish(tmp_path / "whole")
    seconds = time.monotonic() - begun
    moments = random.Random(0)
    folder, n_kills = tmp_path / "killed", 0
    while n_kills < 20:
        process = start(folder)
        try:
            process.wait(timeout=moments.uniform(0.3, 1.0) * seconds)
        except subprocess.TimeoutExpired:
            n_kills += 1
        process.kill()
        process.communicate()
        if (folder / "metrics.json").exists():  # it got to the end: the next kills hit a new run
            assert (folder / "model" / "weights.safetensors").read_bytes() == undisturbed
            folder = tmp_path / f"killed{n_kills}"
    assert finish(folder) == undisturbed
