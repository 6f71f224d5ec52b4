"""The keywords that all estimators share: what they mean, and what they come to."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from piefs.core.model import Model
from piefs.core.weighting import Dampened, Static, Weighting
from piefs.estimators.decisions import Facts, decided
from piefs.estimators.persistence import from_plain, to_plain
from piefs.training.config import Metric, Optimizer, Settings
from piefs.training.sharding import devices_in_use

if TYPE_CHECKING:
    from piefs.training.callbacks import Callback

PARAMETERS = """
    A keyword left at None takes the preset's value. `Metric`, `Optimizer`, `Dampened` and `Static`
    are in `piefs`; a mapping of their fields is as good.

    Parameters
    ----------
    n_components : int or "auto"
        K, the number of maps; 16 by default, or in closed form classes − 1 if that is more. "auto",
        in closed form, keeps the fewest that match the best loss on left-out rows.
    preset : {"default", "paper", "fast"}
        Named set of settings: what we recommend, the paper to the letter, a first look.
    solver : {"eigen", "nested", "joint", "sequential", "spectral", "auto"}
        In closed form, for tables. Or networks that descend: all maps at once, in order; all at
        once without order; one after the other (the paper); all at once towards the eigenmaps of a
        neighbourhood graph, with labels for the readout alone. "auto" is "eigen", but "nested" for
        more than 10,000 rows of more than 100 columns, or if a keyword asks for steps.
    metric : str, Metric or callable
        A(x) inside the Dirichlet energy: "off" (the identity) or "diag" (a scaling Λ); for networks
        also "agop" (the best that all points share), or a rotation followed by a scaling
        ("trotter", "chain", "butterfly", "cayley"). `Metric` has their options; a function
        (key, n_features) -> MetricField gives a metric of your own.
    hidden, activation : sequence of int, str
        Widths of the hidden layers of each φ; relu, tanh, softplus, gelu, silu or sin, or "auto":
        silu for at most 64 features, relu for more. This and what follows, up to `pretraining`, is
        for networks.
    smoothness : float
        Weight of the energies against the readout's loss, in units of the energy of the smoothest
        linear coordinate; not for the solver "sequential".
    weighting : str, Dampened, Static or callable
        Weights of the losses. "sequential" takes a dampening ("exponential", "rational",
        "polynomial"), `Dampened`, `Static(orth, class_, mde)` or a function (gram_error,
        class_loss) -> LossWeights; "nested" and "joint" take `Static(orth, prefix)`: the weights of
        the Gram error and of the readout's loss on the first 1 … K − 1 maps.
    steps_per_component : int or "auto"
        Steps of each map; "auto" means 12 passes over the rows, but 2,000 to 20,000 steps.
    batch_size, learning_rate : int or "auto", float
        Rows a step ("auto" is an eighth of them, but 64 to 256); peak rate.
    weight_decay : float or "auto"
        Decoupled decay of the weight matrices; "auto" is 0.3.
    optimizer : str or Optimizer
        "adam", "sgd" or `Optimizer(name, warmup, patience, log_every, shuffle_window, dtype)`.
    early_stopping : bool, float or "auto"
        Hold out 15 % of the rows, or another share, unless validation rows are given; stop once
        `patience` intervals of `log_every` steps have not lowered the loss on them, and keep the
        best maps. "auto" does so for 100 to 10,000 rows. Only for "nested" and "joint".
    pretraining : "graph-laplacian" or Model
        Start from maps distilled from graph-Laplacian eigenmaps, or from `model_` of a fitted
        estimator: its maps, metric and readout.
    standardize : bool
        Scale the inputs by training statistics: z-scores, or, in closed form, distances from the
        median in interquartile ranges, smoothly bounded.
    random_state : int, RandomState or None
        Seed of initialisation, batches and held-out rows.
    verbose : int
        0 is silent, 1 prints a line for each stage and tenth of the steps, 2 for each interval.
    callbacks : sequence of callable
        Called with the `TrainState` between chunks of steps; one that returns True ends training.

    Attributes
    ----------
    coordinates_ : ndarray of shape (n_samples, n_components)
        Coordinates of the training rows.
    left_out_ : ndarray of the same shape, or None
        The same as if each row had been left out; the solver "eigen" knows them.
    model_ : Model
        Scaling, maps, metric and readout: pure functions, of JAX if the maps are networks.
    gram_error_, energies_, log_scale_ranges_ : float, ndarray, ndarray
        ‖C − I‖²_F on the training rows; energy of each map, and range of the logarithms of the
        metric's scales (1/λ in closed form).
    gram_, dirichlet_ : ndarrays of shape (n_components, n_components)
        Gram matrix and Dirichlet form of the coordinates on the training rows; see `ritz`.
    history_ : list of dict
        Losses, weights and validation scores, averaged over intervals of steps.
    n_iter_, steps_ : int, ndarray
        Steps taken in all, and in each turn (one a map, or one for all maps).
    n_components_ : int
        Maps there are; fewer than asked for if a callback ended training between two.
    warnings_ : list of Finding
        What has gone wrong in training, if anything: its kind, what was seen, and what to do.
    settings_, seed_ : Settings, int
        What the keywords came to.
