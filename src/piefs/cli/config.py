"""`--config FILE`: estimator keywords from a TOML or JSON file; options on the command line win."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from piefs.errors import InputError
from piefs.presets import PAPER

KEYWORDS = (*PAPER, "preset", "validation_fraction", "class_weight")


def read_config(path: Path | None) -> dict[str, Any]:
    """The file's settings; an unknown name or an unreadable file is an InputError."""
    if path is None:
        return {}
    try:
        text = path.read_text(encoding="utf-8")
        settings = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise InputError(f"cannot read {path} ({error.strerror})") from error
    except ValueError as error:
        raise InputError(f"{path} is not a TOML or JSON file of settings ({error})") from error
    if not isinstance(settings, dict):
        raise InputError(f"{path} must hold names and values, such as batch_size = 512")
    for name in settings:
        if name not in KEYWORDS:
            raise InputError(f"{path}: unknown setting {name!r}; known are {', '.join(KEYWORDS)}")
    return settings


def use_device(name: str | None) -> None:
    """Make a kind of device (cpu, gpu, tpu) the one to compute on."""
    if name is None:
        return
    import jax

    try:
        jax.config.update("jax_default_device", jax.devices(name)[0])
    except RuntimeError as error:
        found = ", ".join(sorted({device.platform for device in jax.devices()}))
        raise InputError(f"there is no device {name!r} here; found: {found}") from error
