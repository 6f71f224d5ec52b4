"""`kill -9` at random moments: the resumed run ends at the same weights, byte for byte."""

import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from lab.fuzz.soak import soak, weights
from lab.fuzz.victim import whole_run


@pytest.mark.slow
def test_kills_at_random_moments_do_not_change_a_byte(tmp_path):
    begun = time.monotonic()
    whole_run(tmp_path / "whole")
    seconds = time.monotonic() - begun
    whole = weights(tmp_path / "whole")
    counts = soak(tmp_path / "killed", whole, seconds, n_kills=2, spread=0.8)
    assert counts.kills == 2
    assert counts.failed_to_resume == 0
    assert counts.identical == counts.runs_finished > 0
