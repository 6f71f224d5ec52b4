"""The same seed learns the same: bit for bit here, within a tolerance elsewhere."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from piefs import Checkpoint, PIEFSClassifier
from toys import SMALL, flat

LEARN = """
import sys
import numpy as np
from test_determinism import fitted, rows
from piefs import sharded
with sharded(int(sys.argv[2]) or None):
    model = fitted()
np.save(sys.argv[1], model.transform(rows()[0]))
"""
TOLERANCE = 1e-3
"""On coordinates of variance one, after sixty steps in single precision (docs/trust.md)."""


def rows():
    X, y = load_digits(return_X_y=True)
    return X[:600], y[:600]


def fitted(**keywords):
    return PIEFSClassifier(**flat(**SMALL | {"batch_size": 256} | keywords)).fit(*rows())


@pytest.fixture(scope="module")
def here():
    return fitted().transform(rows()[0])


def elsewhere(folder, flags, devices=0):
    """What another process learns, its programs compiled with these flags."""
    out = folder / "phi.npy"
    environment = os.environ | {"XLA_FLAGS": flags}
    environment["PYTHONPATH"] = os.pathsep.join([*sys.path, str(Path(__file__).parent)])
    command = [sys.executable, "-c", LEARN, out, str(devices)]
    subprocess.run(command, env=environment, check=True, timeout=300)
    return np.load(out)


def test_a_second_fit_learns_the_same_bits(here):
    np.testing.assert_array_equal(fitted().transform(rows()[0]), here)


@pytest.mark.slow
def test_another_process_learns_the_same_bits(here, tmp_path):
    flags = os.environ.get("XLA_FLAGS", "")
    np.testing.assert_array_equal(elsewhere(tmp_path, flags), here)


def test_a_run_cut_off_and_resumed_learns_the_same_bits(here, tmp_path):
    class CutError(Exception):
        pass

    def cut(state):
        if state.step == 40:
            raise CutError

    path = tmp_path / "checkpoint"
    with pytest.raises(CutError):
        fitted(callbacks=[Checkpoint(path, every_seconds=0), cut])
    resumed = fitted(callbacks=[Checkpoint(path, resume=True)])
    np.testing.assert_array_equal(resumed.transform(rows()[0]), here)


@pytest.mark.slow
def test_another_number_of_threads_or_devices_learns_the_same_within_a_tolerance(here, tmp_path):
    flags = "--xla_force_host_platform_device_count=2 --xla_cpu_multi_thread_eigen=true"
    np.testing.assert_allclose(elsewhere(tmp_path, flags, 2), here, atol=TOLERANCE)
