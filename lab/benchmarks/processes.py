"""Work in a process of its own, for what a process can measure only once."""

import os
import subprocess
import sys


def fresh_python(code: str, *arguments: str, **environment: str) -> str:
    """What a new Python prints, with JAX's variables as given here and no others."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=clean | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()
