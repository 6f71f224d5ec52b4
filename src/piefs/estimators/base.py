"""Training: what the estimators share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from piefs.core.losses import ReadoutLoss
from piefs.core.model import Model
from piefs.data.rows import Rows, is_lazy, quick, taken
from piefs.errors import TrainingWarning
from piefs.estimators.beginnings import as_trained, distilled_maps
from piefs.estimators.coordinates import Coordinates
from piefs.estimators.dask import by_block, is_dask
from piefs.estimators.decisions import Facts, decays_for, decided, most_maps, rows_to_learn_from
from piefs.estimators.finishing import finished_model
from piefs.estimators.keywords import Configurable
from piefs.estimators.measures import leading_variance, loss_by_chance
from piefs.estimators.rows import (
    as_precise_as,
    check_reach,
    check_scaling,
    checked_weight,
    samples_of,
    scaling_of,
    set_aside,
)
from piefs.estimators.scikit import CallbackSupportMixin, ScikitLearnCallbacks
from piefs.estimators.selection import choose_budget, choose_n_components
from piefs.training.batches import Samples
from piefs.training.callbacks import Stage, begin_stage, end_fit, preparation
from piefs.training.checkpoint import Checkpoint
from piefs.training.columns import coordinates_of, dirichlet_matrix, evaluate, weighted_gram
from piefs.training.config import Settings
from piefs.training.diagnosis import Evidence, findings
from piefs.training.graph import graph_samples
from piefs.training.history import Validation
from piefs.training.loop import Callback, train
from piefs.training.progress import ProgressPrinter
from piefs.training.readout import check_readable, solved_readout
from piefs.training.sharding import devices_in_use
from piefs.training.state import TrainState, WarmStart, initial_state, rate_in_force

MOST_HELD_OUT = 20_000  # of rows in a file
ROWS_TO_JUDGE = 10_000  # so many tell whether a map varies


class BasePIEFS(CallbackSupportMixin, Coordinates, Configurable, auto_wrap_output_keys=()):
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
        y: Any = None,
        readout_loss: ReadoutLoss | None = None,
        n_outputs: int = 0,
        class_weight: Any = None,
        sample_weight: Any = None,
        X_unlabeled: Any = None,
        validation_data: tuple[np.ndarray, np.ndarray | None] | None = None,
    ) -> None:
        """Train on validated arrays and set the fitted attributes.

        Targets are class indices, or standardised numbers of shape (n, n_outputs); `y` is what
        they were made of.
        """
        devices = devices_in_use()
        if X_unlabeled is not None:
            X_unlabeled = self._checked(X_unlabeled)
        self.seed_ = self._seed()
        settings = self._settings_for(X, targets, X_unlabeled, validation_data)
        in_turn = settings.solver == "sequential"
        weight = checked_weight(sample_weight, X)
        given = {"X": X, "y": y, "metadata": {} if weight is None else {"sample_weight": weight}}
        with jax.enable_x64(settings.optimizer.dtype == "float64"):
            self._dtype = np.dtype(settings.optimizer.dtype)
            if validation_data is None and settings.early_stopping and in_turn:
                kept, held = set_aside(
                    np.arange(len(X)), targets, _fraction_to_hold_out(X, settings), self.seed_
                )
                kept = np.sort(kept) if is_lazy(X) else kept  # neighbours in a file stay so
                validation_data = X[held], _at(targets, held)
                X, targets, weight = taken(X, kept), _at(targets, kept), _at(weight, kept)
            self.center_, self.scale_ = np.zeros(X.shape[1]), np.ones(X.shape[1])
            if self.standardize:
                self.center_, self.scale_ = scaling_of(
                    *self._rows_to_scale_by(X, weight, X_unlabeled), devices
                )
                check_scaling(self.center_, self.scale_, self._dtype)
            rows, unlabeled = quick(self._standardized(X)), None
            if X_unlabeled is not None:
                unlabeled = self._standardized(X_unlabeled)
            samples = samples_of(rows, targets, weight, class_weight, unlabeled)
            if settings.solver == "spectral":
                check_readable(samples)
            check_reach(samples.x)
            samples = replace(samples, devices=devices)
            decays = decays_for(settings.weight_decay)
            settings = replace(settings, weight_decay=decays[0], seed=self.seed_)
            if settings.n_components == "auto":
                settings = replace(settings, n_components=most_maps(len(X)))
            if not in_turn:
                settings = replace(settings, leading_variance=leading_variance(samples))
            self.settings_ = settings
            callbacks = self._watching(given, samples)
            try:
                warm = self._begin_from(samples, callbacks)
                self.n_iter_budget_ = self.settings_.total_steps
                to_train: dict[str, Any] = {
                    "n_outputs": n_outputs,
                    "readout_loss": readout_loss,
                    "validation": self._validation(validation_data),
                    "warm_start": warm,
                    "callbacks": callbacks,
                }
                final = self._trained(samples, decays, to_train)
            finally:
                end_fit(callbacks)
            self._set_fitted(final, samples)
            self._diagnose(final, samples)
            for callback in callbacks:
                if isinstance(callback, ScikitLearnCallbacks):
                    callback.finish()

    def _watching(self, given: dict[str, Any], samples: Samples) -> list[Callback]:
        """All that is called between chunks: ours, what `verbose` prints, and scikit-learn's."""
        callbacks = list(self.callbacks or ())
        if self.verbose:
            callbacks.append(ProgressPrinter(self.verbose))
        if getattr(self, "_skl_callbacks", None):
            scaling = self.center_, self.scale_

            def model_of(state: TrainState) -> Model:
                whiten = self.settings_.whiten
                model = finished_model(state, samples, scaling, whiten=whiten)[0]
                if self.settings_.solver != "spectral":
                    return model
                phi = evaluate(replace(model, scaling=None), samples.x, devices=samples.devices)
                return self._with_readout(model, phi, samples)

            callbacks.append(ScikitLearnCallbacks(self, given, model_of))
        return callbacks

    def _trained(
        self,
        samples: Samples,
        decays: Sequence[float],
        to_train: dict[str, Any],
    ) -> TrainState:
        """The trials that the settings ask for, then the training proper."""
        is_to_be_chosen = self.n_components == "auto"
        in_turn = self.settings_.solver == "sequential"
        if self.settings_.early_stopping and not in_turn:
            n_after = 1 + is_to_be_chosen
            self._choose_budget(samples, decays, to_train, n_stages_after=n_after)
        if is_to_be_chosen:
            self._choose_n_components(samples, to_train)
        settings = self.settings_ if in_turn else replace(self.settings_, early_stopping=False)
        if settings.solver == "spectral":
            to_train = to_train | {"validation": None}  # the readout comes after training
            tell = preparation(to_train["callbacks"])
            samples, _ = graph_samples(samples, settings, tell)
        begin_stage(to_train["callbacks"], Stage("training", settings))
        state = initial_state(samples, settings, to_train["n_outputs"], to_train["warm_start"])
        for callback in to_train["callbacks"]:
            if isinstance(callback, Checkpoint):
                callback.bind(self.settings_.document(), self.seed_, samples)
                state = callback.restore(state)
        return train(samples, settings, **to_train, state=state)

    def _settings_for(
        self, X: Rows, targets: np.ndarray | None, unlabeled: Rows | None, validation_data: Any
    ) -> Settings:
        """The settings for these rows, with what depends on them decided.

        A graph does not tell rows with a label from those without: they count alike.
        """
        n_rows = rows_to_learn_from(self.solver, X, unlabeled)
        facts = Facts(
            n_rows, X.shape[1], targets is not None, is_lazy(X), validation_data is not None
        )
        settings = decided(self._asked(), facts)
        if self.batch_size not in (None, "auto") and int(self.batch_size) > n_rows:
            warnings.warn(
                f"batch_size={self.batch_size} is clipped to the {n_rows} rows there are",
                stacklevel=4,
            )
        return settings

    def _rows_to_scale_by(
        self, X: Rows, weight: np.ndarray | None, unlabeled: Rows | None
    ) -> tuple[Rows, np.ndarray | None]:
        """Those with a label; all of them where a graph does not tell them apart."""
        if self.solver != "spectral" or unlabeled is None or is_lazy(X) or is_lazy(unlabeled):
            return X, weight
        if weight is not None:
            weight = np.concatenate([weight, np.ones(len(unlabeled))])
        return np.concatenate([X[:], unlabeled[:]]), weight

    def _choose_budget(
        self,
        samples: Samples,
        decays: Sequence[float],
        to_train: dict[str, Any],
        n_stages_after: int,
    ) -> None:
        """Put the best number of steps and the best weight decay into the settings."""
        steps, decay = choose_budget(
            samples,
            self.settings_,
            decays,
            fraction=_fraction_to_hold_out(samples.x, self.settings_),
            scorer=self._scorer,
            n_stages_after=n_stages_after,
            **_for_trials(to_train),
        )
        self.settings_ = replace(self.settings_, steps_per_component=steps, weight_decay=decay)

    def _choose_n_components(self, samples: Samples, to_train: dict[str, Any]) -> None:
        """Put the number of maps that does into the settings."""
        in_turn = self.settings_.solver == "sequential"
        settings = self.settings_ if in_turn else replace(self.settings_, early_stopping=False)
        n_components = choose_n_components(
            samples,
            settings,
            fraction=_fraction_to_hold_out(samples.x, settings),
            scorer=self._scorer,
            **_for_trials(to_train),
        )
        self.settings_ = replace(self.settings_, n_components=n_components)
        if in_turn:
            self.n_iter_budget_ = self.settings_.total_steps

    def _validation(self, data: tuple[np.ndarray, np.ndarray | None] | None) -> Validation | None:
        if data is None:
            return None
        x = self._standardized(data[0])
        targets = as_precise_as(x, data[1])
        if targets is None:
            return Validation(Samples(x))
        return Validation(Samples(x, targets), self._scorer(targets))

    def _scorer(self, targets: np.ndarray) -> Any:
        raise NotImplementedError

    def _begin_from(self, samples: Samples, callbacks: Sequence[Callback]) -> WarmStart | None:
        """Maps to begin from: an earlier fit's, or distilled ones, or none."""
        if isinstance(self.pretraining, Model):
            return as_trained(self.pretraining, samples, self.settings_)
        if self.settings_.pretraining is None:
            return None
        maps, self.settings_ = distilled_maps(samples, self.settings_, preparation(callbacks))
        return WarmStart(maps)

    def _set_fitted(self, final: TrainState, samples: Samples) -> None:
        whiten = self.settings_.whiten
        self._keep_number_of_maps(final.k)
        scaling = self.center_, self.scale_
        self.model_, mixing = finished_model(final, samples, scaling, whiten=whiten)
        devices = samples.devices
        of_scaled = replace(self.model_, scaling=None)
        self.coordinates_ = evaluate(of_scaled, samples.x, devices=devices)
        self.model_ = self._with_readout(self.model_, self.coordinates_, samples)
        self.gram_ = weighted_gram(self.coordinates_, samples.weights, devices)
        self.gram_error_ = float(np.sum((self.gram_ - np.eye(final.k)) ** 2))
        raw_form = dirichlet_matrix(final.maps, final.params.metric, samples)
        self.dirichlet_ = mixing @ raw_form @ mixing.T
        self.energies_ = np.diag(self.dirichlet_).copy() if whiten else np.array(final.energies)
        self.log_scale_ranges_ = np.array(final.log_scale_ranges)
        self.history_ = list(final.history)
        self.steps_ = np.array(final.steps)
        self.n_iter_ = int(self.steps_.sum())

    def _with_readout(self, model: Model, phi: np.ndarray, samples: Samples) -> Model:
        """The model with a readout of its coordinates, where training has not brought one."""
        if self.settings_.solver != "spectral" or samples.target is None:
            return model
        n_outputs = len(model.readout.bias)
        return replace(model, readout=solved_readout(phi, samples, n_outputs))

    def _diagnose(self, final: TrainState, samples: Samples) -> None:
        """Warn, once for each kind, of what has gone wrong."""
        spread = np.linspace(0, len(samples) - 1, min(len(samples), ROWS_TO_JUDGE)).astype(int)
        evidence = Evidence(
            self.settings_,
            final.history,
            self.gram_error_,
            coordinates_of(final.maps, samples.x[spread]),
            final.log_scale_ranges,
            None if self.settings_.solver == "spectral" else loss_by_chance(samples),
            was_cut_short=self.n_iter_ >= self.n_iter_budget_,
            rate_cuts=final.rate_cuts,
            rate=rate_in_force(final, self.settings_),
        )
        self.warnings_ = findings(evidence)
        for finding in self.warnings_:
            warnings.warn(finding.message, TrainingWarning, stacklevel=5)

    def _keep_number_of_maps(self, n: int) -> None:
        """Say how many maps there are: fewer than asked for where a callback ended the run."""
        self.n_components_ = n
        self.settings_ = replace(self.settings_, n_components=n)


def _fraction_to_hold_out(X: Rows, settings: Settings) -> float:
    """The share of rows to hold out, which are read at once: at most a moderate number of them."""
    most = MOST_HELD_OUT / len(X) if is_lazy(X) else 1.0
    return min(settings.held_out, most)


def _for_trials(to_train: dict[str, Any]) -> dict[str, Any]:
    """The same without checkpoints: those are of the training proper."""
    callbacks = [c for c in to_train["callbacks"] if not isinstance(c, Checkpoint)]
    return to_train | {"callbacks": callbacks}


def _at(values: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if values is None else values[rows]
