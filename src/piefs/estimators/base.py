"""A fit, in the order of its five steps: check, decide, scale, solve, finish."""

import warnings
from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np

from piefs.core.model import Model, Scaling
from piefs.data.rows import Rows
from piefs.errors import TrainingWarning
from piefs.estimators.coordinates import Coordinates
from piefs.estimators.dask import by_block
from piefs.estimators.decisions import decided
from piefs.estimators.inputs import is_dask
from piefs.estimators.keywords import Configurable
from piefs.estimators.rows import TrainingRows, checked_weight, group_numbers
from piefs.training.callbacks import Callback, ProgressPrinter
from piefs.training.config import Settings
from piefs.training.evaluation import evaluate
from piefs.training.sharding import devices_in_use
from piefs.training.solvers import NO_LABELS, Fitted, Task, solver_for


class BasePIEFS(Coordinates, Configurable, auto_wrap_output_keys=()):
    """Training; the keywords are in `Configurable`, what a fitted one can do in `Coordinates`."""

    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        """The keyword `dtype` decides the precision of the coordinates, not that of the input."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    def transform(self, X: Any) -> Any:
        """The coordinates Φ(X), shape (n_samples, n_components)."""
        # Outside of what `set_output` puts around the method of the base class.
        return by_block(self, "transform", X) if is_dask(X) else super().transform(X)

    def _fit(
        self,
        X: Rows,
        targets: np.ndarray | None = None,
        *,
        task: Task = NO_LABELS,
        class_weight: Any = None,
        sample_weight: Any = None,
        X_unlabeled: Any = None,
        validation_data: tuple[np.ndarray, np.ndarray] | None = None,
        groups: Any = None,
    ) -> None:
        """Fit validated arrays and set the fitted attributes.

        Targets are class indices, or standardised numbers of shape (n, n_outputs).
        """
        weight = checked_weight(sample_weight, X)
        unlabeled = None if X_unlabeled is None else self._checked(X_unlabeled)
        given = TrainingRows(X, targets, weight, class_weight, unlabeled, validation_data)
        given = given if groups is None else replace(given, groups=group_numbers(groups, X))
        settings = self._settings_for(given)
        given, devices = given.with_rows_set_aside(settings), devices_in_use()
        scaling = given.scaling(settings, devices, standardize=self.standardize)
        callbacks: list[Callback] = [*(self.callbacks or ())]
        callbacks += [ProgressPrinter(self.verbose)] if self.verbose else []
        fitted = solver_for(settings.solver)(
            given.samples(scaling, settings, devices),
            settings,
            task,
            validation=given.validation(scaling, settings, task),
            callbacks=callbacks,
            warm_start=self.pretraining if isinstance(self.pretraining, Model) else None,
        )
        self._finish(fitted, scaling, given)

    def _settings_for(self, given: TrainingRows) -> Settings:
        """The settings for these rows, with what depends on them decided."""
        facts = replace(given.facts(self.solver), asks_for_steps=self._asks_for_steps())
        settings = replace(decided(self._asked(), facts), seed=self._seed())
        if self.batch_size not in (None, "auto") and int(self.batch_size) > facts.n_rows:
            warnings.warn(
                f"batch_size={self.batch_size} is clipped to the {facts.n_rows} rows there are",
                stacklevel=4,
            )
        return settings

    def _finish(self, fitted: Fitted, scaling: Scaling, given: TrainingRows) -> None:
        """Set the fitted attributes, and warn, once for each kind, of what has gone wrong."""
        self.settings_, self.seed_ = fitted.settings, fitted.settings.seed
        self.model_ = replace(fitted.model, scaling=scaling)
        self.center_, self.scale_ = scaling.center, scaling.scale
        self.coordinates_ = given.in_order(
            fitted.coordinates, lambda held: evaluate(self.model_, held)
        )
        self.left_out_ = fitted.left_out
        self.n_components_ = fitted.coordinates.shape[1]
        self.gram_, self.dirichlet_ = fitted.gram, fitted.dirichlet
        self.gram_error_ = float(np.sum((fitted.gram - np.eye(self.n_components_)) ** 2))
        self.energies_, self.log_scale_ranges_ = fitted.energies, fitted.log_scale_ranges
        self.history_, self.steps_ = list(fitted.history), np.array(fitted.steps, int)
        self.n_iter_ = int(self.steps_.sum())
        self.warnings_ = list(fitted.warnings)
        for finding in self.warnings_:
            warnings.warn(finding.message, TrainingWarning, stacklevel=4)


class Predictor(BasePIEFS):
    """A fit to labels or numbers, which the estimator turns into targets."""

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_unlabeled: Any = None,
        validation_data: tuple[Any, Any] | None = None,
        groups: Any = None,
    ) -> Self:
        """Learn coordinates and readout from rows and their class labels or numbers.

        Parameters
        ----------
        X, y
            Training rows; their class labels, of any type, or their numbers, of shape (n,) or
            (n, n_outputs).
        sample_weight
            Weights of the rows in all three losses. In closed form, whole numbers with a one among
            them count equal rows; of others only the ratios matter.
        X_unlabeled
            Further rows without labels; they count for orthogonality and smoothness, and with
            solver="spectral" for the graph.
        validation_data
            Rows and labels to score while networks descend, and for early stopping; the solvers
            "eigen" and "spectral" do not use them.
        groups
            A label for each row, of what it belongs to (a patient, a machine, a session). Rows of a
            group are left out, or held out, together: the model is judged by new groups.
        """
        X, targets, task = self._learned_targets(X, y, sample_weight)
        if validation_data is not None:
            held_x, held_y = validation_data
            validation_data = self._checked(held_x), self._targets_like(held_y)
        self._fit(
            X,
            targets,
            task=task,
            class_weight=self._class_weight(),
            sample_weight=sample_weight,
            X_unlabeled=X_unlabeled,
            validation_data=validation_data,
            groups=groups,
        )
        return self

    @abstractmethod
    def _learned_targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, np.ndarray, Task]:
        """Checked rows, their targets, and what these are; it keeps how they were made of y."""

    @abstractmethod
    def _targets_like(self, y: Any) -> np.ndarray:
        """Targets of validation rows, made as those of the training rows."""

    def _class_weight(self) -> Any:
        """Weights of class indices in the readout's loss."""
        return None
