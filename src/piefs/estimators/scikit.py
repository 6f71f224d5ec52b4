"""scikit-learn's own callbacks (from 1.9 on): `model.set_callbacks(ProgressBar())`.

A fit is a task whose subtask is its training, and of that the intervals of the history. Where
scikit-learn has no callbacks yet, the estimators are without `set_callbacks` and all else is as it
was.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import TYPE_CHECKING, Any

from piefs.core.model import Model
from piefs.training.callbacks import Stage

if TYPE_CHECKING:
    from piefs.training.state import TrainState

    class CallbackSupportMixin: ...

    def with_callbacks(method: Callable) -> Callable: ...

else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:

        class CallbackSupportMixin:
            """Nothing to support."""

        def with_callbacks(method: Callable) -> Callable:
            """The method as it is."""
            return method


class ScikitLearnCallbacks:
    """A callback of ours that tells scikit-learn's what happens.

    `given` are X, y and the metadata of the fit; `model_of` gives the model as if training had
    ended with a state, for callbacks that score it.
    """

    def __init__(
        self, estimator: Any, given: dict[str, Any], model_of: Callable[[TrainState], Model]
    ) -> None:
        self.estimator, self.given, self.model_of = estimator, given, model_of

    def begin(self, stage: Stage) -> None:
        """A subtask for training."""
        self._fit = self.estimator._init_callback_context(max_subtasks=1)
        self._fit.call_on_fit_task_begin(estimator=self.estimator, **self.given)
        settings = stage.settings
        n_turns = settings.n_components // settings.maps_at_once
        n_rows = n_turns * ceil(settings.steps_per_component / settings.optimizer.log_every)
        self._stage = self._fit.subcontext(task_name="training", max_subtasks=n_rows)
        self._stage.call_on_fit_task_begin(estimator=self.estimator, **self.given)
        self._n_rows = 0

    def __call__(self, state: TrainState) -> bool:
        """A subtask for each new row of the history; whether one of them asks to stop."""
        asks_to_end = False
        new, self._n_rows = state.history[self._n_rows :], len(state.history)
        for row in new:
            interval = self._stage.subcontext(task_name=f"step {row['step']:.0f}")
            interval.call_on_fit_task_begin(estimator=self.estimator, **self.given)
            asks_to_end |= interval.call_on_fit_task_end(
                estimator=self.estimator,
                **self.given,
                reconstruction_attributes=lambda: {"model_": self.model_of(state)},
            )
        return asks_to_end

    def finish(self) -> None:
        """The fit is done, and the estimator as it will be."""
        self._stage.call_on_fit_task_end(estimator=self.estimator, **self.given)
        self._fit.call_on_fit_task_end(
            estimator=self.estimator, **self.given, reconstruction_attributes=dict
        )
