"""Pictures of eigenfunctions: masked outside the domain, and labelled as slices or halves."""

import numpy as np
import pytest

from piefs import EigenSolver
from piefs.operators import known
from piefs.report.plot.modes import modes

SMALL = {"n_steps": 0, "n_maps": 3, "n_points": 900}


@pytest.fixture
def drawn(request):
    problem = known(request.param).problem
    return modes(EigenSolver(n_eigenpairs=5, **SMALL).solve(problem))


def pictures(figure):
    return [ax.images[0].get_array() for ax in figure.axes if ax.images]


@pytest.mark.parametrize("drawn", ["disk"], indirect=True)
def test_nothing_is_drawn_outside_of_a_disk(drawn):
    found = pictures(drawn)
    assert len(found) == 5
    seen = np.ma.getmaskarray(np.ma.masked_invalid(found[0]))
    assert 1 - seen.mean() == pytest.approx(np.pi / 4, abs=0.02)  # pixels on the edge
    assert not seen[80, 80]
    titles = [ax.get_title() for ax in drawn.axes]
    assert titles[0].startswith(r"$\lambda_{1}$ = 5.78")


@pytest.mark.parametrize("drawn", ["sphere"], indirect=True)
def test_of_a_sphere_one_half_is_seen(drawn):
    assert "one half of the sphere" in drawn.get_suptitle()
    assert np.nanstd(pictures(drawn)[0].filled(np.nan)) < 1e-3  # the first is constant
    assert np.nanstd(pictures(drawn)[1].filled(np.nan)) > 0.1
