import subprocess
import sys

import pytest

from piefs.core.networks import ACTIVATIONS
from piefs.core.rotations import FAMILIES
from piefs.training import checks

FREE_OF_JAX = ["core", "core.model", "core.ritz", "core.trees", "core.weighting", "training.checks"]


def test_names_are_those_of_what_there_is():
    assert set(checks.ACTIVATIONS) == set(ACTIVATIONS)
    assert tuple(FAMILIES) == checks.ROTATIONS
    sized = {name for name, family in FAMILIES.items() if hasattr(family(), "depth")}
    assert sized == set(checks.DEEP)


@pytest.mark.parametrize("module", FREE_OF_JAX)
def test_what_needs_no_jax_does_not_import_it(module):
    script = f"import sys, piefs.{module}; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
