"""Tables that tests write to files."""

from pathlib import Path

import numpy as np

from piefs.data.readers import write_blocks


def write_table(path: Path, columns: dict[str, np.ndarray]) -> None:
    """Columns as a file, in the format of its suffix."""
    write_blocks(path, [columns], len(next(iter(columns.values()))))
