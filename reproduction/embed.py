"""Making the paper's CIFAR-10 data: 512-d penultimate activations of a pretrained ResNet-18.

Images and weights come from torchvision, which downloads both, so this needs a network and the
dependency group `embed`. What is made is kept as a file, and read from then on like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from piefs.data.fetch import FILES, data_folders
from piefs.data.files import write_with
from piefs.errors import InputError

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, as the weights expect
SIDE, BATCH, N_TRAIN = 224, 64, 45_000

Report = Callable[[int, int], None]


def build_cifar10_r18(
    data_dir: str | Path | None = None, report: Report = lambda done, total: None
) -> Path:
    """Download images and weights, embed, and write the file; its path."""
    torchvision = _torchvision()
    path = data_folders(data_dir)[0] / FILES["cifar10-r18"].path
    downloads = path.parent / "downloads"
    try:
        parts = [
            torchvision.datasets.CIFAR10(downloads, train=train, download=True)
            for train in (True, False)
        ]
        weights = torchvision.models.ResNet18_Weights.IMAGENET1K_V1
        network = torchvision.models.resnet18(weights=weights)
    except OSError as error:
        raise InputError(
            f"CIFAR-10 or the weights of ResNet-18 could not be downloaded ({error}); "
            "try again with a network, or use cifar10-embedding instead"
        ) from error
    images = np.concatenate([part.data for part in parts])
    labels = np.concatenate([part.targets for part in parts])
    embedded = embed(network, images, report=report)
    save_splits(path, embedded, labels.astype(np.uint8), n_test=len(parts[1]))
    return path


def _torchvision() -> Any:
    try:
        import torchvision  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise InputError(
            "building cifar10-r18 needs torchvision: pip install torchvision"
        ) from error
    return torchvision


def embed(
    network: Any,
    images: np.ndarray,
    *,
    side: int = SIDE,
    report: Report = lambda done, total: None,
) -> np.ndarray:
    """What a ResNet feeds its last layer, for images of shape (n, h, w, 3) with bytes: (n, 512)."""
    import torch  # pyright: ignore[reportMissingImports]

    network.fc = torch.nn.Identity()
    network.eval()
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, STD))
    out = []
    with torch.inference_mode():
        for start, batch in _batches(images):
            x = torch.from_numpy(batch).permute(0, 3, 1, 2).float() / 255
            x = torch.nn.functional.interpolate(x, (side, side), mode="bilinear", antialias=True)
            out.append(network((x - mean) / std).numpy())
            report(start + len(batch), len(images))
    return np.concatenate(out).astype(np.float32)


def _batches(images: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    for start in range(0, len(images), BATCH):
        yield start, np.ascontiguousarray(images[start : start + BATCH])


def save_splits(path: Path, x: np.ndarray, y: np.ndarray, n_test: int) -> None:
    """45,000 training and 5,000 validation rows drawn at random, then the official test rows."""
    n = len(x) - n_test
    order = np.random.default_rng(0).permutation(n)
    n_train = round(n * N_TRAIN / 50_000)
    rows = {
        "train": order[:n_train],
        "val": order[n_train:],
        "test": np.arange(n, len(x)),
    }
    arrays: dict[str, Any] = {f"x_{name}": x[chosen] for name, chosen in rows.items()}
    arrays |= {f"y_{name}": y[chosen] for name, chosen in rows.items()}
    write_with(path, lambda temporary: np.savez_compressed(temporary, **arrays))
