"""Commands under test: within this process, which is quick, or in one of their own, as users do."""

import contextlib
import io
import socket
import subprocess
import sys
import warnings
from typing import NamedTuple
from unittest import mock

from piefs.app import main

COMMAND = [sys.executable, "-c", "from piefs.app import main; main()"]


class Done(NamedTuple):
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


def piefs(*arguments, cwd=None):
    """Run `piefs arguments…` here, in the folder `cwd`, as its entry point does."""
    stdout, stderr, code = io.StringIO(), io.StringIO(), 0
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(cwd or "."))
        stack.enter_context(contextlib.redirect_stdout(stdout))
        stack.enter_context(contextlib.redirect_stderr(stderr))
        stack.enter_context(mock.patch.object(sys, "argv", ["piefs", *map(str, arguments)]))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("default")  # a user sees warnings; tests take them for errors
        warnings.showwarning = _show
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    return Done(code, stdout.getvalue(), stderr.getvalue())


def _show(message, category, filename, lineno, file=None, line=None):
    sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))


def piefs_process(*arguments, cwd=None):
    """Run `piefs arguments…` in a process of its own."""
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def free_port():
    """A port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
