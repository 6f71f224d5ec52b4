"""`--config FILE`: estimator keywords from a TOML or JSON file; options on the command line win."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from piefs.data.documents import read_json, read_toml
from piefs.errors import InputError
from piefs.training.presets import PAPER

KEYWORDS = (*PAPER, "preset", "validation_fraction", "class_weight")


def read_config(path: Path | None) -> dict[str, Any]:
    """The file's settings; an unknown name or an unreadable file is an InputError."""
    if path is None:
        return {}
    remedy = "give a TOML or JSON file of settings, such as batch_size = 512"
    if not path.is_file():
        raise InputError(f"cannot read {path} (there is no such file); {remedy}")
    read = read_json if path.suffix == ".json" else read_toml
    settings = read(path, remedy)
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
