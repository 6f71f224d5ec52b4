"""A data set cut into training, validation and test rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from sklearn.model_selection import train_test_split


@dataclass(frozen=True)
class Split:
    """Rows and their labels."""

    x: np.ndarray
    y: np.ndarray

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True)
class Dataset:
    """Three splits and what is needed to read them.

    `y` holds class indices into `class_names`. `standardize` says whether inputs are to be z-scored
    on training statistics; `image_shape` is set where a row is an image.
    """

    name: str
    train: Split
    validation: Split
    test: Split
    class_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    description: str
    standardize: bool = False
    image_shape: tuple[int, int] | None = None
    splits: dict[str, Split] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        splits = {"train": self.train, "validation": self.validation, "test": self.test}
        object.__setattr__(self, "splits", splits)

    def head(self, n: int) -> Dataset:
        """The same data set with at most n rows in each split: a sample for a quick look."""
        parts = {name: Split(part.x[:n], part.y[:n]) for name, part in self.splits.items()}
        return replace(self, **parts)


def split_stratified(
    x: np.ndarray, y: np.ndarray, fractions: tuple[float, float] = (0.15, 0.15), seed: int = 0
) -> tuple[Split, Split, Split]:
    """Training, validation and test rows, class shares kept; `fractions` are the latter two's.

    The paper's low-dimensional sets are cut 70/15/15.
    """
    n_validation, n_test = (round(fraction * len(y)) for fraction in fractions)
    rest, test = train_test_split(
        np.arange(len(y)), test_size=n_test, stratify=y, random_state=seed
    )
    train, validation = train_test_split(
        rest, test_size=n_validation, stratify=y[rest], random_state=seed
    )
    return Split(x[train], y[train]), Split(x[validation], y[validation]), Split(x[test], y[test])
