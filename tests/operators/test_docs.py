"""The guide's code runs as written; the page on accuracy says what was measured."""

import re
import sys

import numpy as np
import pytest

from pages import ROOT, run_python

sys.path.insert(0, str(ROOT))


@pytest.mark.slow
def test_the_code_of_the_guide_runs_and_finds_what_it_says():
    names = run_python(ROOT / "docs/operators.md")
    assert names["phi"].shape == (1, 4)
    assert names["slope"].shape == (1, 4, 2)
    assert np.all(names["solution"].error_bars < 0.05 * names["solution"].eigenvalues[-1])
    first, second, third = names["clusters"].eigenvalues
    assert abs(first) < 1e-6
    assert second < third / 2
    sides = np.corrcoef(names["side"][:, 0], names["clusters"](names["table"])[:, 1])[0, 1]
    assert abs(sides) > 0.9


@pytest.mark.parametrize("page", ["operators.md", "operators-accuracy.md"])
def test_links_and_pictures_of_the_pages_exist(page):
    text = (ROOT / "docs" / page).read_text()
    for path in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / "docs" / path).is_file(), path
