"""The command line (extra [app])."""

import sys
import time

begun: float | None = None
"""When the command began: its clock counts imports, too."""


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
