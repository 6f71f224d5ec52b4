"""Jobs end one by one, in whatever place, and fail alone."""

import os
import time
from platform import libc_ver

import pytest

import chores
from piefs.errors import InputError
from reproduction.workers import JobError, open_workers


@pytest.fixture(scope="module")
def processes():
    """One process that works on `chores.times`."""
    with open_workers(chores.times, 10, n_jobs=1) as workers:
        yield workers


def test_in_this_process_a_job_is_taken_when_there_is_room_for_it():
    order = []

    def jobs():
        for number in (1, 2):
            order.append(f"taken {number}")
            yield (number,)

    with open_workers(lambda common, number: common * number, 10) as workers:
        assert workers.n_workers == 1
        order.extend(ended.result() for ended in workers.run(jobs()))
    assert order == ["taken 1", 10, "taken 2", 20]


def test_a_process_answers_one_job_after_the_other(processes):
    values = {ended.job: ended.result() for ended in processes.run([(1,), (2,), (3,)])}
    assert values == {(1,): 10, (2,): 20, (3,): 30}
    assert list(processes.run([])) == []


def test_a_job_that_fails_does_not_stop_the_others_and_says_where_it_failed(processes):
    ended = {ended.job[0]: ended for ended in processes.run([(-1,), (2,)])}
    assert ended[2].result() == 20
    with pytest.raises(JobError, match="ValueError: -1 is below zero") as caught:
        ended[-1].result()
    assert "chores.py" in caught.value.details


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_job_that_kills_its_process_fails_alone(n_jobs):
    with open_workers(chores.kill_or_times, 10, n_jobs=n_jobs) as workers:
        ended = {ended.job[0]: ended for ended in workers.run([(1,), (0,), (2,), (3,)])}
    assert [ended[number].result() for number in (1, 2, 3)] == [10, 20, 30]
    with pytest.raises(JobError, match=r"died 3 times \(exit code SIGKILL\(-9\)\)"):
        ended[0].result()


def test_a_job_whose_process_was_killed_once_runs_again(tmp_path):
    with open_workers(chores.kill_once, tmp_path, n_jobs=2) as workers:
        values = [ended.result() for ended in workers.run([("a",), ("b",), ("c",)])]
    assert sorted(values) == ["a", "b", "c"]
    assert (tmp_path / "killed").exists()


def test_an_interrupt_ends_the_processes(tmp_path):
    def jobs():
        yield ("first",)
        end = time.monotonic() + 30
        while not (tmp_path / "first").exists() and time.monotonic() < end:
            time.sleep(0.02)
        raise KeyboardInterrupt

    begun = time.monotonic()
    with (
        pytest.raises(KeyboardInterrupt),
        open_workers(chores.write_and_wait, tmp_path, n_jobs=2) as workers,
    ):
        list(workers.run(jobs()))
    assert time.monotonic() - begun < 50
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "first").read_text()), 0)


def test_jobs_of_this_machine_and_a_cluster_are_not_asked_for_together():
    with (
        pytest.raises(InputError, match="number of jobs is for this machine"),
        open_workers(chores.times, 10, n_jobs=2, dask="tcp://127.0.0.1:1"),
    ):
        pass


@pytest.mark.slow
@pytest.mark.skipif(libc_ver()[0] != "glibc", reason="only glibc can keep memory")
def test_processes_keep_their_memory():
    with open_workers(chores.pages_a_call, n_jobs=1) as workers:
        (ended,) = workers.run([()])
    assert ended.error is None
    assert ended.value < 100
