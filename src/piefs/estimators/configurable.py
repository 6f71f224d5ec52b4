"""The keywords that all estimators share, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from piefs.core.metric import MetricFactory
from piefs.core.weighting import Weighting
from piefs.estimators.decisions import Facts, decided
from piefs.estimators.renamed import BECAME, from_flat
from piefs.estimators.states import from_plain, to_plain
from piefs.training.config import Settings
from piefs.training.loop import Callback

SHARED = (
    *("n_components", "steps_per_component", "batch_size", "learning_rate", "weight_decay"),
    *("hidden", "activation", "smoothness", "pretraining", "graph_rows", "whiten"),
    "early_stopping",
)


class Configurable(BaseEstimator):
    """Keywords as scikit-learn wants them: kept as they were given, resolved when fitting."""

    def __init__(
        self,
        n_components: int | Literal["auto"] | None = None,
        *,
        preset: str = "default",
        schedule: str | None = None,
        metric: str | MetricFactory | None = None,
        metric_scope: str | None = None,
        metric_constraint: str | None = None,
        metric_bound: float | None = None,
        metric_depth: int | None = None,
        steps_per_component: int | Literal["auto"] | None = None,
        batch_size: int | str | None = None,
        shuffle_window: int | str | None = None,
        learning_rate: float | None = None,
        optimizer: str | None = None,
        weight_decay: float | str | None = None,
        warmup: float | None = None,
        hidden: Sequence[int] | None = None,
        activation: str | None = None,
        metric_hidden: Sequence[int] | None = None,
        orthogonality: float | None = None,
        smoothness: float | None = None,
        prefix_weight: float | None = None,
        gram: str | None = None,
        weighting: str | Weighting | None = None,
        t_orth: float | None = None,
        t_class: float | Literal["calibrated"] | None = None,
        normalize_weights: bool | None = None,
        anisotropy: float | None = None,
        pretraining: str | None = None,
        graph_rows: int | None = None,
        whiten: bool | None = None,
        early_stopping: bool | str | None = None,
        patience: int | None = None,
        validation_fraction: float = 0.15,
        standardize: bool = True,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
        log_every: int | None = None,
        dtype: str | None = None,
        devices: int | Literal["all"] | None = None,
    ) -> None:
        self.n_components = n_components
        self.preset = preset
        self.schedule = schedule
        self.metric = metric
        self.metric_scope = metric_scope
        self.metric_constraint = metric_constraint
        self.metric_bound = metric_bound
        self.metric_depth = metric_depth
        self.steps_per_component = steps_per_component
        self.batch_size = batch_size
        self.shuffle_window = shuffle_window
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.weight_decay = weight_decay
        self.warmup = warmup
        self.hidden = hidden
        self.activation = activation
        self.metric_hidden = metric_hidden
        self.orthogonality = orthogonality
        self.smoothness = smoothness
        self.prefix_weight = prefix_weight
        self.gram = gram
        self.weighting = weighting
        self.t_orth = t_orth
        self.t_class = t_class
        self.normalize_weights = normalize_weights
        self.anisotropy = anisotropy
        self.pretraining = pretraining
        self.graph_rows = graph_rows
        self.whiten = whiten
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
        self.devices = devices

    def __getstate__(self) -> dict[str, Any]:
        """Plain values: skops then has to trust no type but the estimator."""
        state: Any = super().__getstate__()
        return to_plain(dict(state))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(from_plain(state))

    def check_settings(self, n_rows: int, *, supervised: bool = True) -> Settings:
        """What the keywords come to for `n_rows` rows; an InputError if they cannot work."""
        return decided(self._asked(), Facts(n_rows, is_supervised=supervised))

    def _asked(self) -> Settings:
        """The settings as they were asked for."""
        names = [name for name in (*BECAME, *SHARED) if hasattr(self, name)]
        settings = Settings.of(self.preset, **from_flat({n: getattr(self, n) for n in names}))
        return replace(settings, held_out=self.validation_fraction)

    def _seed(self) -> int:
        """An integer random_state is the seed itself, so that a run can be named by it."""
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))
