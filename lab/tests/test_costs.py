import json

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import Mesh

from lab.costs import HARDWARE, SMALL_MESSAGES, Plan, Work, n_parameters
from lab.plan import main
from piefs.core.objectives import JointObjective
from piefs.errors import InputError
from piefs.training.batches import Samples, gather
from piefs.training.config import Metric, Settings
from piefs.training.sharding import ROWS, Devices
from piefs.training.state import initial_state
from piefs.training.step import Steps, descend

A100 = HARDWARE["a100"]
N_FEATURES, N_CLASSES = 7, 3


@pytest.fixture(scope="module", params=["off", "diag", "trotter"])
def spread(request):
    """A state, and a chunk for a mesh of one device, where all messages are sent, if to nobody."""
    config = Settings(
        solver="nested",
        n_components=4,
        metric=Metric(request.param),
        steps_per_component=1,
        activation="relu",
    )
    devices = Devices(Mesh(np.array(jax.devices()[:1]), (ROWS,)))
    samples = Samples(np.zeros((8, N_FEATURES), np.float32), np.zeros(8, np.int32), devices=devices)
    chunk = gather(samples, np.zeros((8, 4), np.float32), np.arange(8), (1, 8))
    return config, initial_state(samples, config, N_CLASSES), chunk, devices


def messages(jaxpr):
    """All sums over devices, with their number of entries."""
    for equation in jaxpr.eqns:
        if "psum" in equation.primitive.name:
            yield from (int(np.prod(v.aval.shape)) for v in equation.invars)
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else [value]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from messages(inner)


def test_messages_of_a_step_are_those_of_the_plan(spread):
    config, state, chunk, devices = spread

    def step(params, opt_state, chunk):
        return descend(
            params,
            opt_state,
            chunk,
            JointObjective(0.1, 1e-3, 1.0),
            Steps(0, 1, 1, 1e-3),
            optimizer=config.optimizer.rule,
            mesh=devices.mesh,
        )

    traced = jax.make_jaxpr(step)(state.params, state.opt_state, chunk)
    sizes = sorted(messages(traced.jaxpr))
    assert len(sizes) - 1 == SMALL_MESSAGES
    assert sizes[-1] == sum(a.size for a in jax.tree.leaves(state.params))


def test_parameters_are_counted_as_they_are(spread):
    config, state, _, _ = spread
    counted = n_parameters(N_FEATURES, config.metric.name, n_maps=4, n_outputs=N_CLASSES)
    assert counted == sum(a.size for a in jax.tree.leaves(state.params))


def test_twice_the_rows_take_twice_the_time():
    one, two = (Plan(Work(n, 100), A100, 8).seconds for n in (10**8, 2 * 10**8))
    assert two == pytest.approx(2 * one, rel=0.01)


@given(
    rows=st.integers(10**4, 10**10),
    features=st.integers(1, 4096),
    components=st.integers(1, 64),
    devices=st.integers(1, 1024),
    metric=st.sampled_from(["off", "diag", "trotter"]),
    hardware=st.sampled_from(sorted(HARDWARE)),
)
def test_more_work_never_costs_less_and_devices_never_make_a_step_shorter_than_their_share(
    rows, features, components, devices, metric, hardware
):
    work = {"n_rows": rows, "n_features": features, "n_components": components, "metric": metric}
    plan = Plan(Work(**work), HARDWARE[hardware], devices)
    for name in ("n_rows", "n_features", "n_components"):
        more = Plan(Work(**work | {name: 2 * work[name]}), HARDWARE[hardware], devices)
        assert more.seconds >= plan.seconds
        assert more.coordinates_bytes >= plan.coordinates_bytes
    alone = Plan(Work(**work), HARDWARE[hardware])
    assert plan.compute_seconds <= alone.compute_seconds
    assert devices * plan.compute_seconds >= (1 - 1e-9) * alone.compute_seconds


def test_devices_share_arithmetic_and_add_messages():
    work = Work(10**9, 128, batch_size=65536)
    alone, together = Plan(work, A100), Plan(work, A100, 8)
    assert together.compute_seconds == pytest.approx(alone.compute_seconds / 8, rel=0.1)
    assert alone.message_seconds == 0
    assert together.message_seconds > 0
    assert together.efficiency < 1


def test_only_maps_in_turn_take_a_pass_each():
    nested, joint, in_turn = (
        Plan(Work(10**9, 128, schedule=schedule), A100, 8).pass_seconds
        for schedule in ("nested", "joint", "sequential")
    )
    assert nested == joint < in_turn


def test_messages_between_hosts_take_the_network():
    work = Work(10**9, 128, batch_size=65536)
    one_host, two_hosts = Plan(work, A100, 8), Plan(work, A100, 16)
    assert (one_host.n_hosts, two_hosts.n_hosts) == (1, 2)
    assert two_hosts.link.bandwidth < one_host.link.bandwidth


ASKED = ["--rows", "1e9", "--features", "128", "--devices", "8", "--hardware", "a100"]


def test_command_prints_the_plan_and_what_limits_it(capsys):
    main([*ASKED, "--batch-size", "65536"])
    said = capsys.readouterr().out
    assert "1,000,000,000 rows" in said
    assert "reading" in said
    main([*ASKED, "--batch-size", "65536", "--json"])
    assert json.loads(capsys.readouterr().out)["n_devices"] == 8
    main([*ASKED, "--json", "--reading", "1e12"])
    assert json.loads(capsys.readouterr().out)["limit"] != "reading"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rows", "0"], "n_rows must be positive"),
        (["--metric", "butterfly"], "costs are known for"),
        (["--hardware", "abacus"], "unknown hardware"),
        (["--latency", "-1"], "latency must be positive"),
        (["--devices", "0"], "devices must be positive"),
    ],
)
def test_plan_that_cannot_be_is_refused(options, message, capsys):
    with pytest.raises(SystemExit) as left:
        main([*ASKED, *options])
    assert left.value.code == 2
    assert message in capsys.readouterr().err


def test_unknown_metric_is_an_input_error():
    with pytest.raises(InputError):
        Work(10, 2, metric="any")
