"""Keywords, training and coordinates: what the estimators share."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from piefs import pretrain
from piefs.batches import Samples
from piefs.columns import coordinates_of
from piefs.errors import InputError
from piefs.estimators.progress import ProgressPrinter
from piefs.estimators.settings import described, resolve_settings, train_config
from piefs.io.checkpoints import Checkpoint
from piefs.losses import cross_entropy, gram, gram_error, unbiased_gram_error
from piefs.maps import unstack
from piefs.metrics import MetricFactory
from piefs.model import Model
from piefs.presets import PAPER
from piefs.train import Callback, TrainState, Validation, WarmStart, initial_state, train
from piefs.weighting import Weighting

Estimator = TypeVar("Estimator", bound=type)

ROWS_TO_SPARE = 10_000  # with so many rows, some can be set aside to stop on

PARAMETERS = """
    A keyword left at None is taken from the preset.

    Parameters
    ----------
    n_components : int
        K, the number of maps.
    preset : {"default", "paper", "fast"}
        Named set of keywords: what we recommend, the paper to the letter, a first look.
    metric : {"off", "diag", "trotter", "chain"} or callable
        A(x) inside the Dirichlet energy, or a function (key, n_features) -> Metric.
    steps_per_component, batch_size, learning_rate, optimizer : int, int, float, str
        Budget and optimiser ("adam" or "sgd") of each map. A batch is clipped to the data.
    hidden, activation : sequence of int, str
        Widths of the hidden layers of each φ; relu, tanh, softplus, gelu or sin.
    metric_hidden : sequence of int
        Widths of the hidden layers of the metric's networks.
    weighting : {"exponential", "rational", "polynomial", "static"} or callable
        How the three losses are weighted, or a function (gram_error, class_loss) -> LossWeights.
    t_orth, t_class, normalize_weights : float, float or "calibrated", bool
        Temperatures of the weighting; whether the weights sum to one.
    anisotropy : float
        Multiple of the penalty mean (log λ)² on the metric.
    pretraining : {"graph-laplacian"}
        Start from maps distilled from graph-Laplacian eigenmaps.
    early_stopping, patience, validation_fraction : bool or "auto", int, float
        End a map when `patience` intervals of `log_every` steps have not lowered the loss on
        validation rows; these are `validation_fraction` of the data unless given to `fit`. "auto"
        does so where validation rows are given, or can be spared: from 10,000 rows on.
    standardize : bool
        Z-score the inputs on training statistics.
    random_state : int, RandomState or None
        Seed of initialisation, batches and held-out rows.
    warm_start : bool
        Begin a second `fit` from the maps, metric and readout of the first.
    verbose : int
        0 is silent, 1 prints a line for each map, 2 one for each interval.
    callbacks : sequence of callable
        Called with the `TrainState` between chunks of steps.
    log_every : int
        Steps between two rows of the history.
    dtype : {"float32", "float64"}
        Precision of training and of the coordinates.

    Attributes
    ----------
    coordinates_ : ndarray of shape (n_samples, n_components)
        Coordinates of the training rows.
    model_ : Model
        Scaling, maps, metric and readout as a JAX pytree of pure functions.
    gram_error_, energies_, log_scale_ranges_ : float, ndarray, ndarray
        ‖C − I‖²_F on the training rows; energy and range of log λ of each map when it was frozen.
    history_ : list of dict
        Losses, weights and validation scores, averaged over intervals of steps.
    n_iter_, steps_ : int, ndarray
        Steps taken in all and by each map.
    config_, seed_ : TrainConfig, int
        What the keywords came to.
