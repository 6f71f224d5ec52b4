"""The keywords that all estimators share: their description, and how an estimator adds its own."""

import inspect
from typing import TypeVar

Estimator = TypeVar("Estimator", bound=type)

PARAMETERS = """
    A keyword left at None is taken from the preset.

    Parameters
    ----------
    n_components : int or "auto"
        K, the number of maps. "auto" takes the fewest that do as well as many (32, or one for every
        ten rows) on validation rows; then that many are trained on all rows. It needs labels.
    preset : {"default", "paper", "fast"}
        Named set of keywords: what we recommend, the paper to the letter, a first look.
    schedule : {"nested", "joint", "sequential", "spectral"}
        All maps at once and in order of importance; all at once without order; one after the
        other, earlier ones frozen (the paper); all at once towards the eigenmaps of a
        neighbourhood graph, without a look at labels, which only the readout sees: for few
        labels among many rows.
    metric : str or callable
        A(x) inside the Dirichlet energy: "off" (the identity), "diag" (a scaling Λ), a rotation
        followed by a scaling, or "agop" (the best metric that all points share, in closed form
        from the maps' average gradient outer product). Rotations: "trotter", "chain", "brickwall",
        "butterfly", "householder", "cayley", "exponential", "dense". Or a function
        (key, n_features) -> Metric.
    metric_scope : {"local", "global", "global-scales", "global-rotation", "composed"}
        What all points share: nothing, both factors, Λ alone, U alone; "composed" puts a shared
        rotation before U(x).
    metric_constraint : {"volume", "trace"}
        What fixes the size of Λ: det Λ = 1 (the paper) or mean λ⁻² = 1.
    metric_bound : float
        Bound on every |log λ|, and on log(λ_max/λ_min); none unless given, 3 for "agop".
    metric_depth : int
        Size of a rotation family: sweeps of "brickwall" (8), repetitions of "butterfly" (1),
        reflections of "householder" (2, even), pairs of vectors of "cayley" and "exponential" (1).
    steps_per_component : int or "auto"
        Steps that each map takes, in its turn or together with the others. "auto" means 16 passes
        over the rows, but at least 2,000 and at most 20,000 steps.
    batch_size, learning_rate, optimizer : int or "auto", float, str
        Rows a step (clipped to the data; "auto" is an eighth of the rows, but 64 to 256), peak
        rate, and "adam" or "sgd".
    shuffle_window : int or "auto"
        Rows among which they are shuffled, blocks of neighbours in random order: for rows that are
        read from a file. "auto" is 131,072 for those, and all rows for an array in memory.
    weight_decay, warmup : float or "auto", float
        Decoupled decay of the weight matrices; share of the steps in which the rate climbs. "auto"
        is 0.3, and where the number of steps is chosen on validation rows, the best of 0.3, 3, 10.
    hidden, activation : sequence of int, str
        Widths of the hidden layers of each φ; relu, tanh, softplus, gelu, silu or sin, or "auto":
        silu for at most 64 features, relu for more.
    metric_hidden : sequence of int
        Widths of the hidden layers of the metric's networks.
    gram : {"population", "batch"}
        Whose Gram error is taken: an unbiased estimate of the population's, which small batches
        do not disturb, or that of the batch itself (the paper).
    orthogonality, smoothness : float, float
        Weights of the Gram error and of the energies (in units of the energy of the smoothest
        linear coordinate) against the readout's loss, with schedules "joint" and "nested".
    prefix_weight : float
        Weight of the readout's loss on the first 1 … K − 1 maps alone, with schedule "nested".
    weighting : {"exponential", "rational", "polynomial", "static"} or callable
        How schedule "sequential" weighs the three losses, or a function (gram_error, class_loss)
        -> LossWeights.
    t_orth, t_class, normalize_weights : float, float or "calibrated", bool
        Temperatures of that weighting; whether its weights sum to one.
    anisotropy : float
        Multiple of the penalty mean (log λ)² on the metric.
    pretraining : {"graph-laplacian"}
        Start from maps distilled from graph-Laplacian eigenmaps.
    graph_rows : int
        The most rows that a neighbourhood graph is built on.
    whiten : bool
        Make the coordinates exactly orthonormal on the training rows, their order kept and the
        readout transformed along.
    early_stopping, patience, validation_fraction : bool or "auto", int, float
        Choose the number of steps on validation rows (`validation_fraction` of the data unless
        given to `fit`), up to `steps_per_component` and until `patience` intervals of `log_every`
        steps have not lowered the loss; then train on all rows for that long. "auto" does so for
        100 to 10,000 rows and budgets above 200 steps. With schedule "sequential" a map ends when
        that happens, without a second run; there "auto" means that validation rows are given, or
        can be spared: from 10,000 rows on.
    standardize : bool
        Z-score the inputs on training statistics.
    random_state : int, RandomState or None
        Seed of initialisation, batches and held-out rows.
    warm_start : bool
        Begin a second `fit` from the maps, metric and readout of the first.
    verbose : int
        0 is silent, 1 prints a line for each stage and each map, with the time left, 2 one for each
        interval.
    callbacks : sequence of callable
        Called with the `TrainState` between chunks of steps; one that returns True ends the run,
        and the model is finished as it stands. See `piefs.callbacks`.
    log_every : int
        Steps between two rows of the history.
    dtype : {"float32", "float64"}
        Precision of training and of the coordinates.
    devices : "all", int or None
        Devices that share each batch: all that JAX sees, those of other processes included
        (`jax.distributed`), or a number of this process's own. None is one. The model is the same
        up to rounding.

    Attributes
    ----------
    coordinates_ : ndarray of shape (n_samples, n_components)
        Coordinates of the training rows.
    model_ : Model
        Scaling, maps, metric and readout as a JAX pytree of pure functions.
    gram_error_, energies_, log_scale_ranges_ : float, ndarray, ndarray
        ‖C − I‖²_F on the training rows; energy and range of log λ of each map when it was frozen.
    gram_, dirichlet_ : ndarrays of shape (n_components, n_components)
        Gram matrix and Dirichlet form of the coordinates on the training rows; see `ritz`.
    history_ : list of dict
        Losses, weights and validation scores, averaged over intervals of steps.
    n_iter_, n_iter_budget_, steps_ : int, int, ndarray
        Steps taken in all, allowed in all, and taken in each turn (one a map, or one for all maps).
    n_components_ : int
        Maps there are: as many as were chosen, and fewer where a callback ended training in between
        two.
    warnings_ : list of Finding
        What has gone wrong in training, if anything: its kind, what was seen, and what to do.
    settings_, seed_ : Settings, int
        What the keywords came to.
"""


def extends_keywords(cls: Estimator) -> Estimator:
    """Let an estimator add keywords to those of its base without repeating them.

    scikit-learn reads an estimator's parameters off the signature of its `__init__`; this gives
    `__init__(self, n_components, *, own, **keywords)` the signature that it stands for.
    """
    base, own = (inspect.signature(c.__init__).parameters for c in (_keyword_base(cls), cls))
    merged = {**base, **{name: p for name, p in own.items() if p.kind is not p.VAR_KEYWORD}}
    signature = inspect.Signature(list(merged.values()))
    setattr(cls.__init__, "__signature__", signature)  # noqa: B010 - a function takes attributes
    return cls


def _keyword_base(cls: type) -> type:
    """The class that spells out the shared keywords."""
    return next(base for base in cls.__mro__[1:] if "n_components" in _own_parameters(base))


def _own_parameters(cls: type) -> dict:
    init = cls.__dict__.get("__init__")
    return dict(inspect.signature(init).parameters) if init else {}
