"""What a fitted estimator says of rows, how good their coordinates are, and how it is kept.

Training is in `base.py`; all that is here works on a model that is finished.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.base import TransformerMixin, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import _num_features, _num_samples, check_is_fitted

from piefs.core.ritz import Ritz, ritz
from piefs.errors import InputError
from piefs.estimators.inputs import checked_arrays
from piefs.training.config import Settings
from piefs.training.evaluation import evaluate

if TYPE_CHECKING:
    from jax import Array


class Coordinates(TransformerMixin):
    """The methods of fitted estimators that all of them share."""

    standardize: bool
    model_: Any
    settings_: Settings
    center_: np.ndarray
    scale_: np.ndarray
    gram_: np.ndarray
    dirichlet_: np.ndarray
    left_out_: np.ndarray | None
    fit: Callable[..., Any]
    check_settings: Callable[..., Settings]

    def fit_transform(
        self, X: Any, y: Any = None, *, cross_fit: bool = False, **fit_params: Any
    ) -> np.ndarray:
        """Fit, and give the coordinates of the training rows.

        With `cross_fit` they are those as if each row had been left out, which only the solver
        "eigen" knows: what a model trained on top of them should be given, since coordinates that
        were shaped by labels flatter the rows they were fitted on. `cross_fit_scores_` then has the
        score on the rows themselves and on rows left out.
        """
        if not cross_fit:
            return self.fit(X, y, **fit_params)._coordinates(X)
        settings = self.check_settings(_num_samples(X), n_features=_num_features(X))
        if cross_fit is not True or settings.solver != "eigen":
            raise InputError(
                f"cross_fit={cross_fit}: True gives left-out coordinates in closed form; take "
                'solver="eigen", or scikit-learn\'s cross_val_predict(method="transform")'
            )
        self.fit(X, y, **fit_params)
        if self.left_out_ is None:
            raise InputError(
                "cross_fit=True needs labels, of 50,000 rows at most: without labels no coordinate "
                'flatters, and of more rows take cross_val_predict(method="transform")'
            )
        self.cross_fit_scores_ = self._scores(X, y, self.left_out_[: len(X)])
        return self.left_out_[: len(X)]

    def _scores(self, X: Any, y: Any, left_out: np.ndarray) -> dict[str, float] | None:
        """The score on the training rows and on rows left out; None without a score."""
        estimator: Any = self
        if not hasattr(estimator, "score"):
            return None
        outputs = self.model_.readout(left_out)
        if is_classifier(estimator):
            held_out = accuracy_score(y, estimator.classes_[outputs.argmax(axis=1)])
        else:
            numbers = outputs * estimator.target_scale_ + estimator.target_center_
            held_out = r2_score(np.reshape(y, numbers.shape), numbers)
        return {"train": estimator.score(X, y), "held_out": float(held_out)}

    def transform(self, X: Any) -> np.ndarray:
        """The coordinates Φ(X), shape (n_samples, n_components)."""
        return self._coordinates(X)

    def _coordinates(self, X: Any) -> np.ndarray:
        """The coordinates as an array, whatever `set_output` asks of `transform`."""
        check_is_fitted(self)
        return evaluate(self.model_, self._checked(X))

    def _outputs(
        self, X: Any, finish: Callable[[np.ndarray], np.ndarray] = lambda outputs: outputs
    ) -> np.ndarray:
        """The readout's outputs, (n, n_outputs), or what `finish` makes of them."""
        check_is_fitted(self)

        def finished(outputs: np.ndarray) -> np.ndarray:
            return finish(outputs.astype(np.float64))

        return evaluate(self.model_, self._checked(X), "outputs", finish=finished)

    def to_jax(self) -> Callable[[Array], Array]:
        """The feature map x ↦ Φ(x), (n, d) → (n, K), as a pure function for jit, grad and vmap."""
        check_is_fitted(self)
        return self.model_.coordinates

    def ritz(self) -> Ritz:
        """The coordinates by smoothness: Ritz values, and the rotation that mixes them.

        `transform(X) @ ritz().rotation.T` are coordinates that are orthonormal and of stationary
        Dirichlet energy on the training rows, the smoothest first; the eigenvalues are their
        energies. The model itself keeps the order of its training.
        """
        check_is_fitted(self)
        return ritz(self.dirichlet_, self.gram_)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names phi1 … phiK."""
        check_is_fitted(self)
        names = [f"phi{k + 1}" for k in range(self.settings_.n_components)]
        return np.array(names, dtype=object)

    def gram_errors(self, X: Any) -> dict[str, float]:
        """How far the coordinates on X are from orthonormal.

        `gram_error` is ‖C − I‖²_F over all rows of X, `gram_residual` its root, and
        `gram_error_unbiased` estimates the population's, without the O(1/n) of sampling noise.
        """
        phi = self._coordinates(X).astype(np.float64)
        n, n_components = phi.shape
        error = float(np.sum((phi.T @ phi / n - np.eye(n_components)) ** 2))
        squares = np.sum(phi**2, axis=1)
        own = float(np.sum(squares**2 - 2 * squares + n_components))
        return {
            "gram_error": error,
            "gram_residual": error**0.5,
            "gram_error_unbiased": (n * error - own / n) / (n - 1) if n > 1 else float("nan"),
        }

    def save(self, folder: str | Path) -> None:
        """Write the fitted estimator as a model folder, which `piefs.load` reads."""
        from piefs.estimators.persistence import save

        save(cast(Any, self), Path(folder))

    def export(self, path: str | Path) -> None:
        """Write what the fitted estimator computes, for programs without piefs.

        The name's ending decides: `.onnx` is an ONNX graph from rows to coordinates and
        predictions, `.py` a Python module that needs numpy alone (docs/exports.md).
        """
        from piefs.estimators.export import export, exported

        export(exported(self), Path(path))

    def _checked(self, X: Any) -> np.ndarray:
        """New rows with the features seen in fit."""
        return checked_arrays(self, X, reset=False)
