"""Jobs for the workers under test, in a module that other processes can import."""

import os
import signal
import time


def times(common, number):
    """A job that prints, which must not get mixed up with its answer, and may fail."""
    print("at work")
    if number < 0:
        raise ValueError(f"{number} is below zero")
    return common * number


def kill_or_times(common, number):
    """A job that kills its process where the number is zero."""
    if number == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return common * number


def kill_once(folder, name):
    """A job; the first to find no file leaves it, and kills its process."""
    try:
        (folder / "killed").touch(exist_ok=False)
    except FileExistsError:
        return name
    os.kill(os.getpid(), signal.SIGKILL)


def write_and_wait(folder, name):
    """Leave a file with the process's number, and then take a minute."""
    (folder / name).write_text(str(os.getpid()))
    time.sleep(60)


def interval(seconds, name):
    """When a job began and ended."""
    begun = time.monotonic()
    time.sleep(seconds)
    return begun, time.monotonic()


def pages_a_call(common=None):
    """How many pages a program of 48 MB asks the system for, once it has been called some times."""
    import resource

    import jax
    import jax.numpy as jnp

    @jax.jit
    def program(a, b):
        return jnp.sin(a[:, None] + b) @ b

    a, b = jnp.ones(1000), jnp.ones(12000)

    def pages():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(5):
            program(a, b).block_until_ready()
        return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 5

    # at first there is not yet room for calls that overlap
    return [pages() for _ in range(7)][-1]
