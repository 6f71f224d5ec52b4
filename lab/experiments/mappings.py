"""How many mappings of memory compiled programs take: fits to tables of ever more columns.

`python -m lab.experiments.mappings [N]` fits N of them (10) in one process and prints, as JSON, the
mappings after each, and how many the system allows.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np

from piefs import PIEFSClassifier
from piefs.training.runtime import mappings, mappings_allowed


def main(n_fits: int) -> None:
    """Fit, and tell."""
    x = np.random.default_rng(0).normal(size=(300, 4 + n_fits))
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    model = PIEFSClassifier(
        4, hidden=(8,), steps_per_component=20, early_stopping=False, random_state=0
    )
    taken = []
    for d in range(5, 5 + n_fits):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # so short a training has its weaknesses
            model.fit(x[:, :d], y)
        taken.append(mappings())
    print(json.dumps({"taken": taken, "allowed": mappings_allowed()}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
