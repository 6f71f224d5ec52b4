"""Finding, downloading and verifying data files.

A digest is taken of the decoded array's bytes, not of the file: any mirror or re-packing of the
same data serves, and a damaged file never does. Nothing takes its place before it is verified.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from piefs.data.files import described, optional, write_bytes
from piefs.data.npy import load_npz
from piefs.errors import DamagedDataError, DataNotFoundError, InputError

TIMEOUT_SECONDS = 30
PIECE = 2**16
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class DataFile:
    """A file in a data folder, the sha256 of each array it must decode to, and its sources.

    A source ending in `.zip` holds the file as a member of its own name. A file that users build
    themselves has None for digests: its numbers depend on the libraries that made them. More than
    `most_bytes` are neither downloaded nor unpacked.
    """

    dataset: str
    path: str
    digests: dict[str, str | None]
    urls: tuple[str, ...] = ()
    is_built: bool = False
    most_bytes: int = 64 * 2**20


FILES = {
    "mnist": DataFile(
        "mnist",
        "mnist/mnist.npz",
        {
            "x_train": "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
            "y_train": "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
            "x_test": "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
            "y_test": "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
        },
        ("https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",),
    ),
    "htru2": DataFile(
        "htru2",
        "htru2/HTRU_2.csv",
        {"table": "bff7e0d962f5762938f833075d6bbfd3ce229cdcfb30091b4ecaa7dca4a81a74"},
        ("https://archive.ics.uci.edu/static/public/372/htru2.zip",),
    ),
    "cifar10-embedding": DataFile(
        "cifar10-embedding",
        "cifar10-embedding/cifar10_vgg16_512.npz",
        {
            "x_train": "665bd5f7700c961753cbec3640e702a92e854fc7af8dd236308022b8666c096c",
            "x_val": "60b05ea764c81aaffdeea05e797ab1620727b329e46309d47e6413b8873a6fdd",
            "x_test": "3c1b693c3e324969a2eb27763e82cd325f291f21206d60e41757b44d513ef8ea",
            "y_train": "b1061b775aacf86656143e27ec00f03ad8b39023ebfe767cfffa36641dee9e9f",
            "y_val": "14f5f821310be4880464bdd3ad86c36554a144be5bbac2d0598383f447aaecb9",
            "y_test": "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
        },
    ),
    "cifar10-r18": DataFile(
        "cifar10-r18",
        "cifar10-r18/cifar10_resnet18_512.npz",
        {f"{axis}_{part}": None for axis in "xy" for part in ("train", "val", "test")},
        is_built=True,
    ),
}


def data_folders(data_dir: str | Path | None = None) -> list[Path]:
    """Where data is looked for: `data_dir` if given, else $PIEFS_DATA and the user's cache."""
    if data_dir is not None:
        return [Path(data_dir)]
    named = os.environ.get("PIEFS_DATA")
    folders = [Path(named)] if named else []
    try:
        from platformdirs import user_cache_dir
    except ImportError as error:  # a plain install
        if folders:
            return folders
        raise DataNotFoundError(
            "name the folder with the data files by data_dir or $PIEFS_DATA, or "
            "pip install 'piefs-learn[app]', which downloads them into a cache"
        ) from error
    return [*folders, Path(user_cache_dir("piefs"))]


def locate(file: DataFile, data_dir: str | Path | None = None) -> Path:
    """The first existing copy of a file."""
    folders = data_folders(data_dir)
    for folder in folders:
        if (folder / file.path).is_file():
            return folder / file.path
    places = " or ".join(str(folder / file.path) for folder in folders)
    verb = "build" if file.is_built else "fetch"
    command = f"piefs data {verb} {file.dataset}"
    fetching = f"run `{command}`, or " if file.urls or file.is_built else ""
    raise DataNotFoundError(
        f"data set {file.dataset!r} not found: {fetching}put its file at {places}, "
        "or point --data-dir or $PIEFS_DATA at a folder that holds it"
    )


# --- reading -----------------------------------------------------------------------------------


def read_arrays(file: DataFile, data_dir: str | Path | None = None) -> dict[str, np.ndarray]:
    """The verified arrays of an `.npz` file, or the numbers of a CSV without header as `table`."""
    return _decoded(file, locate(file, data_dir))


