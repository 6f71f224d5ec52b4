"""Finding, downloading and verifying data files.

A digest is taken of the decoded array's bytes, not of the file: any mirror or re-packing of the
same data serves, and a damaged file never does. Nothing takes its place before it is verified.
"""

import hashlib
import io
import os
import tempfile
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from piefs.data.binary import load_npz
from piefs.data.files import described, optional, reading, write_bytes
from piefs.errors import DamagedDataError, DataNotFoundError, InputError

TIMEOUT_SECONDS = 30
PIECE = 2**16
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class DataFile:
    """A file in a data folder, the sha256 of each array it must decode to, and its source.

    A source ending in `.zip` holds the file as a member of its own name. A file that users build
    themselves has no digests. More than `most_bytes` are neither downloaded nor unpacked.
    """

    dataset: str
    path: str
    digests: dict[str, str | None]
    url: str = ""
    is_built: bool = False
    most_bytes: int = 64 * 2**20

    @property
    def command(self) -> str:
        """The command that brings the file, if there is one."""
        verb = "fetch" if self.url else "build" if self.is_built else ""
        return verb and f"piefs data {verb} {self.dataset}"


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
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
    ),
    "htru2": DataFile(
        "htru2",
        "htru2/HTRU_2.csv",
        {"table": "bff7e0d962f5762938f833075d6bbfd3ce229cdcfb30091b4ecaa7dca4a81a74"},
        "https://archive.ics.uci.edu/static/public/372/htru2.zip",
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
    folders = [Path(named)] if (named := os.environ.get("PIEFS_DATA")) else []
    if not folders or find_spec("platformdirs"):  # a plain install has none
        platformdirs = optional("platformdirs", "a search without data_dir or $PIEFS_DATA")
        folders.append(Path(platformdirs.user_cache_dir("piefs")))
    return folders


def locate(file: DataFile, data_dir: str | Path | None = None) -> Path:
    """The first existing copy of a file."""
    places = [folder / file.path for folder in data_folders(data_dir)]
    for place in places:
        if place.is_file():
            return place
    bring = f"run `{file.command}`, or " if file.command else ""
    raise DataNotFoundError(
        f"data set {file.dataset!r} not found: {bring}put its file at "
        f"{' or '.join(map(str, places))}, or point --data-dir or $PIEFS_DATA at a folder that "
        "holds it"
    )


def read_arrays(file: DataFile, data_dir: str | Path | None = None) -> dict[str, np.ndarray]:
    """The verified arrays of an `.npz` file, or the numbers of a CSV without header as `table`."""
    path = locate(file, data_dir)
    with reading(path, "replace the file", DamagedDataError):
        if file.path.endswith(".npz"):
            arrays = load_npz(path)
        else:
            arrays = {"table": np.loadtxt(path, delimiter=",", dtype="<f8", ndmin=2)}
    for name, digest in file.digests.items():
        if name not in arrays:
            raise DamagedDataError(f"{path}: array {name!r} is missing; replace the file")
        content = np.ascontiguousarray(arrays[name]).data
        if digest is not None and hashlib.sha256(content).hexdigest() != digest:
            raise DamagedDataError(
                f"{path}: array {name!r} is not the published {file.dataset} data; "
                "the file is damaged or another version: replace it"
            )
    return arrays


def fetch(file: DataFile, data_dir: str | Path | None = None) -> Path:
    """Download a data file into the first data folder, and verify what it decodes to."""
    place = data_folders(data_dir)[0] / file.path
    if not file.url:
        build = f"run `{file.command}`, or " if file.command else ""
        raise InputError(f"{file.dataset!r} cannot be downloaded: {build}put its file at {place}")
    requests = optional("requests", "downloading data")
    try:
        content = _downloaded(file)
        with tempfile.TemporaryDirectory() as folder:
            write_bytes(Path(folder, file.path), content)
            read_arrays(file, folder)
    except (OSError, ValueError) as error:  # also those of requests, and ours
        offline = isinstance(error, requests.ConnectionError)
        reason = "no connection" if offline else described(error)
        raise InputError(
            f"{file.dataset!r} could not be downloaded ({file.url}: {reason}); "
            f"put the file at {place} by hand"
        ) from error
    write_bytes(place, content)
    return place


def _downloaded(file: DataFile) -> bytes:
    """What is at the address, up to a bound that no announced length changes, by https alone."""
    import requests

    def require_https(address: str) -> None:
        parts = urlsplit(address)
        if parts.scheme != "https" and parts.hostname not in LOOPBACK:
            raise ValueError(f"{address} is not https")

    require_https(file.url)
    hooks = {"response": lambda response, **_: require_https(response.url)}  # redirections too
    content = bytearray()
    with requests.get(file.url, stream=True, timeout=TIMEOUT_SECONDS, hooks=hooks) as response:
        response.raise_for_status()
        for piece in response.iter_content(PIECE):
            content += piece
            if len(content) > file.most_bytes:
                raise ValueError(f"more than {file.most_bytes:,} bytes, which cannot be the data")
    return _member(io.BytesIO(content), file) if file.url.endswith(".zip") else bytes(content)


def _member(stream: io.BytesIO, file: DataFile) -> bytes:
    """The file in an archive, which decides no path."""
    name = Path(file.path).name
    with reading(Path(name), "replace it", DamagedDataError), zipfile.ZipFile(stream) as archive:
        content = archive.open(name).read(file.most_bytes + 1)
    if len(content) > file.most_bytes:
        raise DamagedDataError(f"{name} unpacks to more than {file.most_bytes:,} bytes")
    return content
