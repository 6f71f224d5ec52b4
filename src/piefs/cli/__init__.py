"""The command line. Commands import what they need when they run, so that --help is instant."""

from piefs.cli.app import main

__all__ = ["main"]
