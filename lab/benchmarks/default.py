"""The `default` preset on MNIST: seconds until it is as accurate as others, all cores.

In one run: a random forest's fit (200 trees, all cores) with its accuracy on the validation rows,
then our fit, scored on the same rows as it goes. Scoring takes time too and counts against us.
"""

import time
from pathlib import Path

from sklearn.ensemble import RandomForestClassifier

from piefs import PIEFSClassifier
from piefs.data import load
from piefs.training.state import TrainState
from reproduction.cells import Cell
from reproduction.records import Records, Summary, summaries

STRICT = Path(__file__).parents[2] / "results" / "records"


def of_paper_preset() -> Summary:
    """The accuracy of preset `paper` on the same rows, over the seeds on record."""
    cells = [Cell("mnist", "piefs-off", "supervised", "paper", seed) for seed in range(5)]
    (found,) = summaries(Records(STRICT).of(cells), split="validation", scale=1.0).values()
    return found


def run() -> dict[str, object]:
    """Seconds to the accuracy of the paper's preset, to the forest's, and to the end."""
    data, strict = load("mnist"), of_paper_preset()
    forest = RandomForestClassifier(200, random_state=0, n_jobs=-1)
    start = time.perf_counter()
    forest.fit(data.train.x, data.train.y)
    forest_seconds = time.perf_counter() - start
    forest_accuracy = float(forest.score(data.validation.x, data.validation.y))
    reached: list[tuple[float, float]] = []

    def note(state: TrainState) -> None:
        if state.history:
            reached.append((time.perf_counter(), state.history[-1]["validation_accuracy"]))

    model = PIEFSClassifier(standardize=data.standardize, random_state=0, callbacks=[note])
    start = time.perf_counter()
    model.fit(data.train.x, data.train.y, validation_data=(data.validation.x, data.validation.y))
    seconds = time.perf_counter() - start

    def until(accuracy: float) -> float | None:
        moments = [moment - start for moment, found in reached if found >= accuracy]
        return round(moments[0], 1) if moments else None

    final = float(model.score(data.validation.x, data.validation.y))
    return {
        "forest_fit_seconds": round(forest_seconds, 1),
        "forest_accuracy": round(100 * forest_accuracy, 2),
        "paper_preset_accuracy": round(100 * strict.mean, 2),
        "paper_preset_seeds": strict.n_seeds,
        "seconds_to_paper_preset": until(strict.mean),
        "seconds_to_forest": until(forest_accuracy),
        "fit_seconds": round(seconds, 1),
        "validation_accuracy": round(100 * final, 2),
        "steps": model.n_iter_,
    }
