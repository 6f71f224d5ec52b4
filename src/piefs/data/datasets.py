"""Data sets cut into training, validation and test rows; those of the paper (Sec. 3.1) by name.

Splits are stratified and fixed by `split_seed`; a run's own seed never changes them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from piefs.data.fetch import FILES, read_arrays
from piefs.data.table import Table
from piefs.errors import InputError


@dataclass(frozen=True)
class Split:
    """Rows and their labels, or the numbers to predict; `table` has them as they are in a file."""

    x: np.ndarray
    y: np.ndarray
    table: Table | None = None

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: np.ndarray) -> "Split":
        """The given rows, in the given order."""
        table = None if self.table is None else self.table.take(rows)
        return Split(self.x[rows], self.y[rows], table)


@dataclass(frozen=True)
class Dataset:
    """Three splits and what is needed to read them.

    `y` holds class indices into `class_names`, or numbers (float64), and then `class_names` is
    empty; `target_name` is what a figure calls them. If training rows stay in a file, `sample` are
    some of them in memory. Training rows of one of the `groups` belong together. `standardize` says
    whether inputs are to be scaled; `image_shape` is set if a row is an image.
    """

    name: str
    train: Split
    validation: Split
    test: Split
    class_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    description: str = ""
    standardize: bool = False
    image_shape: tuple[int, int] | None = None
    target_name: str = "y"
    sample: Split | None = None
    groups: np.ndarray | None = None

    @property
    def splits(self) -> dict[str, Split]:
        """The splits by name."""
        return {"train": self.train, "validation": self.validation, "test": self.test}

    @property
    def is_regression(self) -> bool:
        """Whether there are numbers to predict, not classes."""
        return not self.class_names

    @property
    def in_memory(self) -> "Dataset":
        """The same with training rows in memory: a sample if they are in a file."""
        return self if self.sample is None else replace(self, train=self.sample, sample=None)

    def head(self, n: int) -> "Dataset":
        """The same data set with at most n rows in each split: a sample for a quick look."""
        parts = {name: part.take(np.arange(len(part))[:n]) for name, part in self.splits.items()}
        return replace(self, **parts, groups=None if self.groups is None else self.groups[:n])


def split_stratified(
    x: np.ndarray, y: np.ndarray, fractions: tuple[float, float] = (0.15, 0.15), seed: int = 0
) -> tuple[Split, Split, Split]:
    """Training, validation and test rows, class shares kept; `fractions` are the latter two's."""
    from sklearn.model_selection import train_test_split

    n_validation, n_test = (round(fraction * len(y)) for fraction in fractions)
    rest, test = train_test_split(
        np.arange(len(y)), test_size=n_test, stratify=y, random_state=seed
    )
    train, validation = train_test_split(
        rest, test_size=n_validation, stratify=y[rest], random_state=seed
    )
    return Split(x[train], y[train]), Split(x[validation], y[validation]), Split(x[test], y[test])


HTRU2_FEATURES = tuple(
    f"{statistic} of the {curve}"
    for curve in ("profile", "DM-SNR curve")
    for statistic in ("mean", "standard deviation", "excess kurtosis", "skewness")
)
DIGITS = tuple("0123456789")
CIFAR10_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)


def _stratified(name: str, points: Any, split_seed: int, *about: Any, **options: Any) -> Dataset:
    x, y = np.asarray(points[0], np.float32), np.asarray(points[1], np.int32)
    return Dataset(name, *split_stratified(x, y, seed=split_seed), *about, **options)


def two_moons(data_dir: str | Path | None = None, split_seed: int = 0) -> Dataset:
    """Two interleaved half circles, noise 0.1."""
    from sklearn.datasets import make_moons

    points = make_moons(n_samples=10_000, noise=0.1, random_state=0)
    return _stratified("two-moons", points, split_seed, ("0", "1"), ("x1", "x2"))


def circles(data_dir: str | Path | None = None, split_seed: int = 0) -> Dataset:
    """Two concentric circles, noise 0.05, radii 0.5 and 1.

    The paper gives no ratio of radii. At scikit-learn's default of 0.8 the noise makes the classes
    overlap, and the reported 99.9 % would exceed what any classifier can reach.
    """
    from sklearn.datasets import make_circles

    points = make_circles(n_samples=10_000, noise=0.05, factor=0.5, random_state=0)
    return _stratified("circles", points, split_seed, ("0", "1"), ("x1", "x2"))