"""


class BasePIEFS(TransformerMixin, BaseEstimator):
    """Keywords, training and coordinates."""

    n_features_in_: int

    def __init__(
        self,
        n_components: int | None = None,
        *,
        preset: str = "default",
        metric: str | MetricFactory | None = None,
        steps_per_component: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        optimizer: str | None = None,
        hidden: Sequence[int] | None = None,
        activation: str | None = None,
        metric_hidden: Sequence[int] | None = None,
        weighting: str | Weighting | None = None,
        t_orth: float | None = None,
        t_class: float | Literal["calibrated"] | None = None,
        normalize_weights: bool | None = None,
        anisotropy: float | None = None,
        pretraining: str | None = None,
        early_stopping: bool | str | None = None,
        patience: int | None = None,
        validation_fraction: float = 0.1,
        standardize: bool = True,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
        log_every: int | None = None,
        dtype: str | None = None,
    ) -> None:
        self.n_components = n_components
        self.preset = preset
        self.metric = metric
        self.steps_per_component = steps_per_component
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.hidden = hidden
        self.activation = activation
        self.metric_hidden = metric_hidden
        self.weighting = weighting
        self.t_orth = t_orth
        self.t_class = t_class
        self.normalize_weights = normalize_weights
        self.anisotropy = anisotropy
        self.pretraining = pretraining
        self.early_stopping = early_stopping
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.standardize = standardize
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.callbacks = callbacks
        self.log_every = log_every
        self.dtype = dtype

    def __sklearn_tags__(self) -> Any:
        """The keyword `dtype` decides the precision of the coordinates, not that of the input."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    # --- fitting -------------------------------------------------------------------------------

    def _fit(
        self,
        X: np.ndarray,
        labels: np.ndarray | None = None,
        *,
        n_classes: int = 0,
        class_weight: Any = None,
        sample_weight: Any = None,
        X_unlabeled: Any = None,
        validation_data: tuple[np.ndarray, np.ndarray | None] | None = None,
    ) -> None:
        """Train on validated arrays (labels as class indices) and set the fitted attributes."""
        supervised = labels is not None
        self.seed_ = self._seed()
        settings = self.check_settings(len(X), supervised=supervised)
        if self.batch_size is not None and self.batch_size > len(X):
            warnings.warn(
                f"batch_size={self.batch_size} is clipped to the {len(X)} rows there are",
                stacklevel=3,
            )
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        with jax.enable_x64(settings["dtype"] == "float64"):
            self._dtype = np.dtype(settings["dtype"])
            if settings["early_stopping"] == "auto":
                settings["early_stopping"] = validation_data is not None or len(X) >= ROWS_TO_SPARE
            if validation_data is None and settings["early_stopping"]:
                X, labels, weight, validation_data = self._hold_out(X, labels, weight)
            self._fit_scaling(X, weight)
            samples = self._samples(X, labels, weight, class_weight, X_unlabeled)
            warm = self._begin_from(samples, settings)
            self.config_ = train_config(settings, seed=self.seed_)
            self.settings_ = described(settings)
            state = initial_state(samples, self.config_, n_classes, warm)
            callbacks = list(self.callbacks or ())
            for callback in callbacks:
                if isinstance(callback, Checkpoint):
                    callback.bind(self.settings_, self.seed_, samples)
                    state = callback.restore(state)
            if self.verbose:
                callbacks.append(ProgressPrinter(self.config_, self.verbose))
            final = train(
                samples,
                self.config_,
                n_outputs=n_classes,
                readout_loss=cross_entropy if supervised else None,
                validation=self._validation(validation_data),
                warm_start=warm,
                callbacks=callbacks,
                state=state,
            )
            self._set_fitted(final, samples)

    def check_settings(self, n_rows: int, *, supervised: bool = True) -> dict[str, Any]:
        """What the keywords come to for `n_rows` rows; an InputError where they cannot work."""
        keywords = {name: getattr(self, name) for name in PAPER}
        return resolve_settings(self.preset, keywords, supervised=supervised, n_rows=n_rows)

    def _seed(self) -> int:
        """An integer random_state is the seed itself, so that a run can be named by it."""
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _hold_out(
        self, X: np.ndarray, labels: np.ndarray | None, weight: np.ndarray | None
    ) -> tuple:
        """Set `validation_fraction` of the rows aside, class shares kept where that is possible."""
        counts = np.bincount(labels) if labels is not None else np.zeros(0)
        stratify = labels if labels is not None and counts[counts > 0].min() >= 2 else None
        n_held_out = max(1, round(self.validation_fraction * len(X)))
        if stratify is not None and n_held_out < len(counts[counts > 0]):
            stratify = None
        kept, held = train_test_split(
            np.arange(len(X)), test_size=n_held_out, stratify=stratify, random_state=self.seed_
        )
        pick = lambda a, rows: None if a is None else a[rows]  # noqa: E731
        held_out = X[held], pick(labels, held)
        return X[kept], pick(labels, kept), pick(weight, kept), held_out

    def _fit_scaling(self, X: np.ndarray, weight: np.ndarray | None) -> None:
        """Training mean and standard deviation; a constant column keeps scale 1."""
        self.center_, self.scale_ = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if self.standardize:
            X = X.astype(np.float64)
            self.center_ = np.average(X, axis=0, weights=weight)
            deviation = np.sqrt(np.average((X - self.center_) ** 2, axis=0, weights=weight))
            tiny = 10 * np.finfo(np.float64).eps * np.abs(self.center_)
            self.scale_ = np.where(deviation > tiny, deviation, 1.0)

    def _standardized(self, X: np.ndarray) -> np.ndarray:
        if not self.standardize:
            return np.ascontiguousarray(X, dtype=self._dtype)
        return ((X - self.center_) / self.scale_).astype(self._dtype)

    def _samples(
        self,
        X: np.ndarray,
        labels: np.ndarray | None,
        weight: np.ndarray | None,
        class_weight: Any,
        X_unlabeled: Any,
    ) -> Samples:
        """The rows as training sees them; unlabelled ones have a label weight of zero."""
        label_weight = weight
        if labels is not None and class_weight is not None:
            by_class = compute_sample_weight(class_weight, labels)
            label_weight = by_class if weight is None else by_class * weight
        x = self._standardized(X)
        if X_unlabeled is None:
            return Samples(x, labels, weight, label_weight)
        extra = self._standardized(self._checked(X_unlabeled))
        n, n_extra = len(x), len(extra)
        ones = np.ones(n)
        return Samples(
            np.concatenate([x, extra]),
            None if labels is None else np.concatenate([labels, np.zeros(n_extra, labels.dtype)]),
            np.concatenate([ones if weight is None else weight, np.ones(n_extra)]),
            np.concatenate([ones if label_weight is None else label_weight, np.zeros(n_extra)]),
        )

    def _validation(self, data: tuple[np.ndarray, np.ndarray | None] | None) -> Validation | None:
        if data is None:
            return None
        x, labels = data
        samples = Samples(self._standardized(x), labels)
        return Validation(samples) if labels is None else Validation(samples, self._scorer(labels))

    def _scorer(self, labels: np.ndarray) -> Any:
        raise NotImplementedError

    def _begin_from(self, samples: Samples, settings: dict[str, Any]) -> WarmStart | None:
        """Maps to begin from: an earlier fit's, or distilled ones, or none."""
        if self.warm_start and hasattr(self, "model_"):
            shapes = (self.model_.center.shape[0], self.config_.n_components)
            if shapes == (samples.x.shape[1], settings["n_components"]):
                return WarmStart(unstack(self.model_.maps), self.model_.metric, self.model_.readout)
        if settings["pretraining"] is None:
            return None
        return WarmStart(self._pretrained_maps(samples, settings))

    def _pretrained_maps(self, samples: Samples, settings: dict[str, Any]) -> list:
        """Distilled maps; a calibrated T_class is put into the settings as a number."""
        rows = pretrain.subsample(len(samples), self.seed_)
        n_components = settings["n_components"]
        if len(rows) < n_components + 2:
            raise InputError(
                f"graph-Laplacian pretraining of {n_components} maps needs at least "
                f"{n_components + 2} rows, not {len(rows)}"
            )
        x = samples.x[rows]
        targets = pretrain.eigenmaps(x, n_components)
        if settings["t_class"] == "calibrated":
            if samples.target is None:
                raise InputError('t_class="calibrated" needs labels')
            labeled = samples.label_weights[rows] > 0
            settings["t_class"] = probe_cross_entropy(
                targets[labeled], samples.target[rows][labeled]
            )
        return pretrain.graph_laplacian_maps(
            x,
            targets,
            hidden=tuple(settings["hidden"]),
            activation=settings["activation"],
            seed=self.seed_,
        )

    def _set_fitted(self, final: TrainState, samples: Samples) -> None:
        model = Model(
            jnp.asarray(self.center_, self._dtype),
            jnp.asarray(self.scale_, self._dtype),
            final.maps,
            final.params.metric,
            final.params.readout,
        )
        # Host arrays: they pickle and copy without a device, and keep their precision.
        self.model_ = jax.tree.map(np.asarray, model)
        self.coordinates_ = coordinates_of(self.model_.maps, samples.x)
        self.gram_error_ = _gram_errors(self.coordinates_)["gram_error"]
        self.energies_ = np.array(final.energies)
        self.log_scale_ranges_ = np.array(final.log_scale_ranges)
        self.history_ = list(final.history)
        self.steps_ = np.array(final.steps)
        self.n_iter_ = int(self.steps_.sum())

    # --- coordinates ---------------------------------------------------------------------------

    def _checked(self, X: Any) -> np.ndarray:
        """New rows as an array, with the features seen in fit."""
        return np.asarray(validate_data(self, X, reset=False, dtype="numeric"))

    def transform(self, X: Any) -> np.ndarray:
        """The coordinates Φ(X), shape (n_samples, n_components)."""
        return self._coordinates(X)

    def _coordinates(self, X: Any) -> np.ndarray:
        """The coordinates as an array, whatever `set_output` asks of `transform`."""
        check_is_fitted(self)
        with jax.enable_x64(self._dtype == np.float64):
            return coordinates_of(self.model_.maps, self._standardized(self._checked(X)))

    def to_jax(self) -> Callable[[Array], Array]:
        """The feature map x ↦ Φ(x), (n, d) → (n, K), as a pure function for jit, grad and vmap."""
        check_is_fitted(self)
        model = self.model_
        return lambda x: model.coordinates(x)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names phi1 … phiK."""
        check_is_fitted(self)
        names = [f"phi{k + 1}" for k in range(self.config_.n_components)]
        return np.array(names, dtype=object)

    def gram_errors(self, X: Any) -> dict[str, float]:
        """How far the coordinates on X are from orthonormal.

        `gram_error` is ‖C − I‖²_F over all rows of X, `gram_residual` its root, and
        `gram_error_unbiased` estimates the population's, without the O(1/n) of sampling noise.
        """
        return _gram_errors(self._coordinates(X))

    def save(self, folder: str | Path) -> None:
        """Write the fitted estimator as a model folder, which `piefs.load` reads."""
        from piefs.estimators.files import save

        save(self, Path(folder))


def extends_keywords(cls: Estimator) -> Estimator:
    """Let an estimator add keywords to those of `BasePIEFS` without repeating them.

    scikit-learn reads an estimator's parameters off the signature of its `__init__`; this gives
    `__init__(self, n_components, *, own, **keywords)` the signature that it stands for.
    """
    base, own = (inspect.signature(init).parameters for init in (BasePIEFS.__init__, cls.__init__))
    merged = {**base, **{name: p for name, p in own.items() if p.kind is not p.VAR_KEYWORD}}
    signature = inspect.Signature(list(merged.values()))
    setattr(cls.__init__, "__signature__", signature)  # noqa: B010 - a function takes attributes
    return cls


def _gram_errors(phi: np.ndarray) -> dict[str, float]:
    """The three measures, in double precision."""
    with jax.enable_x64(True):
        phi64 = jnp.asarray(phi, jnp.float64)
        error = float(gram_error(gram(phi64)))
        unbiased = float(unbiased_gram_error(phi64)) if len(phi) > 1 else float("nan")
    return {
        "gram_error": error,
        "gram_residual": error**0.5,
        "gram_error_unbiased": unbiased,
    }


def probe_cross_entropy(features: np.ndarray, labels: np.ndarray) -> float:
    """The held-out cross-entropy of a logistic regression on features: a scale for T_class."""
    parts = train_test_split(features, labels, test_size=0.3, random_state=0)
    fitted_x, held_x, fitted_y, held_y = map(np.asarray, parts)
    if len(np.unique(fitted_y)) < 2:
        raise InputError("T_class cannot be calibrated: the subsample has only one class")
    probe = LogisticRegression(max_iter=1000).fit(fitted_x, fitted_y)
    known = np.isin(held_y, probe.classes_)
    loss = log_loss(held_y[known], probe.predict_proba(held_x[known]), labels=probe.classes_)
    return max(float(loss), 1e-3)
