import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import free_port
from piefs.errors import InputError
from piefs.training.sharding import Devices, devices_of

PEERS = Path(__file__).parents[1] / "peers.py"


@pytest.fixture(scope="module")
def trained_by(tmp_path_factory):
    """What so many processes, each with so many devices, have learned together."""
    folder = tmp_path_factory.mktemp("company")
    return partial(_trained_by, folder)


def _trained_by(folder, n_processes, n_devices=1):
    def run(command):
        return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)

    out = folder / f"{n_processes}x{n_devices}.npz"
    address = f"127.0.0.1:{free_port()}"
    commands = [
        [sys.executable, PEERS, address, str(n_processes), str(i), out, str(n_devices)]
        for i in range(n_processes)
    ]
    with ThreadPoolExecutor(n_processes) as pool:
        ended = list(pool.map(run, commands))
    assert all(one.returncode == 0 for one in ended), ended[0].stderr
    return np.load(out)


@pytest.mark.slow
def test_company_learns_what_one_device_learns(trained_by):
    together, alone = trained_by(2, n_devices=2), trained_by(1)
    assert together["n_devices"] == 4
    for name in set(together.files) - {"n_devices"}:
        tolerance = 1e-6 if name.startswith("first_step") else 1e-8
        np.testing.assert_allclose(together[name], alone[name], atol=tolerance, err_msg=name)


MESSAGES = """
from dataclasses import replace
import jax, numpy as np
from piefs.core.objectives import JointObjective, SequentialObjective
from piefs.core.weighting import Dampened
from piefs.training.batches import Samples, gather
from piefs.training.config import PAPER, Metric
from piefs.training.sharding import devices_of
from piefs.training.state import initial_state
from piefs.training.step import Steps, descend

devices = devices_of("all")
objectives = {"nested": JointObjective(0.1, 1e-3, 1.0), "sequential": SequentialObjective(
    Dampened(), population_gram=True)}
for schedule, objective in objectives.items():
    config = replace(PAPER, solver=schedule, metric=Metric("trotter"), hidden=(4, 4))
    config = replace(config, n_components=2)
    samples = Samples(np.ones((1200, 3), np.float32), np.zeros(1200, np.int32), devices=devices)
    state = devices.everywhere(initial_state(samples, config, 2).params)
    opt_state = devices.everywhere(initial_state(samples, config, 2).opt_state)
    chunk = gather(samples, np.zeros((1200, 2), np.float32), np.arange(1200), (1, 1200))
    program = descend.lower(state, opt_state, chunk, objective, Steps(0, 1, 1, 1e-3),
        optimizer=config.optimizer.rule, mesh=devices.mesh).compile()
    print(devices.mesh.size, program.as_text().count(" all-reduce("))
"""


@pytest.mark.slow
def test_a_step_on_two_devices_sends_two_messages():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    told = subprocess.run(
        [sys.executable, "-c", MESSAGES],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | flags,
    )
    assert told.stdout.split() == ["2"] * 4, told.stderr


def test_one_device_takes_a_batch_as_it_is():
    np.testing.assert_array_equal(devices_of(None).places(5), np.arange(5))


@given(n_devices=st.integers(1, 9), batch=st.integers(2, 60))
def test_devices_take_equal_shares_of_either_half_and_each_row_once(n_devices, batch):
    places = any_devices(n_devices).places(batch).reshape(n_devices, -1)
    assert sorted(places[places >= 0]) == list(range(batch))
    n_first = -(-(batch // 2) // n_devices)
    first, second = places[:, :n_first], places[:, n_first:]
    assert first.max() == batch // 2 - 1
    assert second[second >= 0].min() == batch // 2


def any_devices(n):
    """Where rows go does not depend on there being so many devices."""
    numbers = np.arange(n)
    return Devices(SimpleNamespace(size=n, devices=numbers, local_devices=numbers.tolist()))


@pytest.mark.parametrize("wanted", ["some", 0, True, 1.5])
def test_what_is_no_number_of_devices_is_refused(wanted):
    with pytest.raises(InputError, match="devices must be"):
        devices_of(wanted)


def test_more_devices_than_there_are_are_refused():
    with pytest.raises(InputError, match="JAX sees 1"):
        devices_of(9)
