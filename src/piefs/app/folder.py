"""A run's folder, and what is known of the table it was fitted on."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from piefs.data import Dataset
from piefs.data.encoder import ColumnEncoding, TableEncoder
from piefs.data.files import held
from piefs.errors import InputError
from piefs.report import EVIDENCE, PAGE


class RunFolder:
    """RUN/model, metrics.json, history.csv, figures, report.html, and while running a checkpoint.

    RUN/report.json is what the report can be written from again.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.model, self.figures = self.path / "model", self.path / "figures"
        self.metrics, self.history = self.path / "metrics.json", self.path / "history.csv"
        self.evidence, self.report = self.path / EVIDENCE, self.path / PAGE
        self.checkpoint = self.path / "checkpoint.safetensors"

    @property
    def is_finished(self) -> bool:
        """Whether a whole run is here: its metrics are written last, but for the page."""
        return self.metrics.is_file()

    @property
    def checkpoints(self) -> list[Path]:
        """What a run that was begun here and not ended resumes from: the newest, and one before."""
        return [*self.path.glob("checkpoint*.safetensors")]

    @contextmanager
    def locked(self, *, resume: bool = False, force: bool = False) -> Iterator[None]:
        """Hold the folder for one run; a used one is refused, or cleared by `force`."""
        with held(self.path):
            self.check(resume=resume, force=force)
            if force:
                told = (self.metrics, self.evidence, self.report, self.history)
                for path in (*told, *self.figures.glob("*.png"), *self.checkpoints):
                    path.unlink(missing_ok=True)
            yield

    def check(self, *, resume: bool = False, force: bool = False) -> None:
        """Refuse to overwrite a run without --force, and one that was cut off without --resume."""
        if self.is_finished and not force:
            raise InputError(
                f"{self.path} holds a finished run; choose another --out, or --force to replace it"
            )
        if self.checkpoints and not (force or resume):
            raise InputError(
                f"{self.path} holds an unfinished run; continue it with --resume, or start over "
                "with --force"
            )


@dataclass(frozen=True)
class TableDetails:
    """What is known of a user's own table beside its data set."""

    encoder: TableEncoder
    target: str | None = None
    id_column: str | None = None
    unlabeled: np.ndarray | None = None
    notices: Sequence[str] = ()

    @classmethod
    def of_numbers(cls, data: Dataset) -> "TableDetails":
        """Of a built-in data set, all of whose columns are numbers."""
        columns = (ColumnEncoding(name, "number") for name in data.feature_names)
        return cls(TableEncoder(tuple(columns)))

    def document(self, data: Dataset) -> dict[str, Any]:
        """What model.json says of the data, so that other files can be read the same way."""
        return {
            "dataset": data.name,
            "class_names": list(data.class_names),
            "target": self.target,
            "id": self.id_column,
            "table": self.encoder.to_document(),
        }
