"""The `paper` preset on MNIST, whole: 16 maps, 60,000 steps, batch 2048, one model, all cores."""

import time

from piefs import PIEFSClassifier
from piefs.data import load


def run() -> dict[str, object]:
    """Wall time of `fit`, compilation and caches included; accuracy on validation rows."""
    data = load("mnist")
    start = time.perf_counter()
    model = PIEFSClassifier(preset="paper", standardize=data.standardize, random_state=0)
    model.fit(data.train.x, data.train.y)
    seconds = time.perf_counter() - start
    accuracy = (model.predict(data.validation.x) == data.validation.y).mean()
    return {
        "preset": "paper",
        "metric": "off",
        "fit_seconds": round(seconds, 1),
        "steps_per_second": round(model.n_iter_ / seconds, 1),
        "validation_accuracy": round(100 * float(accuracy), 2),
    }
