"""Trainings on the workers of a real scheduler, each a process; one is killed."""

import os
import shlex
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Client

import chores
from clusters import dask_cluster
from commands import piefs
from pages import ROOT, commands, run_python, train_briefly
from piefs.errors import InputError
from reproduction import workers
from reproduction.cells import Cell
from reproduction.grid import run_grid
from reproduction.records import Records
from reproduction.workers import JobError, open_workers

pytestmark = pytest.mark.slow

N_WORKERS = 3
ADDRESS = "tcp://scheduler:8786"  # on the page
NOBODY = "tcp://127.0.0.1:9"
TINY = {"hidden": (8,), "n_components": 2, "activation": "silu", "metric": "off"}
TINY |= {"steps_per_component": 60, "early_stopping": False, "batch_size": 64}


def cells(method, n):
    return [Cell("two-moons", method, "supervised", "paper", seed) for seed in range(n)]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with dask_cluster(tmp_path_factory.mktemp("cluster"), N_WORKERS) as address:
        yield address


@pytest.fixture(scope="module")
def client(address):
    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(N_WORKERS, timeout=60)
        yield client


@pytest.fixture(scope="module")
def table():
    x = np.random.default_rng(0).normal(size=(120, 3))
    return x, (x[:, 0] + x[:, 1] > 0).astype(int)


# --- the grid ----------------------------------------------------------------------------------


def test_fifty_cells_have_one_record_each_though_a_worker_is_killed(client, tmp_path, monkeypatch):
    processes = client.run(os.getpid)
    write, written, killed = Records.write, [], []

    def counted(self, cell, *content):
        written.append(cell)
        write(self, cell, *content)

    def kill_one_at_work(progress):
        busy = [worker for worker, tasks in client.processing().items() if tasks]
        if progress.done and busy and not killed:
            killed.append(busy[0])
            os.kill(processes[busy[0]], signal.SIGKILL)

    monkeypatch.setattr(Records, "write", counted)
    wanted = [*cells("random-forest", 5), *cells("lda", 45)]
    progress = run_grid(wanted, tmp_path, dask=client, quick=True, watch=kill_one_at_work)
    assert killed
    assert killed[0] not in client.nthreads()
    assert progress.failed == {}
    assert sorted(progress.done) == sorted(written) == sorted(wanted)
    found = Records(tmp_path / "records")
    assert sorted(record.metrics["cell"] for record in found) == sorted(map(str, wanted))


def test_a_cell_of_ours_comes_back_whole_and_leaves_nothing_behind(address, tmp_path):
    (cell,) = cells("piefs-off", 1)
    assert run_grid([cell], tmp_path, dask=address, quick=True).done == [cell]
    records = Records(tmp_path / "records")
    record = records.load(cell)
    assert record.metrics["accuracy"]["test"] > 0.5
    assert record.history()[-1]["map"] == 3
    assert records.plane(cell).is_file()
    assert not (tmp_path / "running").exists()


def test_an_interrupt_keeps_what_is_done_and_a_second_call_does_the_rest(client, tmp_path):
    def interrupt(progress):
        if len(progress.done) == 2:
            raise KeyboardInterrupt

    wanted = cells("lda", 8)
    with pytest.raises(KeyboardInterrupt):
        run_grid(wanted, tmp_path, dask=client, quick=True, watch=interrupt)
    assert len(Records(tmp_path / "records").of(wanted)) == 2
    assert len(run_grid(wanted, tmp_path, dask=client, quick=True).done) == 6


def test_a_worker_without_the_data_is_named_with_what_is_missing(client, tmp_path):
    missing = Cell("mnist", "lda", "supervised", "paper", 0)
    progress = run_grid([missing], tmp_path, dask=client, data_dir=tmp_path / "nowhere")
    (reason,) = progress.failed.values()
    assert reason.startswith("worker tcp://127.0.0.1")
    assert "data set 'mnist' not found" in reason
    assert "nowhere" in reason


