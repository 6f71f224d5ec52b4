"""Dask collections: rows to fit that stay on a cluster, and rows to predict, block by block.

A fit sends functions to where the rows are, and takes their sums: it is the fit of one process. In
prediction a block of rows is given to the same method that takes arrays and tables in memory, so
results are the same, and so are the checks: they are made at once, on a row that stands for all.
"""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from piefs.data.rows import LazyRows, added
from piefs.errors import InputError

LEFT_BEHIND = (
    *("coordinates_", "left_out_", "history_"),  # new rows do not need them
    *("feature_names_in_", "_sklearn_output_config"),  # what they decide is decided here
)


CHUNK_ROWS = 2**16
"""Rows of a piece: a whole number of the blocks that are summed in one process."""

AT_ONCE = 8  # pieces that are computed before the next ones are asked for


class DaskRows(LazyRows):
    """The rows of a Dask array or dataframe, where a fit finds them."""

    is_far = True

    def __init__(self, X: Any) -> None:
        array = X.to_dask_array(lengths=True) if hasattr(X, "to_dask_array") else X
        if array.ndim != 2 or np.isnan(array.shape).any():
            raise InputError(f"a fit takes a Dask array of shape (rows, columns), not {X!r}")
        self.array = array.rechunk((CHUNK_ROWS, -1))
        self.shape, self.dtype = array.shape, array.dtype

    def __getitem__(self, index: Any) -> np.ndarray:
        return np.asarray(self.array[index].compute())

    def mapped(self, function: Any, size: int, *along: np.ndarray) -> Iterator[Any]:
        """function(first row, block, …) of all blocks, in order."""
        for found in self._computed(_of_blocks, function, size, along):
            yield from found

    def summed(self, function: Any, size: int, *along: np.ndarray) -> Any:
        """The sum of what it gives for all blocks."""
        return added(self._computed(_sum_of_blocks, function, size, along))

    def _computed(self, what: Any, function: Any, size: int, along: Any) -> Iterator[Any]:
        from dask.base import compute
        from dask.delayed import delayed

        pieces, tasks, function = self.array.to_delayed().ravel(), [], _sent(function)
        for i, piece in enumerate(pieces):
            start = i * CHUNK_ROWS
            own = [a[start : start + CHUNK_ROWS] for a in along]
            tasks.append(delayed(what)(function, piece, start, size, *own))
        for i in range(0, len(tasks), AT_ONCE):
            yield from compute(*tasks[i : i + AT_ONCE])


def _sent(function: Any) -> Any:
    """The function on all workers, if there is a cluster: it may hold many megabytes."""
    try:
        from distributed import get_client

        return get_client().scatter(function, broadcast=True, hash=False)
    except (ImportError, ValueError):  # no cluster: threads, or this process
        return function


def _of_blocks(function: Any, piece: Any, first: int, size: int, *along: Any) -> list[Any]:
    starts = range(0, len(piece), size)
    blocks = ([a[i : i + size] for a in (np.asarray(piece), *along)] for i in starts)
    return [function(first + i, *block) for i, block in zip(starts, blocks, strict=True)]


def _sum_of_blocks(*arguments: Any) -> Any:
    return added(_of_blocks(*arguments))


def by_block(estimator: Any, method: str, X: Any) -> Any:
    """What a fitted estimator's method says of the rows of a Dask collection."""
    check_is_fitted(estimator)
    from dask.array import Array

    if hasattr(X, "_meta_nonempty") and X.ndim == 2:
        answer = _answer(estimator, method, X._meta_nonempty)
        output = "default" if isinstance(answer, np.ndarray) else "pandas"
        model = _to_send(estimator, np.asarray(X.columns, dtype=object), output)
        return X.map_partitions(of_block, model, method, answer, meta=answer)
    if isinstance(X, Array) and X.ndim == 2:
        return _of_array(estimator, method, X)
    raise InputError(
        f"{method} takes a Dask array of shape (rows, columns) or a Dask dataframe, not {X!r}"
    )


def _of_array(estimator: Any, method: str, X: Any) -> Any:
    answer = _answer(estimator, method, np.zeros((1, X.shape[1]), X.dtype))
    values = np.asarray(answer)
    shape: dict[str, Any] = (
        {"drop_axis": 1} if values.ndim == 1 else {"chunks": (X.chunks[0], values.shape[1:])}
    )
    model = _to_send(estimator, None, "default")
    blocks = X.rechunk({1: -1}).map_blocks(
        of_block, model=model, method=method, answer=values, meta=values, **shape
    )
    if isinstance(answer, np.ndarray):
        return blocks
    from dask import dataframe

    return dataframe.from_dask_array(blocks, columns=list(answer.columns))


def _answer(estimator: Any, method: str, row: Any) -> Any:
    """What a method says of no rows, once it has checked one that is like all others."""
    answer = getattr(estimator, method)(row)[:0]
    if type(answer).__module__.startswith("polars"):
        raise InputError(
            'Dask dataframes are made of pandas ones: set_output(transform="pandas"), or "default" '
            "for an array"
        )
    return answer


def _to_send(estimator: Any, names: np.ndarray | None, output: str) -> Any:
    """A small copy of a fitted estimator, which travels once to each worker.

    It expects the columns checked already, and gives the output that was asked for here.
    """
    from dask.delayed import delayed

    model = copy.copy(estimator)
    for name in LEFT_BEHIND:
        model.__dict__.pop(name, None)
    if names is not None and all(isinstance(name, str) for name in names):
        model.feature_names_in_ = names
    model.callbacks = None
    return delayed(model.set_output(transform=output))


def of_block(block: Any, model: Any, method: str, answer: Any) -> Any:
    """A method of a model on a block of rows; what it says of none is known."""
    return getattr(model, method)(block) if len(block) else answer
