"""The rows that a page shows one by one: coordinates, cells, thumbnails, truth and prediction."""

import base64
from typing import Any, NamedTuple

import numpy as np

from piefs.data import Dataset, Split
from piefs.data.table import texts

MAX_ROWS, MAX_COLUMNS, MAX_TEXT = 10_000, 30, 60
COORDINATES, PIXELS, CELLS = 250_000, 1_200_000, 200_000
"""The most of each that a page holds: some megabytes together."""
N_HARDEST = 12
SHARES = {"train": 0.3, "validation": 0.35, "test": 0.35}
PACKED_TYPES = ("uint8", "int32", "float32")


def pack(values: np.ndarray, kind: str = "float32") -> dict[str, Any]:
    """An array as {type, shape, bytes}: little-endian and in base64, a typed array to a browser."""
    values = np.ascontiguousarray(values, np.dtype(kind).newbyteorder("<"))
    content = base64.b64encode(values.tobytes()).decode()
    return {"type": kind, "shape": list(values.shape), "bytes": content}


def unpack(packed: dict[str, Any]) -> np.ndarray:
    """The array that was packed; a ValueError or KeyError if it is damaged."""
    if packed["type"] not in PACKED_TYPES:
        raise ValueError(f"unknown type {packed['type']!r}")
    content = base64.b64decode(packed["bytes"], validate=True)
    dtype = np.dtype(packed["type"]).newbyteorder("<")
    return np.frombuffer(content, dtype).reshape(packed["shape"])


class Judged(NamedTuple):
    """Predictions for rows, the probabilities of all classes if there are, and each row's loss."""

    predicted: np.ndarray
    probabilities: np.ndarray
    loss: np.ndarray


def judge(readout: Any, part: Split, n_classes: int) -> Judged:
    """Predictions beside the truth: the loss is −log p of the true class, or the absolute error.

    Classes without a training row have a probability of zero.
    """
    if not n_classes:
        predicted = np.asarray(readout.predict(part.x), np.float64)
        return Judged(predicted, np.ones((len(part), 1)), np.abs(part.y - predicted))
    p = np.asarray(readout.predict_proba(part.x))
    if p.shape[1] < n_classes:
        known, p = p, np.zeros((len(part), n_classes))
        p[:, readout.classes_] = known
    of_truth = p[np.arange(len(part)), part.y]
    return Judged(p.argmax(axis=1), p, -np.log(np.maximum(of_truth, 1e-12)))


def shown_rows(
    data: Dataset,
    phi: dict[str, np.ndarray],
    judged: dict[str, Judged],
    relevance: np.ndarray,
) -> dict[str, Any]:
    """A sample of all splits, the hardest held-out rows among them, as plain JSON."""
    chosen = _choose(data, judged, phi["train"].shape[1])
    parts = [data.splits[name].take(rows) for name, rows in chosen.items()]
    x, y = (np.concatenate([getattr(part, name) for part in parts]) for name in "xy")
    split = np.repeat(np.arange(3), [len(part) for part in parts])
    tables = [part.table for part in parts if part.table is not None]
    places, kind = list(chosen.values()), "float32" if data.is_regression else "int32"
    document: dict[str, Any] = {"n": len(x), "split": pack(split, "uint8"), "truth": pack(y, kind)}
    document["phi"] = pack(np.concatenate([phi[name][rows] for name, rows in chosen.items()]))
    cells = dict(zip(data.feature_names, x.T, strict=True))
    if tables:
        places, document["unit"] = [np.asarray(table.lines) for table in tables], tables[0].unit
        names = [name for name in tables[0].names if name != data.target_name]
        cells = {name: np.concatenate([t.columns[name] for t in tables]) for name in names}
    document["place"] = pack(np.concatenate(places), "int32")
    if data.image_shape:
        pixels = np.interp(x, (x.min(), x.max()), (0, 255)).round()
        document |= {"columns": [], "images": pack(pixels, "uint8")}
    else:
        shown = _most_relevant(cells, data, relevance, max(3, min(MAX_COLUMNS, CELLS // len(x))))
        document["columns"] = [{"name": name, "cells": _cells(cells[name])} for name in shown]
    if judged:
        of_rows = [[values[rows] for values in judged[name]] for name, rows in chosen.items()]
        predicted, p, loss = (np.concatenate(values) for values in zip(*of_rows, strict=True))
        document |= {"predicted": pack(predicted, kind), "confidence": pack(p.max(axis=1))}
        tested = np.flatnonzero(split == 2)
        hardest = tested[np.argsort(-loss[tested], kind="stable")][:N_HARDEST]
        document |= {"hardest": hardest.tolist(), "loss": pack(loss)}
    return document


def _choose(data: Dataset, judged: dict[str, Judged], k: int) -> dict[str, np.ndarray]:
    """Row numbers by split: all if the page can hold them, else a share of each."""
    n_pixels = data.train.x.shape[1] if data.image_shape else 1
    most = min(MAX_ROWS, COORDINATES // k, PIXELS // n_pixels)
    total = sum(map(len, data.splits.values()))
    rng = np.random.default_rng(0)
    chosen = {}
    for name, part in data.splits.items():
        n = len(part) if total <= most else min(len(part), int(most * SHARES[name]))
        rows = rng.choice(len(part), n, replace=False)
        if judged and name == "test":
            hardest = np.argsort(-judged[name].loss, kind="stable")[:N_HARDEST]
            rows = np.union1d(rows, hardest)
        chosen[name] = np.sort(rows)
    return chosen


def _most_relevant(
    columns: dict[str, np.ndarray], data: Dataset, relevance: np.ndarray, most: int
) -> list[str]:
    """Columns that are no feature (identifiers above all), then the most relevant; in order."""
    weight = dict.fromkeys(columns, np.inf)
    for feature, share in zip(data.feature_names, relevance, strict=True):
        name = feature if feature in weight else feature.split("=")[0]
        if name in weight:
            weight[name] = share if np.isinf(weight[name]) else max(weight[name], share)
    kept = sorted(columns, key=lambda name: -weight[name])[:most]
    return [name for name in columns if name in kept]


def _cells(cells: np.ndarray) -> list[Any]:
    """Numbers to six digits, or short texts."""
    if cells.dtype.kind == "f":
        return [float(f"{value:.6g}") if np.isfinite(value) else None for value in cells]
    if cells.dtype.kind in "iu":
        return cells.tolist()
    return [text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…" for text in texts(cells)]