def digits(data_dir: str | Path | None = None, split_seed: int = 0) -> Dataset:
    """scikit-learn's 8×8 digits, in [0, 1]."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    points = np.asarray(x) / 16, y
    return _stratified("digits", points, split_seed, DIGITS, _pixel_names(8), image_shape=(8, 8))


def htru2(data_dir: str | Path | None = None, split_seed: int = 0) -> Dataset:
    """Pulsar candidates (Lyon et al. 2016): eight features, z-scored."""
    table = read_arrays(FILES["htru2"], data_dir)["table"]
    points, names = (table[:, :8], table[:, 8]), (("noise", "pulsar"), HTRU2_FEATURES)
    return _stratified("htru2", points, split_seed, *names, standardize=True)


def mnist(data_dir: str | Path | None = None, split_seed: int = 0) -> Dataset:
    """MNIST in [0, 1]: 60k training images; the 10k test images cut at random into 5k and 5k.

    At random, because the two halves of the test file differ in difficulty.
    """
    from sklearn.model_selection import train_test_split

    arrays = read_arrays(FILES["mnist"], data_dir)
    train, rest = _part(arrays, "train", 255), _part(arrays, "test", 255)
    validation, test = train_test_split(
        np.arange(10_000), test_size=5_000, stratify=rest.y, random_state=split_seed
    )
    splits = (train, rest.take(np.asarray(validation)), rest.take(np.asarray(test)))
    return Dataset("mnist", *splits, DIGITS, _pixel_names(28), image_shape=(28, 28))


def cifar10_embedding(data_dir: str | Path | None = None, split_seed: int = 0) -> Dataset:
    """CIFAR-10 as 512 features of an ImageNet-trained VGG16, z-scored; 45k/5k/10k, fixed.

    A stand-in for the paper's ResNet-18 embeddings, not the same data.
    """
    return _embeddings("cifar10-embedding", "vgg", data_dir)


def cifar10_r18(data_dir: str | Path | None = None, split_seed: int = 0) -> Dataset:
    """CIFAR-10 as 512 features of a ResNet-18, the paper's data; made by `piefs data build`."""
    return _embeddings("cifar10-r18", "resnet", data_dir)


def _embeddings(name: str, prefix: str, data_dir: str | Path | None) -> Dataset:
    arrays = read_arrays(FILES[name], data_dir)
    splits = (_part(arrays, "train"), _part(arrays, "val"), _part(arrays, "test"))
    features = tuple(f"{prefix}{i}" for i in range(splits[0].x.shape[1]))
    return Dataset(name, *splits, CIFAR10_CLASSES, features, standardize=True)


def _part(arrays: dict[str, np.ndarray], name: str, scale: int = 1) -> Split:
    x = arrays[f"x_{name}"]
    x = x.reshape(len(x), -1).astype(np.float32) / scale
    return Split(x, arrays[f"y_{name}"].astype(np.int32))


def _pixel_names(side: int) -> tuple[str, ...]:
    return tuple(f"pixel_{row}_{column}" for row in range(side) for column in range(side))


_LOADERS = (two_moons, circles, digits, htru2, mnist, cifar10_embedding, cifar10_r18)
BUILTIN: dict[str, Callable[..., Dataset]] = {
    loader.__name__.replace("_", "-"): loader for loader in _LOADERS
}


def load(name: str, data_dir: str | Path | None = None, split_seed: int = 0) -> Dataset:
    """A built-in data set by name, one of `BUILTIN`.

    Data files are looked for in `data_dir`, by default in $PIEFS_DATA and the user's cache;
    `split_seed` decides which rows fall into which split.
    """
    if name not in BUILTIN:
        raise InputError(f"unknown data set {name!r}; choose one of {', '.join(BUILTIN)}")
    dataset = BUILTIN[name](data_dir, split_seed)
    return replace(dataset, description=str(BUILTIN[name].__doc__).splitlines()[0])
