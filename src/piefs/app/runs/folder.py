"""The folder of a run: locked while a run writes to it, never overwritten by accident."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from piefs.data.locks import held
from piefs.errors import InputError
from piefs.report import EVIDENCE, PAGE
from piefs.training.checkpoint import kept, previous

METRICS, HISTORY, CHECKPOINT = "metrics.json", "history.csv", "checkpoint.safetensors"


class RunFolder:
    """RUN/model, metrics.json, history.csv, figures, report.html, and while running a checkpoint.

    RUN/report.json is what the report needs to be written anew.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.model = self.path / "model"
        self.metrics = self.path / METRICS
        self.history = self.path / HISTORY
        self.figures = self.path / "figures"
        self.evidence = self.path / EVIDENCE
        self.report = self.path / PAGE
        self.checkpoint = self.path / CHECKPOINT

    @property
    def is_finished(self) -> bool:
        """Whether a whole run is here: its metrics are written last."""
        return self.metrics.is_file()

    @property
    def is_unfinished(self) -> bool:
        """Whether a run was begun here and not ended."""
        return bool(kept(self.checkpoint))

    @contextmanager
    def opened(self, *, resume: bool = False, force: bool = False) -> Iterator[None]:
        """Hold the folder for one run; `force` starts over in a used one, `resume` continues."""
        with held(self.path):
            if force:
                self._clear()
            self._refuse_overwriting(resume)
            yield

    def _refuse_overwriting(self, resume: bool) -> None:
        if self.is_finished:
            raise InputError(
                f"{self.path} holds a finished run; choose another --out, or --force to replace it"
            )
        if self.is_unfinished and not resume:
            raise InputError(
                f"{self.path} holds an unfinished run; continue it with --resume, or start over "
                "with --force"
            )

    def _clear(self) -> None:
        """Take away what says that a run is here; its other files are replaced one by one."""
        for path in (self.metrics, self.evidence, self.report):
            path.unlink(missing_ok=True)
        self.drop_checkpoints()

    def drop_checkpoints(self) -> None:
        """Take away what a run resumes from, once it has ended or starts over."""
        for path in (previous(self.checkpoint), self.checkpoint):
            path.unlink(missing_ok=True)
