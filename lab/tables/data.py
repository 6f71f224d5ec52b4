"""The tables, their splits, and their columns as a method takes them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

CLASSES = (
    *("australian", "banana", "bupa", "contraceptive", "crx", "heart", "letter", "magic"),
    *("mammographic", "optdigits", "penbased", "ring", "saheart", "satimage", "segment"),
    *("spambase", "splice", "titanic", "vehicle", "vowel"),
)
NUMBERS = (
    *("autoMpg", "bodyfat", "cholesterol", "cleveland", "cpu", "meta", "pbc", "pwLinear"),
    *("quake", "sensory", "servo", "strike"),
)
TABLES = (*CLASSES, *NUMBERS)
SPLITS = (100, 101, 102, 103, 104)
TEST_SHARE = 0.3


@dataclass(frozen=True)
class Table:
    """Columns and target: class indices, or numbers if `regression` is set."""

    name: str
    columns: pd.DataFrame
    y: np.ndarray
    regression: bool


@dataclass(frozen=True)
class Task:
    """Rows to fit and rows to score, in the form that a method takes."""

    x: pd.DataFrame
    y: np.ndarray
    x_test: pd.DataFrame
    y_test: np.ndarray
    regression: bool
    seed: int

    @property
    def categories(self) -> list[str]:
        """The columns that hold categories."""
        return list(self.x.select_dtypes("category").columns)


def read(name: str) -> Table:
    """A table of `$PIEFS_DATA/tables`: empty cells are gaps, columns of text hold categories."""
    path = Path(os.environ.get("PIEFS_DATA", ".")) / "tables" / f"{name}.csv"
    columns = pd.read_csv(path, keep_default_na=False, na_values=[""])
    target = columns.pop("target").to_numpy()
    regression = name in NUMBERS
    y = target.astype(float) if regression else np.unique(target, return_inverse=True)[1]
    return Table(name, columns, y, regression)


def cut(table: Table, split: int) -> tuple[np.ndarray, np.ndarray]:
    """70 % of the rows to fit and 30 % to score; class shares are kept."""
    strata = None if table.regression else table.y
    rows = np.arange(len(table.y))
    train, test = train_test_split(rows, test_size=TEST_SHARE, random_state=split, stratify=strata)
    return train, test


def task(table: Table, split: int, *, categories: bool, gaps: bool) -> Task:
    """One split; what a method does not take is one-hot encoded, or filled with the median.

    Everything is learned from the training rows: which columns vary, the categories there are
    (others are missing, or all zero), and the medians.
    """
    train, test = cut(table, split)
    x = table.columns.loc[:, table.columns.iloc[train].nunique(dropna=False) > 1]
    numbers = x.select_dtypes("number").astype(float)
    text = x[x.columns.difference(numbers.columns, sort=False)]
    if not gaps:
        numbers = numbers.fillna(numbers.iloc[train].median())
    known = {name: sorted(text[name].iloc[train].dropna().unique()) for name in text}
    codes = {
        name: pd.Categorical(text[name].where(text[name].isin(levels)), levels)
        for name, levels in known.items()
    }
    coded = pd.DataFrame(codes, index=x.index)
    if not categories and len(known):
        coded = pd.get_dummies(coded, dtype=float)
    x = pd.concat([numbers, coded], axis=1)
    y = table.y
    return Task(x.iloc[train], y[train], x.iloc[test], y[test], table.regression, split)