# --- the command line --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        (["--dask", NOBODY], "no Dask scheduler answers at 'tcp://127.0.0.1:9'"),
        (["--dask", "nonsense://x"], "no Dask scheduler answers at 'nonsense://x'"),
        (["--dask", NOBODY, "--jobs", "2"], "a number of jobs is for this machine"),
    ],
)
def test_a_cluster_that_does_not_answer_is_one_line_and_exit_code_two(where, reason, tmp_path):
    begun = time.monotonic()
    done = piefs("reproduce", "--quick", *where, cwd=tmp_path)
    assert time.monotonic() - begun < 10
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
    assert not any(tmp_path.iterdir())


# --- the page ----------------------------------------------------------------------------------


@pytest.fixture
def page(address, tmp_path, monkeypatch):
    """The page on clusters, with the address of this one and a short search."""
    monkeypatch.chdir(tmp_path)
    train_briefly(monkeypatch)
    text = (ROOT / "docs" / "cluster.md").read_text()
    assert ADDRESS in text
    copy = tmp_path / "cluster.md"
    copy.write_text(text.replace(ADDRESS, address).replace("n_trials=18", "n_trials=1"))
    return copy


def test_the_python_of_the_page_runs(page):
    names = run_python(page)
    names["client"].close()
    assert names["tuned"].keywords["n_components"] == 2
    assert len(names["scores"]) == 3
    assert names["phi"].shape == (1_000_000, 2)
    assert set(names["labels"].compute()) <= {"in", "out"}
    assert names["far"].n_features_in_ == 3


def test_the_commands_of_the_page_run(page, tmp_path, monkeypatch):
    monkeypatch.setattr("reproduction.command.cells_of", lambda *args, **keywords: cells("lda", 1))
    monkeypatch.setattr("reproduction.command.write_report", lambda out: (out / "report.html", []))
    of_dask, ours = [], []
    for command in commands(page):
        program, *arguments = shlex.split(command)
        (ours if program == "piefs" else of_dask).append(arguments)
    assert [arguments[0] for arguments in of_dask] == ["scheduler", "worker"]
    for arguments in ours:
        if "--coordinator" in arguments:  # several at a time: test_cli_processes.py
            continue
        done = piefs(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


# --- what can be wrong with a cluster ----------------------------------------------------------


def test_workers_of_other_versions_are_refused_by_name(client, monkeypatch):
    versions = workers.library_versions() | {"piefs": "99.0"}
    monkeypatch.setattr(workers, "library_versions", lambda: versions)
    with (
        pytest.raises(InputError, match=r"worker tcp://.* it has piefs .*, and piefs 99.0 is want"),
        open_workers(chores.times, 1, dask=client),
    ):
        pass


def test_a_scheduler_without_workers_is_told_how_to_get_some(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "WORKER_SECONDS", 0.2)
    with (
        dask_cluster(tmp_path, 0) as address,
        pytest.raises(InputError, match=f"no workers: start some with `dask worker {address}"),
        open_workers(chores.times, 1, dask=address),
    ):
        pass


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(InputError, match=r"pip install 'piefs-learn\[dask\]'"),
        open_workers(chores.times, 1, dask=NOBODY),
    ):
        pass


def test_a_job_that_fails_says_on_which_worker(client):
    with open_workers(chores.times, 10, dask=client) as workers:
        ended = {ended.job[0]: ended for ended in workers.run([(-1,), (2,)])}
    assert ended[2].result() == 20
    with pytest.raises(JobError, match=r"^worker tcp://.*: ValueError: -1 is below zero$"):
        ended[-1].result()


def test_a_worker_with_many_threads_has_one_job_at_a_time(monkeypatch):
    worker = SimpleNamespace(address="tcp://127.0.0.1:1")
    monkeypatch.setattr("distributed.get_worker", lambda: worker)
    with ThreadPoolExecutor(3) as threads:
        jobs = [threads.submit(workers.on_worker, chores.interval, 0.05, (n,)) for n in "abc"]
        times = sorted(job.result() for job in jobs)
    assert all(end <= begun for (_, end), (begun, _) in pairwise(times))
