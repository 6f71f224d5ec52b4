"""The command line (extra [app])."""

import sys
import time
from typing import Any

begun: float | None = None
"""When the command began: its clock counts imports, too."""

folder: Any = None
"""The folder of the run that is under way, which Ctrl-C may leave a checkpoint in."""


def main() -> None:
    """Run a command of `piefs`."""
    global begun
    begun = time.monotonic()
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        print(
            "piefs: the command line needs further packages: pip install 'piefs-learn[app]'",
            file=sys.stderr,
        )
        sys.exit(2)
    from piefs.app.commands import main

    main()
