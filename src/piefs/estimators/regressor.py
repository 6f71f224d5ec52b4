"""The regressor: coordinates with a linear readout of numbers."""

from typing import Any, Literal

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_array

from piefs.data.rows import Rows
from piefs.errors import InputError
from piefs.estimators.base import Predictor
from piefs.estimators.dask import by_block
from piefs.estimators.inputs import checked_arrays, is_dask
from piefs.estimators.keywords import PARAMETERS
from piefs.estimators.rows import checked_weight
from piefs.training.solvers import Task


class PIEFSRegressor(RegressorMixin, Predictor):
    __doc__ = f"""Regressor on K ordered, orthonormal, smooth coordinates shaped by the target.
    {PARAMETERS}
    target_center_, target_scale_ : ndarrays of shape (n_outputs,)
        Mean and standard deviation of the targets: training and the readout of `model_` see them
        standardised.

    Examples
    --------
    >>> import numpy as np
    >>> from piefs import PIEFSRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2
    >>> model = PIEFSRegressor(4, steps_per_component=200, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(self, n_components: int | Literal["auto"] | None = None, **keywords: Any) -> None:
        super().__init__(n_components, **keywords)

    def __sklearn_tags__(self) -> Any:
        """Several numbers may be predicted at once."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _learned_targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, np.ndarray, Task]:
        X, y = checked_arrays(self, X, y, multi_output=True, y_numeric=True)
        self.single_output_, targets = np.ndim(y) == 1, _as_columns(y)
        self.target_center_, self.target_scale_ = _target_scaling(
            targets, checked_weight(sample_weight, X)
        )
        task = Task("regression", targets.shape[1])
        return X, self._standardized(targets), task

    def _targets_like(self, y: Any) -> np.ndarray:
        targets, n_outputs = _as_columns(check_array(y, ensure_2d=False)), len(self.target_center_)
        if targets.shape[1] != n_outputs:
            raise InputError(f"validation_data has {targets.shape[1]} targets, y has {n_outputs}")
        return self._standardized(targets)

    def _standardized(self, targets: np.ndarray) -> np.ndarray:
        return (targets - self.target_center_) / self.target_scale_

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The predicted numbers, shape (n,) or (n, n_outputs) as y was.

        With `return_std` a pair: beside them the standard deviations of their errors, which were
        learned on left-out rows, so that mean ± 1.96 of them hold 95 % of new targets. Only the
        solver "eigen" knows them.
        """
        if is_dask(X):
            return by_block(self, "predict", X)
        # In double precision: single cannot tell apart targets with a large common offset.
        outputs = self._outputs(X, lambda y: y * self.target_scale_ + self.target_center_)
        if not return_std:
            return outputs[:, 0] if self.single_output_ else outputs
        if self.model_.spread is None:
            raise InputError('return_std=True needs a model of solver="eigen"')
        deviations = np.exp(self.model_.spread(self._coordinates(X))) * self.target_scale_
        pair = outputs, deviations
        return tuple(one[:, 0] for one in pair) if self.single_output_ else pair


def _target_scaling(
    targets: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each target; a constant one keeps scale 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        center = np.average(targets, axis=0, weights=weight)
        deviation = np.sqrt(np.average((targets - center) ** 2, axis=0, weights=weight))
    if not np.isfinite(deviation).all():
        raise InputError("y has values whose squares overflow: divide it by a constant first")
    return center, np.where(deviation > 0, deviation, 1.0)


def _as_columns(y: np.ndarray) -> np.ndarray:
    return np.asarray(y, dtype=np.float64).reshape(len(y), -1)
