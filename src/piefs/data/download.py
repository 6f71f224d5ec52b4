"""Downloading data files: nothing takes its place before its content is verified."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import requests
from rich.progress import Progress

from piefs.data import atomic
from piefs.data.data_files import DataFile, data_folders, decode_npz, decode_table
from piefs.errors import DamagedDataError, InputError

TIMEOUT_SECONDS = 30
PIECE = 2**16
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class ProgressBar:
    """The bytes that have come, drawn by rich."""

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
    _require_private(url)
    target = folder / "download"
    bar = ProgressBar(file.dataset) if progress else None
    try:
        with requests.get(url, stream=True, timeout=TIMEOUT_SECONDS) as response:
            _require_private(*(one.url for one in (*response.history, response)))
            response.raise_for_status()
            _store(response, target, file.most_bytes, bar)
    finally:
        if bar is not None:
            bar.close()
    return _member(target, folder, file) if url.endswith(".zip") else target


def _require_private(*urls: str) -> None:
    """Nobody on the way may read along or put in other bytes; this machine is no way."""
    for url in urls:
        parts = urlsplit(url)
        if parts.scheme != "https" and parts.hostname not in LOOPBACK:
            raise ValueError(f"{url} is not https")


def _store(
    response: requests.Response, target: Path, most_bytes: int, bar: ProgressBar | None
) -> None:
    """Write what comes, up to a bound, whatever the server says that it will send."""
    if bar is not None:
        bar.total = int(response.headers.get("Content-Length", 0)) or most_bytes
    n_bytes = 0
    with target.open("wb") as stream:
        for piece in response.iter_content(PIECE):
            n_bytes += len(piece)
            if n_bytes > most_bytes:
                raise ValueError(f"more than {most_bytes:,} bytes, which cannot be the data")
            stream.write(piece)
            if bar is not None:
                bar.update(len(piece))


def _member(archive_path: Path, folder: Path, file: DataFile) -> Path:
    """The file in an archive, taken out under a name of ours: those inside decide no place."""
    name = Path(file.path).name
    try:
        with zipfile.ZipFile(archive_path) as archive, archive.open(name) as member:
            content = member.read(file.most_bytes + 1)
    except (zipfile.BadZipFile, KeyError, EOFError, NotImplementedError, RuntimeError) as error:
        raise DamagedDataError(f"the archive does not hold {name}") from error
    if len(content) > file.most_bytes:
        raise DamagedDataError(f"{name} unpacks to more than {file.most_bytes:,} bytes")
    (folder / name).write_bytes(content)
    return folder / name


def _reason(error: Exception) -> str:
    """A short word for what went wrong: connection errors carry pages of text."""
    if isinstance(error, requests.ConnectionError):
        return "no connection"
    return str(error).split("\n")[0][:200]
