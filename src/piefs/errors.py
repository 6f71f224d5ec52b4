"""Errors a user can act on. Their messages say what is wrong and what to do."""


class PiefsError(Exception):
    """The base of all errors raised on purpose."""


class InputError(PiefsError, ValueError):
    """Something the user gave (a file, a column, an option) cannot be used as it is."""


class DataNotFoundError(InputError):
    """A data set's file is in none of the places where it is looked for."""


class DamagedDataError(InputError):
    """A data set's file was found, but its content is not what it should be."""
