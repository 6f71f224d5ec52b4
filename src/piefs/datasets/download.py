"""Downloading data files: nothing takes its place before its content is verified."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pooch
import requests
from rich.progress import Progress

from piefs.datasets.files import DataFile, data_folders, decode_npz, decode_table
from piefs.errors import DamagedDataError, InputError
from piefs.io import atomic


class ProgressBar:
    """What pooch expects of a progress bar, drawn by rich."""

    def __init__(self, name: str) -> None:
        self.progress = Progress(transient=True)
        self.task = self.progress.add_task(f"downloading {name}", total=None)
        self.progress.start()

    @property
    def total(self) -> float | None:
        """Bytes to come."""
        return self.progress.tasks[0].total

    @total.setter
    def total(self, value: float) -> None:
        self.progress.update(self.task, total=value)

    def update(self, n_bytes: int) -> None:
        """Count bytes that have come."""
        self.progress.advance(self.task, n_bytes)

    def reset(self) -> None:
        """Start counting anew."""
        self.progress.reset(self.task)

    def close(self) -> None:
        """Take the bar away."""
        self.progress.stop()


def fetch(file: DataFile, data_dir: str | Path | None = None, *, progress: bool = False) -> Path:
    """Download a data file into the first data folder, and verify what it decodes to."""
    place = data_folders(data_dir)[0] / file.path
    if file.is_built:
        raise InputError(
            f"{file.dataset!r} is not downloaded: run `piefs data build {file.dataset}`"
        )
    if not file.urls:
        raise InputError(f"{file.dataset!r} cannot be downloaded; put its file at {place}")
    failures = []
    for url in file.urls:
        try:
            with tempfile.TemporaryDirectory() as folder:
                downloaded = _download(file, url, Path(folder), progress)
                decode = decode_npz if file.path.endswith(".npz") else decode_table
                decode(file, downloaded)
                atomic.write_bytes(place, downloaded.read_bytes())
            return place
        except (requests.RequestException, DamagedDataError, OSError, ValueError) as error:
            failures.append(f"{url}: {_reason(error)}")
    raise InputError(
        f"{file.dataset!r} could not be downloaded ({'; '.join(failures)}); "
        f"put the file at {place} by hand"
    )


def _download(file: DataFile, url: str, folder: Path, progress: bool) -> Path:
    bar: Any = ProgressBar(file.dataset) if progress else False
    pooch.get_logger().setLevel("WARNING")  # it would announce each download, and its hash
    downloader: Any = pooch.HTTPDownloader(progressbar=bar, timeout=30)
    try:
        got = pooch.retrieve(url, None, fname="download", path=folder, downloader=downloader)
    finally:
        if isinstance(bar, ProgressBar):
            bar.close()
    if not url.endswith(".zip"):
        return Path(got)
    name = Path(file.path).name
    try:
        with zipfile.ZipFile(got) as archive, archive.open(name) as member:
            (folder / name).write_bytes(member.read())
    except (zipfile.BadZipFile, KeyError) as error:
        raise DamagedDataError(f"the archive does not hold {name}") from error
    return folder / name


def _reason(error: Exception) -> str:
    """A short word for what went wrong: connection errors carry pages of text."""
    if isinstance(error, requests.ConnectionError):
        return "no connection"
    return str(error).split("\n")[0][:200]
