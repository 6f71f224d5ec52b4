"""scikit-learn estimators: `PIEFSClassifier` and `PIEFSTransformer`.

They hold flat keywords, turn them into one `TrainConfig`, call `train`, and answer with arrays. The
fitted functions themselves are in `model_`, a pytree for use inside JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from piefs import pretrain
from piefs.batches import Samples
from piefs.columns import coordinates_of
from piefs.errors import InputError
from piefs.io.models import flatten, write_model
from piefs.losses import cross_entropy, gram, gram_error, unbiased_gram_error
from piefs.metrics import METRICS, MetricFactory
from piefs.model import Model
from piefs.networks import ACTIVATIONS
from piefs.objective import OPTIMIZERS, ReadoutLoss
from piefs.presets import PAPER, resolve
from piefs.train import Callback, TrainConfig, TrainState, Validation, train
from piefs.weighting import WEIGHTINGS, Static, Weighting, make_weighting


class _PIEFS(TransformerMixin, BaseEstimator):
    """Keywords, training and coordinates: what the estimators share."""

    n_features_in_: int

    def __init__(
        self,
        n_components: int | None = None,
        *,
        preset: str = "fast",
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
        standardize: bool = True,
        random_state: int | np.random.RandomState | None = None,
        callbacks: Sequence[Callback] | None = None,
        log_every: int = 250,
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
        self.standardize = standardize
        self.random_state = random_state
        self.callbacks = callbacks
        self.log_every = log_every

    # --- fitting -------------------------------------------------------------------------------

    def _fit(
        self,
        X: np.ndarray,
        target: np.ndarray | None,
        *,
        n_outputs: int = 0,
        readout_loss: ReadoutLoss | None = None,
        weight: np.ndarray | None = None,
        label_weight: np.ndarray | None = None,
        validation: tuple[np.ndarray, Callable[[np.ndarray], dict[str, float]]] | None = None,
        state: TrainState | None = None,
    ) -> None:
        """Train on validated arrays and set the fitted attributes."""
        settings = self._settings(supervised=readout_loss is not None)
        self.seed_ = self._seed()
        self._fit_scaling(X)
        samples = Samples(self._standardized(X), target, weight, label_weight)
        initial_maps = None
        if settings["pretraining"] is not None:
            initial_maps = self._pretrain(samples, settings)
        elif settings["t_class"] == "calibrated":
            raise InputError('t_class="calibrated" needs pretraining="graph-laplacian"')
        self.config_ = self._config(settings)
        self.settings_ = _described(settings)
        held_out = validation and Validation(self._standardized(validation[0]), validation[1])
        final = train(
            samples,
            self.config_,
            n_outputs=n_outputs,
            readout_loss=readout_loss,
            validation=held_out,
            initial_maps=initial_maps,
            callbacks=self.callbacks or (),
            state=state,
        )
        self._set_fitted(final, samples)

    def _settings(self, supervised: bool) -> dict[str, Any]:
        """Keywords over preset, checked; what depends on the mode is filled in."""
        settings = resolve(self.preset, **{name: getattr(self, name) for name in PAPER})
        if settings["metric_hidden"] is None:
            settings["metric_hidden"] = (64, 64) if supervised else (64, 64, 64)
        if not supervised and isinstance(settings["weighting"], str):
            settings["weighting"] = Static(1.0, 0.0, 1.0)
        _check_settings(settings)
        return settings

    def _config(self, settings: dict[str, Any]) -> TrainConfig:
        weighting = settings["weighting"]
        if isinstance(weighting, str):
            weighting = make_weighting(
                weighting, settings["t_orth"], settings["t_class"], settings["normalize_weights"]
            )
        return TrainConfig(
            n_components=settings["n_components"],
            steps_per_component=settings["steps_per_component"],
            batch_size=settings["batch_size"],
            learning_rate=settings["learning_rate"],
            optimizer=settings["optimizer"],
            hidden=tuple(settings["hidden"]),
            activation=settings["activation"],
            metric=settings["metric"],
            metric_hidden=tuple(settings["metric_hidden"]),
            weighting=weighting,
            anisotropy=settings["anisotropy"],
            log_every=self.log_every,
            seed=self.seed_,
        )

    def _seed(self) -> int:
        """An integer random_state is the seed itself, so that a run can be named by it."""
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _fit_scaling(self, X: np.ndarray) -> None:
        """Training mean and standard deviation; a constant column keeps scale 1."""
        n_features = X.shape[1]
        self.center_, self.scale_ = np.zeros(n_features), np.ones(n_features)
        if self.standardize:
            self.center_ = X.mean(axis=0, dtype=np.float64)
            deviation = X.std(axis=0, dtype=np.float64)
            self.scale_ = np.where(deviation > 0, deviation, 1.0)

    def _standardized(self, X: np.ndarray) -> np.ndarray:
        if not self.standardize:
            return np.ascontiguousarray(X, dtype=np.float32)
        return ((X - self.center_) / self.scale_).astype(np.float32)

    def _pretrain(self, samples: Samples, settings: dict[str, Any]) -> list:
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
            settings["t_class"] = probe_cross_entropy(targets, samples.target[rows])
        return pretrain.graph_laplacian_maps(
            x,
            targets,
            hidden=tuple(settings["hidden"]),
            activation=settings["activation"],
            seed=self.seed_,
        )

    def _set_fitted(self, final: TrainState, samples: Samples) -> None:
        dtype = samples.x.dtype
        self.model_ = Model(
            jnp.asarray(self.center_, dtype),
            jnp.asarray(self.scale_, dtype),
            final.maps,
            final.params.metric,
            final.params.readout,
        )
        self.energies_ = np.array(final.energies)
        self.log_scale_ranges_ = np.array(final.log_scale_ranges)
        self.history_ = list(final.history)
        self.n_iter_ = self.config_.n_components * self.config_.steps_per_component
        self._n_features_out = self.config_.n_components

    # --- coordinates ---------------------------------------------------------------------------

    def _coordinates(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return coordinates_of(self.model_.maps, self._standardized(self._checked(X)))

    def _checked(self, X: Any) -> np.ndarray:
        """New rows as an array, with the features seen in fit."""
        return np.asarray(validate_data(self, X, reset=False, dtype="numeric"))

    def transform(self, X: Any) -> np.ndarray:
        """The coordinates Φ(X), shape (n_samples, n_components)."""
        return self._coordinates(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names phi1 … phiK."""
        check_is_fitted(self)
        return np.array([f"phi{k + 1}" for k in range(self._n_features_out)], dtype=object)

    def gram_errors(self, X: Any) -> dict[str, float]:
        """How far the coordinates on X are from orthonormal.

        `gram_error` is ‖C − I‖²_F over all rows of X, `gram_residual` its root, and
        `gram_error_unbiased` estimates the population's, without the O(1/n) of sampling noise.
        """
        with jax.enable_x64(True):
            phi = jnp.asarray(self._coordinates(X), jnp.float64)
            error, unbiased = float(gram_error(gram(phi))), float(unbiased_gram_error(phi))
        return {
            "gram_error": error,
            "gram_residual": error**0.5,
            "gram_error_unbiased": unbiased,
        }

    # --- files ---------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write the fitted estimator as a model folder (see `piefs.load`)."""
        check_is_fitted(self)
        if not isinstance(self.config_.metric, str):
            raise InputError("a model with a metric of your own cannot be saved: it has no name")
        arrays = flatten(self.model_) | {"center64": self.center_, "scale64": self.scale_}
        write_model(Path(folder), arrays, self._document())

    def _document(self) -> dict[str, Any]:
        return {
            "estimator": type(self).__name__,
            "settings": self.settings_ | {"standardize": self.standardize},
            "seed": self.seed_,
            "n_features": self.n_features_in_,
            "feature_names": [str(n) for n in getattr(self, "feature_names_in_", [])] or None,
            "n_outputs": int(self.model_.readout.bias.shape[0]),
            "energies": self.energies_.tolist(),
            "log_scale_ranges": self.log_scale_ranges_.tolist(),
            "n_iter": self.n_iter_,
        }


