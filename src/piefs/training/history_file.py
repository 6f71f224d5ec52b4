"""A training history as a CSV file."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from piefs.data.files import write_bytes


def write_history(path: Path, history: Sequence[Mapping[str, Any]]) -> None:
    """One line for each row; a column that only some rows have is empty in the others."""
    columns = dict.fromkeys(name for row in history for name in row)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    write_bytes(path, buffer.getvalue().encode())
