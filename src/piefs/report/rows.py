"""The rows that a page shows one by one: coordinates, cells, thumbnails, truth and prediction."""

from __future__ import annotations

import base64
from typing import Any, NamedTuple

import numpy as np

from piefs.data import Dataset, Split
from piefs.data.table import Table, texts
from piefs.report.scores import class_probabilities

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
    """Predictions for rows, their confidence, and the loss of each row."""

    predicted: np.ndarray
    confidence: np.ndarray
    loss: np.ndarray


def judge(readout: Any, part: Split, n_classes: int) -> Judged:
    """Predictions beside the truth: the loss is −log p of the true class, or the absolute error."""
    if not n_classes:
        predicted = np.asarray(readout.predict(part.x), np.float64)
        return Judged(predicted, np.ones(len(part)), np.abs(part.y - predicted))
    p = class_probabilities(readout, part.x, n_classes)
    of_truth = p[np.arange(len(part)), part.y]
    return Judged(p.argmax(axis=1), p.max(axis=1), -np.log(np.maximum(of_truth, 1e-12)))


def shown_rows(
    data: Dataset,
    phi: dict[str, np.ndarray],
    judged: dict[str, Judged],
    relevance: np.ndarray,
) -> dict[str, Any]:
    """A sample of all splits, the hardest held-out rows among them, as plain JSON."""
    chosen = _choose(data, judged, next(iter(phi.values())).shape[1])
    part = _joined([data.splits[name].take(rows) for name, rows in chosen.items()])
    split = np.repeat(np.arange(3), [len(rows) for rows in chosen.values()])
    places = np.concatenate(list(chosen.values()))
    document: dict[str, Any] = {
        "n": len(part.x),
        "split": pack(split, "uint8"),
        "place": pack(places, "int32"),
        "phi": pack(np.concatenate([phi[name][rows] for name, rows in chosen.items()])),
        "truth": pack(part.y, "float32" if data.is_regression else "int32"),
        "columns": [] if data.image_shape else _columns(data, part, relevance),
    }
    if part.table is not None:
        document["place"] = pack(np.asarray(part.table.lines), "int32")
        document["unit"] = part.table.unit
    if data.image_shape:
        document["images"] = _thumbnails(part.x)
    if judged:
        joined = [
            np.concatenate([judged[name][field][rows] for name, rows in chosen.items()])
            for field in range(3)
        ]
        kind = "float32" if data.is_regression else "int32"
        document |= {"predicted": pack(joined[0], kind), "confidence": pack(joined[1])}
        document["hardest"] = _hardest(joined[2], split)
        document["loss"] = pack(joined[2])
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


def _hardest(loss: np.ndarray, split: np.ndarray) -> list[int]:
    """The shown test rows of largest loss."""
    rows = np.flatnonzero(split == 2)
    return rows[np.argsort(-loss[rows], kind="stable")][:N_HARDEST].tolist()


def _joined(parts: list[Split]) -> Split:
    x, y = (np.concatenate([getattr(part, name) for part in parts]) for name in "xy")
    tables = [part.table for part in parts if part.table is not None]
    if len(tables) < len(parts):
        return Split(x, y)
    columns = {
        name: np.concatenate([table.columns[name] for table in tables]) for name in tables[0].names
    }
    lines = np.concatenate([np.asarray(table.lines) for table in tables])
    return Split(x, y, Table(columns, tables[0].source, lines, tables[0].unit))


def _columns(data: Dataset, part: Split, relevance: np.ndarray) -> list[dict[str, Any]]:
    """Names and cells as in the user's file; of very many columns, the most relevant."""
    most = max(3, min(MAX_COLUMNS, CELLS // len(part)))
    if part.table is not None:
        names = [name for name in part.table.names if name != data.target_name]
        kept = set(_most_relevant(names, data, relevance, most))
        return [
            {"name": name, "cells": _cells(part.table.columns[name])}
            for name in names
            if name in kept
        ]
    order = sorted(np.argsort(-relevance, kind="stable")[:most].tolist())
    return [{"name": data.feature_names[i], "cells": _cells(part.x[:, i])} for i in order]


def _most_relevant(names: list[str], data: Dataset, relevance: np.ndarray, most: int) -> list[str]:
    """Columns that are no feature (identifiers above all) first, then the most relevant."""
    weight = dict.fromkeys(names, np.inf)
    for feature, share in zip(data.feature_names, relevance, strict=True):
        name = feature if feature in weight else feature.split("=")[0]
        if name in weight:
            weight[name] = share if np.isinf(weight[name]) else max(weight[name], share)
    return sorted(names, key=lambda name: -weight[name])[:most]


def _cells(cells: np.ndarray) -> list[Any]:
    """Numbers to six digits, or short texts."""
    if cells.dtype.kind == "f":
        return [float(f"{value:.6g}") if np.isfinite(value) else None for value in cells]
    if cells.dtype.kind in "iu":
        return cells.tolist()
    return [text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…" for text in texts(cells)]


def _thumbnails(x: np.ndarray) -> dict[str, Any]:
    """Pixels as bytes, from the least to the greatest value of the rows shown."""
    low, high = float(x.min()), float(x.max())
    return pack(np.round(255 * (x - low) / ((high - low) or 1.0)), "uint8")