class PIEFSClassifier(ClassifierMixin, _PIEFS):
    """Classifier on K orthonormal, smooth, label-aware coordinates."""

    classes_: np.ndarray

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        validation_data: tuple[Any, Any] | None = None,
    ) -> PIEFSClassifier:
        """Learn coordinates and readout from labelled rows."""
        X, y = validate_data(self, X, y, dtype="numeric")
        check_classification_targets(y)
        encoder = LabelEncoder().fit(y)
        self.classes_ = np.asarray(encoder.classes_)
        if len(self.classes_) < 2:
            raise InputError(f"y has only one class, {self.classes_[0]!r}; two are needed")
        weight = _check_sample_weight(sample_weight, X) if sample_weight is not None else None
        labels = np.asarray(encoder.transform(y), np.int32)
        validation = None
        if validation_data is not None:
            held_x, held_y = (
                self._checked(validation_data[0]),
                encoder.transform(validation_data[1]),
            )
            validation = held_x, ValidationScore(np.asarray(held_y))
        self._fit(
            X,
            labels,
            n_outputs=len(self.classes_),
            readout_loss=cross_entropy,
            weight=weight,
            label_weight=weight,
            validation=validation,
        )
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits (n, n_classes); for two classes the margin logit₁ − logit₀, shape (n,)."""
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, shape (n, n_classes), in the order of `classes_`."""
        return softmax(self._logits(X), axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the class probabilities."""
        return log_softmax(self._logits(X), axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        return self.classes_[np.argmax(self._logits(X), axis=1)]

    def _document(self) -> dict[str, Any]:
        return super()._document() | {"classes": self.classes_.tolist()}

    def _logits(self, X: Any) -> np.ndarray:
        return np.asarray(self.model_.readout(jnp.asarray(self._coordinates(X))), dtype=np.float64)


class PIEFSTransformer(_PIEFS):
    """Unsupervised coordinates: orthonormal and smooth, without labels (paper, App. C)."""

    def fit(self, X: Any, y: Any = None) -> PIEFSTransformer:
        """Learn coordinates from unlabelled rows; y is ignored."""
        X = validate_data(self, X, dtype="numeric")
        self._fit(X, None)
        return self


class ValidationScore:
    """Accuracy and log loss of logits against class indices."""

    def __init__(self, labels: np.ndarray) -> None:
        self.labels = labels

    def __call__(self, logits: np.ndarray) -> dict[str, float]:
        """The two scores, under the names they have in a history."""
        log_p = log_softmax(logits.astype(np.float64), axis=1)
        picked = log_p[np.arange(len(self.labels)), self.labels]
        return {
            "validation_accuracy": float(accuracy_score(self.labels, logits.argmax(axis=1))),
            "validation_loss": float(-picked.mean()),
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


def _described(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as plain values for a document; an object is named by its repr."""

    def plain(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return list(value)
        return value if isinstance(value, str | int | float | None) else repr(value)

    return {name: plain(value) for name, value in settings.items()}


def _check_settings(settings: dict[str, Any]) -> None:
    """Refuse what cannot be trained, before any work starts."""
    for name in ("n_components", "steps_per_component", "batch_size"):
        value = settings[name]
        if not isinstance(value, Integral) or value < 1:
            raise InputError(f"{name} must be a whole number of at least 1, not {value!r}")
    choices = {
        "metric": METRICS,
        "activation": tuple(ACTIVATIONS),
        "optimizer": tuple(OPTIMIZERS),
        "weighting": WEIGHTINGS,
        "pretraining": ("graph-laplacian", None),
    }
    for name, allowed in choices.items():
        value = settings[name]
        if not callable(value) and value not in allowed:
            raise InputError(
                f"unknown {name} {value!r}; choose one of {', '.join(map(str, allowed))}"
            )
