"""Training and test rows of every data set in the experiments, by name and split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from sklearn import datasets as sk
from sklearn.model_selection import train_test_split

from piefs.data import load
from piefs.training.config import PRESETS

N_FRESH = 100_000
FRESH_SEED = 2_000_003


@dataclass(frozen=True)
class Task:
    """Rows to fit, rows to choose settings on, rows to score, and how inputs are to be read.

    `y` holds class indices, or floats where `regression` is set.
    """

    x: np.ndarray
    y: np.ndarray
    x_validation: np.ndarray
    y_validation: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    image: bool = False
    regression: bool = False

    @property
    def standardize(self) -> bool:
        """Pixels stay as they are; tables are z-scored on the training rows."""
        return not self.image


def _plane(name: str) -> Callable[[int], Task]:
    """The paper's training rows, and many fresh ones to score on, drawn from the same law."""

    def make(split: int) -> Task:
        data = load(name)
        if name == "two-moons":
            x, y = sk.make_moons(N_FRESH, noise=0.1, random_state=FRESH_SEED)
        else:
            x, y = sk.make_circles(N_FRESH, noise=0.05, factor=0.5, random_state=FRESH_SEED)
        held = data.validation
        return Task(data.train.x, data.train.y, held.x, held.y, x, y)

    return make


def _htru2(split: int) -> Task:
    data = load("htru2", split_seed=split)
    return Task(
        data.train.x, data.train.y, data.validation.x, data.validation.y, data.test.x, data.test.y
    )


def _mnist(split: int) -> Task:
    """All 60,000 training images, and all 10,000 test images."""
    data = load("mnist")
    x = np.concatenate([data.validation.x, data.test.x])
    y = np.concatenate([data.validation.y, data.test.y])
    return Task(data.train.x, data.train.y, data.train.x[:0], data.train.y[:0], x, y, image=True)


def _mnist_rest(split: int) -> Task:
    """50,000 training images, and the other 10,000 for test: rows of the same writers."""
    data = load("mnist")
    order = np.random.default_rng(split).permutation(len(data.train.x))
    kept, rest = order[:50_000], order[50_000:]
    x, y = data.train.x, data.train.y
    return Task(x[kept], y[kept], x[:0], y[:0], x[rest], y[rest], image=True)


def _embedding(split: int) -> Task:
    data = load("cifar10-embedding")
    return Task(
        data.train.x, data.train.y, data.validation.x, data.validation.y, data.test.x, data.test.y
    )


def _cut(
    x: np.ndarray, y: np.ndarray, split: int, *, image: bool = False, regression: bool = False
) -> Task:
    """60/10/30 at random, class shares kept."""
    strata = None if regression else y
    rest, test = train_test_split(
        np.arange(len(y)), test_size=0.3, stratify=strata, random_state=split
    )
    strata = None if regression else y[rest]
    train, held = train_test_split(rest, test_size=1 / 7, stratify=strata, random_state=split)
    y = y.astype(float) if regression else np.unique(y, return_inverse=True)[1]
    parts = [array[rows] for rows in (train, held, test) for array in (x, y)]
    return Task(*parts, image=image, regression=regression)


def _bundled(loader: Callable, *, regression: bool = False) -> Callable[[int], Task]:
    def make(split: int) -> Task:
        x, y = loader(return_X_y=True)
        return _cut(np.asarray(x, float), np.asarray(y), split, regression=regression)

    return make


def _generated(generator: Callable, *, regression: bool = False, **keywords: object) -> Callable:
    def make(split: int) -> Task:
        x, y = generator(random_state=1000 + split, **keywords)
        return _cut(x, y, split, regression=regression)

    return make


PAPER_SETS: dict[str, Callable[[int], Task]] = {
    "two-moons": _plane("two-moons"),
    "circles": _plane("circles"),
    "htru2": _htru2,
    "mnist": _mnist,
    "cifar10-embedding": _embedding,
    "mnist-same-writers": _mnist_rest,
}

OTHER_CLASSES: dict[str, Callable[[int], Task]] = {
    "digits": _bundled(sk.load_digits),
    "breast-cancer": _bundled(sk.load_breast_cancer),
    "wine": _bundled(sk.load_wine),
    "iris": _bundled(sk.load_iris),
    "hastie": _generated(sk.make_hastie_10_2, n_samples=6000),
    "gaussian-quantiles": _generated(
        sk.make_gaussian_quantiles, n_samples=4000, n_features=10, n_classes=4
    ),
    "hypercube": _generated(
        sk.make_classification,
        n_samples=4000,
        n_features=30,
        n_informative=8,
        n_classes=5,
        n_clusters_per_class=2,
    ),
}

OTHER_NUMBERS: dict[str, Callable[[int], Task]] = {
    "diabetes": _bundled(sk.load_diabetes, regression=True),
    "friedman-1": _generated(sk.make_friedman1, regression=True, n_samples=3000, noise=1.0),
    "friedman-2": _generated(sk.make_friedman2, regression=True, n_samples=3000, noise=50.0),
    "friedman-3": _generated(sk.make_friedman3, regression=True, n_samples=3000, noise=0.1),
}

SETS = PAPER_SETS | OTHER_CLASSES | OTHER_NUMBERS


for name, changes in {"default": {"whiten": False}, "paper": {"whiten": True}}.items():
    other = f"{name}, {'' if changes['whiten'] else 'not '}whitened"
    PRESETS[other] = replace(PRESETS[name], preset=other, **changes)
