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
