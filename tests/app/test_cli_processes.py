"""`piefs fit` over several processes, and killed in mid-run (`kill -9`)."""

import signal
import subprocess
import time

import numpy as np
import pytest

import piefs as library
from commands import COMMAND, free_port, piefs
from lab.fuzz.soak import soak, weights
from lab.fuzz.victim import whole_run

RUN = ["fit", "two-moons", "--preset", "paper", "-k", "2", "--steps", "400", "--no-report"]
RUN += ["--batch-size", "64"]


def begin(out, n_processes, *more):
    """The processes of a run, begun."""
    address = f"127.0.0.1:{free_port()}"
    company = ["--coordinator", address, "--num-processes", str(n_processes), "--process-id"]
    return [
        subprocess.Popen(
            [*COMMAND, *RUN, "--out", str(out), *company, str(i), *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(n_processes)
    ]


def ends(processes, timeout):
    """Exit codes and what was said, once all have ended."""
    deadline = time.monotonic() + timeout
    said = [p.communicate(timeout=deadline - time.monotonic()) for p in processes]
    return [p.returncode for p in processes], said


@pytest.fixture(scope="module")
def precise(tmp_path_factory):
    """Double precision, in which rounding does not grow to anything in so few steps."""
    config = tmp_path_factory.mktemp("settings") / "settings.json"
    config.write_text('{"optimizer": {"dtype": "float64"}}')
    return ["--config", str(config)]


@pytest.fixture(scope="module")
def cut_off(tmp_path_factory, precise):
    """A run of three processes, one of which was killed once there was a checkpoint."""
    out = tmp_path_factory.mktemp("run") / "run"
    processes = begin(out, 3, *precise)
    while not (out / "checkpoint.safetensors").is_file():
        assert all(p.poll() is None for p in processes), ends(processes, 60)
        time.sleep(0.02)
    processes[2].send_signal(signal.SIGKILL)
    return out, *ends(processes, 30)


@pytest.mark.slow
def test_processes_end_with_the_reason_when_one_is_lost(cut_off):
    _, codes, said = cut_off
    assert codes[2] == -signal.SIGKILL
    assert codes[0] != 0
    assert codes[1] != 0
    assert "another process of this run has ended" in said[0][1]
    assert "--resume" in said[1][1]


@pytest.mark.slow
def test_run_goes_on_with_another_number_of_processes(cut_off, precise, tmp_path):
    out, _, _ = cut_off
    codes, said = ends(begin(out, 2, "--resume", *precise), 240)
    assert codes == [0, 0], said
    assert said[1][0] == ""  # the first process speaks for all
    whole = tmp_path / "whole"
    assert piefs(*RUN, *precise, "--out", whole).returncode == 0
    rows = np.random.default_rng(0).normal(size=(50, 2))
    resumed, alone = (library.load(folder / "model").transform(rows) for folder in (out, whole))
    np.testing.assert_allclose(resumed, alone, atol=1e-6)


@pytest.mark.slow
def test_folder_in_use_ends_all_processes(cut_off):
    out, _, _ = cut_off
    codes, said = ends(begin(out, 2), 60)
    assert codes == [2, 2]
    assert "unfinished run" in said[0][1] or "finished run" in said[0][1]
    assert "the first process failed to start" in said[1][1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--coordinator", "nowhere"], "not an address"),
        (["--coordinator", "127.0.0.1:1"], "needs --num-processes"),
        (["--num-processes", "2"], "go with --coordinator"),
        (["--devices", "few"], "--devices must be"),
        (["--coordinator", "h:1", "--num-processes", "2", "--process-id", "2"], "not one of 0"),
    ],
)
def test_company_that_cannot_be_is_refused(tmp_path, options, message):
    done = piefs(*RUN, "--out", tmp_path / "run", *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "run").exists()


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
