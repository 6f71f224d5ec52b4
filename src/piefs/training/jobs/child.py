"""A process that `processes` starts: jobs come in through its input, answers leave by its output.

Both are pickles between a program and a process of its own; nothing of the kind is read from files.
"""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress

import cloudpickle

from piefs.training.jobs.workers import portable
from piefs.training.memory import keep_memory


def main() -> None:
    """Answer jobs until there are no more."""
    keep_memory()  # before a job brings JAX and its threads
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a job prints is no answer
    function, common = pickle.load(sys.stdin.buffer)
    while True:
        job = pickle.load(sys.stdin.buffer)
        try:
            answer = function(common, *job), None
        except Exception as error:
            answer = None, portable(error)
        answers.write(cloudpickle.dumps(answer))
        answers.flush()


if __name__ == "__main__":
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        main()
