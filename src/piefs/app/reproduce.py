"""Finds the paper's audit, which lives beside the package in a checkout and not in the wheel."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from piefs.errors import InputError


def reproduction(module: str) -> Any:
    """A module of `reproduction/`, from the checkout that this is run in or installed from."""
    for root in (Path.cwd(), Path(__file__).parents[3]):
        if (root / "reproduction" / "__init__.py").is_file():
            if str(root) not in sys.path:
                sys.path.insert(0, str(root))
            return importlib.import_module(f"reproduction.{module}")
    raise InputError(
        "the paper's runs, tables and figures are not part of the installed package: get the "
        "source repository, and run this command in its folder"
    )
