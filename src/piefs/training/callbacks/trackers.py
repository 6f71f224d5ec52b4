"""Histories in the tools that people watch runs with: TensorBoard and MLflow, both optional."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from piefs.errors import InputError
from piefs.training.callbacks.stages import NewRows, Stage
from piefs.training.state import TrainState


class TensorBoard:
    """Every column of the history as a curve in TensorBoard, a run for each stage.

    Needs `pip install "piefs[tensorboard]"`.

    Parameters
    ----------
    folder
        Where event files go; `tensorboard --logdir FOLDER` shows them.
    """

    def __init__(self, folder: str | Path) -> None:
        optional("tensorboardX", "tensorboard")
        self.folder = Path(folder)
        self._writer: Any = None

    def begin(self, stage: Stage) -> None:
        """Open a run for the stage."""
        self.end()
        writer = optional("tensorboardX", "tensorboard").SummaryWriter
        self._writer = writer(str(self.folder / stage.name.replace(" ", "-")))
        self._new_rows = NewRows()

    def __call__(self, state: TrainState) -> None:
        """Add what is new."""
        for row in self._new_rows(state):
            for name, value in row.items():
                if name != "step":
                    self._writer.add_scalar(name, value, int(row["step"]))

    def end(self) -> None:
        """Write all that is pending."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class MLflow:
    """A fit as a run of MLflow: the settings as parameters, the history as metrics.

    Only the training proper is recorded, not the trials before it. Within a run of your own
    (`with mlflow.start_run(): …`) that one is used. Needs `pip install "piefs[mlflow]"`.

    Parameters
    ----------
    tracking_uri, experiment, run_name
        As MLflow has them; what is not given is as the surroundings say.
    """

    def __init__(
        self,
        tracking_uri: str | None = None,
        experiment: str | None = None,
        run_name: str | None = None,
    ) -> None:
        optional("mlflow", "mlflow")
        self.tracking_uri, self.experiment, self.run_name = tracking_uri, experiment, run_name
        self._is_recording = self._is_ours = False

    def begin(self, stage: Stage) -> None:
        """Start a run where none is active, and give it the settings."""
        if stage.is_trial:
            return
        mlflow = optional("mlflow", "mlflow")
        if self.tracking_uri is not None:
            mlflow.set_tracking_uri(self.tracking_uri)
        if self.experiment is not None:
            mlflow.set_experiment(self.experiment)
        self._is_ours = mlflow.active_run() is None
        if self._is_ours:
            mlflow.start_run(run_name=self.run_name)
        mlflow.log_params({name: str(value) for name, value in stage.settings.document().items()})
        self._is_recording, self._new_rows = True, NewRows()

    def __call__(self, state: TrainState) -> None:
        """Add what is new."""
        if not self._is_recording:
            return
        for row in self._new_rows(state):
            metrics = {name: float(value) for name, value in row.items() if name != "step"}
            optional("mlflow", "mlflow").log_metrics(metrics, step=int(row["step"]))

    def end(self) -> None:
        """End the run that was started here."""
        if self._is_recording and self._is_ours:
            optional("mlflow", "mlflow").end_run()
        self._is_recording = self._is_ours = False


def optional(module: str, extra: str) -> Any:
    """A module that comes with an extra; without it, an InputError says how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(
            f'{module} is not installed; get it with pip install "piefs[{extra}]"'
        ) from error
