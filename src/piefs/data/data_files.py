"""Finding data files and verifying what they decode to.

A digest is taken of the decoded array's bytes, not of the file: any mirror or re-packing of the
same data serves, and a damaged file never does.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pooch

from piefs.data.array_files import load_arrays
from piefs.data.documents import described
from piefs.errors import DamagedDataError, DataNotFoundError


@dataclass(frozen=True)
class DataFile:
    """A file below a data folder, the sha256 of each array it must decode to, and its sources.

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
    """Where data is looked for: `data_dir` if given, else $PIEFS_DATA, else the user's cache."""
    if data_dir is not None:
        return [Path(data_dir)]
    named = os.environ.get("PIEFS_DATA")
    return [*([Path(named)] if named else []), Path(pooch.os_cache("piefs"))]


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


def verify(file: DataFile, arrays: dict[str, np.ndarray], path: Path) -> dict[str, np.ndarray]:
    """The arrays, if each has the bytes that it should have."""
    for name, digest in file.digests.items():
        if name not in arrays:
            raise DamagedDataError(f"{path}: array {name!r} is missing; replace the file")
        if digest is None:
            continue
        if hashlib.sha256(np.ascontiguousarray(arrays[name]).data).hexdigest() != digest:
            raise DamagedDataError(
                f"{path}: array {name!r} is not the published {file.dataset} data; "
                "the file is damaged or another version: replace it"
            )
    return arrays


def read_npz(file: DataFile, data_dir: str | Path | None = None) -> dict[str, np.ndarray]:
    """The verified arrays of an `.npz` file."""
    return decode_npz(file, locate(file, data_dir))


def decode_npz(file: DataFile, path: Path) -> dict[str, np.ndarray]:
    """The arrays of one `.npz` file, if they are what they should be."""
    try:
        with path.open("rb") as stream:
            arrays = load_arrays(stream, path)
    except Exception as error:  # zip, zlib, header and memory errors: all mean the same
        raise DamagedDataError(f"{path}: not a readable .npz file ({described(error)})") from error
    return verify(file, arrays, path)


def read_table(file: DataFile, data_dir: str | Path | None = None) -> np.ndarray:
    """The verified numbers of a comma-separated file without header."""
    return decode_table(file, locate(file, data_dir))


def decode_table(file: DataFile, path: Path) -> np.ndarray:
    """The numbers of one file, if they are what they should be."""
    if path.stat().st_size == 0:
        raise DamagedDataError(f"{path} is empty; replace the file")
    try:
        table = np.loadtxt(path, delimiter=",", dtype="<f8", ndmin=2)
    except (OSError, ValueError) as error:
        raise DamagedDataError(f"{path}: not a table of numbers ({described(error)})") from error
    return verify(file, {"table": table}, path)["table"]
