"""Errors a user can act on. Their messages say what is wrong and what to do."""


class PiefsError(Exception):
    """The base of all errors raised on purpose."""


class InputError(PiefsError, ValueError):
    """Something the user gave (a file, a column, an option) cannot be used as it is."""


class DataNotFoundError(InputError):
    """A data set's file is in none of the places where it is looked for."""


class DamagedDataError(InputError):
    """A data set's file was found, but its content is not what it should be."""


class ModelFileError(InputError):
    """A model folder that cannot be read: missing, damaged, or of another version."""


class CheckpointError(InputError):
    """A checkpoint that cannot be read; `what` is wrong with it, without what to do."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; start over with --force")
        self.what = what


class LostProcessError(PiefsError, RuntimeError):
    """Another process of a run over several has ended, and this one cannot go on alone."""


class StorageError(PiefsError, OSError):
    """Something could not be written: the disk is full, or the folder is closed to us."""


class TrainingWarning(UserWarning):
    """A run has gone wrong in a way that leaves a model, if not a good one."""


class DivergedError(PiefsError, ArithmeticError):
    """Training diverged (NaN or infinity); `state` is the last finite one, or None."""

    def __init__(self, message: str, state: object = None) -> None:
        super().__init__(message)
        self.state = state