def _decoded(file: DataFile, path: Path) -> dict[str, np.ndarray]:
    if path.stat().st_size == 0:
        raise DamagedDataError(f"{path} is empty; replace the file")
    try:
        if file.path.endswith(".npz"):
            arrays = load_npz(path)
        else:
            arrays = {"table": np.loadtxt(path, delimiter=",", dtype="<f8", ndmin=2)}
    except Exception as error:  # zip, zlib, header and memory errors all mean the same
        kind = "a readable .npz file" if file.path.endswith(".npz") else "a table of numbers"
        raise DamagedDataError(f"{path}: not {kind} ({described(error)})") from error
    for name, digest in file.digests.items():
        if name not in arrays:
            raise DamagedDataError(f"{path}: array {name!r} is missing; replace the file")
        if digest not in (
            None,
            hashlib.sha256(np.ascontiguousarray(arrays[name]).data).hexdigest(),
        ):
            raise DamagedDataError(
                f"{path}: array {name!r} is not the published {file.dataset} data; "
                "the file is damaged or another version: replace it"
            )
    return arrays


# --- downloading -------------------------------------------------------------------------------


def fetch(file: DataFile, data_dir: str | Path | None = None, *, progress: bool = False) -> Path:
    """Download a data file into the first data folder, and verify what it decodes to."""
    place = data_folders(data_dir)[0] / file.path
    if file.is_built:
        raise InputError(
            f"{file.dataset!r} is not downloaded: run `piefs data build {file.dataset}`"
        )
    if not file.urls:
        raise InputError(f"{file.dataset!r} cannot be downloaded; put its file at {place}")
    optional("pooch", "downloading data")
    failures = []
    for url in file.urls:
        try:
            with tempfile.TemporaryDirectory() as folder:
                downloaded = _download(file, url, Path(folder), progress)
                _decoded(file, downloaded)
                write_bytes(place, downloaded.read_bytes())
            return place
        except (DamagedDataError, OSError, ValueError) as error:  # also those of requests
            reason = "no connection" if _is_offline(error) else str(error).split("\n")[0][:200]
            failures.append(f"{url}: {reason}")
    raise InputError(
        f"{file.dataset!r} could not be downloaded ({'; '.join(failures)}); "
        f"put the file at {place} by hand"
    )


def _download(file: DataFile, url: str, folder: Path, progress: bool) -> Path:
    """Let pooch store what comes, up to a bound, and over https all the way."""
    from pooch import HTTPDownloader

    _require_https(url)
    target = folder / "download"
    with _progress(file.dataset, progress) as bar, _BoundedFile(target, file.most_bytes) as stream:
        HTTPDownloader(
            progressbar=bar,
            chunk_size=PIECE,
            timeout=TIMEOUT_SECONDS,
            hooks={"response": lambda response, *_, **__: _require_https(response.url)},
        )(url, stream, None)
    return _member(target, folder, file) if url.endswith(".zip") else target


def _require_https(url: str) -> None:
    """Refuse an address, or a redirection, that others could read or change on the way."""
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise ValueError(f"{url} is not https")


class _BoundedFile(io.FileIO):
    """A file that refuses to grow beyond a bound, whatever length the server announces."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        super().__init__(path, "wb")
        self.most_bytes = most_bytes

    def write(self, content: Any) -> int:
        """Append, unless that is too much."""
        if self.tell() + len(content) > self.most_bytes:
            raise ValueError(f"more than {self.most_bytes:,} bytes, which cannot be the data")
        return super().write(content)


class _Bar:
    """A progress bar of rich as pooch drives one, which sets `total` once it is known."""

    total: float | None = None

    def __init__(self, progress: Any, task: Any) -> None:
        self.progress, self.task = progress, task

    def update(self, n_bytes: int) -> None:
        """Count bytes received."""
        self.progress.update(self.task, advance=n_bytes, total=self.total or None)

    def reset(self) -> None:
        """Count from zero again."""
        self.progress.reset(self.task)

    def close(self) -> None:
        """Nothing: the bar vanishes when the download is over."""


@contextmanager
def _progress(name: str, is_shown: bool) -> Iterator[Any]:
    """What pooch takes for its progress bar: our own one, or False."""
    if not is_shown:
        yield False
        return
    from rich.progress import Progress

    with Progress(transient=True) as progress:
        yield _Bar(progress, progress.add_task(f"downloading {name}", total=None))


def _member(archive_path: Path, folder: Path, file: DataFile) -> Path:
    """The file in an archive, taken out under our own name: those inside decide no path."""
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


def _is_offline(error: Exception) -> bool:
    from requests import ConnectionError as NoConnection

    return isinstance(error, NoConnection)