"""


class Configurable(BaseEstimator):
    """Keywords as scikit-learn wants them: kept as they are given, resolved by `fit`."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Let an estimator's `__init__(self, n_components, *, own, **keywords)` say all it takes.

        scikit-learn reads an estimator's parameters off that signature.
        """
        super().__init_subclass__(**keywords)
        if "__init__" in cls.__dict__:
            shared = inspect.signature(Configurable.__init__).parameters
            own = inspect.signature(cls.__init__).parameters
            named = {n: p for n, p in own.items() if p.kind is not p.VAR_KEYWORD}
            rest = {n: p for n, p in shared.items() if p.kind is not p.VAR_KEYWORD}
            signature = inspect.Signature(list((rest | named).values()))
            setattr(cls.__init__, "__signature__", signature)  # noqa: B010 - functions take it

    def __init__(
        self,
        n_components: int | Literal["auto"] | None = None,
        *,
        preset: str = "default",
        solver: str | None = None,
        metric: str | Metric | Callable | None = None,
        hidden: Sequence[int] | None = None,
        activation: str | None = None,
        smoothness: float | None = None,
        weighting: str | Dampened | Static | Weighting | None = None,
        steps_per_component: int | Literal["auto"] | None = None,
        batch_size: int | str | None = None,
        learning_rate: float | None = None,
        weight_decay: float | str | None = None,
        optimizer: str | Optimizer | None = None,
        early_stopping: bool | float | str | None = None,
        pretraining: str | Model | None = None,
        standardize: bool = True,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
    ) -> None:
        self.n_components = n_components
        self.preset = preset
        self.solver = solver
        self.metric = metric
        self.hidden = hidden
        self.activation = activation
        self.smoothness = smoothness
        self.weighting = weighting
        self.steps_per_component = steps_per_component
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.optimizer = optimizer
        self.early_stopping = early_stopping
        self.pretraining = pretraining
        self.standardize = standardize
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def __getstate__(self) -> dict[str, Any]:
        """Plain values: skops then has to trust no type but the estimator."""
        state: Any = super().__getstate__()
        return to_plain(dict(state))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(from_plain(state))

    def check_settings(
        self,
        n_rows: int,
        *,
        n_features: int = 1,
        n_classes: int = 0,
        supervised: bool = True,
    ) -> Settings:
        """What the keywords come to for such rows; an InputError if they cannot work."""
        facts = Facts(n_rows, n_features, supervised, n_classes=n_classes)
        return decided(self._asked(), replace(facts, asks_for_steps=self._asks_for_steps()))

    def _asks_for_steps(self) -> str | None:
        """What is asked for, beside settings, that only a solver that descends can do."""
        if self.callbacks:
            return "callbacks"
        if isinstance(self.pretraining, Model):
            return "pretraining"
        return "sharded" if devices_in_use().mesh is not None else None

    def _asked(self) -> Settings:
        """The settings as they are asked for."""
        settings = {f.name for f in fields(Settings)}
        asked = {n: v for n, v in self.get_params(deep=False).items() if n in settings}
        if isinstance(self.pretraining, Model):
            asked["pretraining"] = None
        return Settings.of(**asked)

    def _seed(self) -> int:
        """An integer random_state is the seed itself, so that a run can be named by it."""
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))
