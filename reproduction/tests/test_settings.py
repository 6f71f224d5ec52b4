"""The runs of the grid still have the settings that their records were made with."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from piefs import PIEFSClassifier
from piefs.core.weighting import DAMPENINGS, Dampened, Static
from piefs.estimators.format2 import BECAME
from reproduction.records import Record, Records
from reproduction.variants import Scaled

RECORDS = Path(__file__).parents[2] / "results" / "records"
FORMS = {"Dampened": Dampened, "Scaled": Scaled, "Static": Static}
ELSEWHERE = ("weighting", "t_orth", "t_class", "normalize_weights", "prefix_weight", "gram", "seed")


def ours() -> list[Record]:
    """One record of each kind of run."""
    kinds = {}
    for record in Records(RECORDS):
        cell = record.cell
        if cell.is_piefs:
            is_embedded = cell.dataset.startswith("cifar10")
            kinds[cell.method, cell.mode, cell.variant, is_embedded] = record
    return list(kinds.values())


def recorded_weights(config: dict[str, Any]) -> Any:
    form = config["weighting"]
    if form is None:
        return Static(orth=config["orthogonality"])
    if form in DAMPENINGS:
        temperatures = (config["t_orth"], config["t_class"])
        return Dampened(form, *temperatures, config["normalize_weights"])
    return eval(form, FORMS)


def found(settings: Any, name: str) -> Any:
    for part in BECAME.get(name, name).split("."):
        settings = settings.widths if part == "hidden" and name != part else getattr(settings, part)
    return list(settings) if isinstance(settings, tuple) else settings


@pytest.mark.parametrize("record", ours(), ids=lambda record: str(record.cell))
def test_a_cell_has_the_settings_of_its_record(record):
    cell, config = record.cell, record.metrics["config"]
    estimator = PIEFSClassifier(**cell.keywords())
    settings = estimator.check_settings(60_000, supervised=cell.mode == "supervised")
    assert estimator.random_state == config["seed"]
    for name, value in config.items():
        is_unused = name.startswith("metric_") and settings.metric.name == "off"
        if value is not None and name not in ELSEWHERE and not is_unused:
            if name == "orthogonality":
                assert settings.weighting.orth == value
            else:
                assert found(settings, name) == value, name
    assert settings.gram == config.get("gram", "batch")
    if cell.variant != "laplacian-calibrated":  # its t_class comes from the data
        for errors in ((0.05, 0.1), (0.3, 0.02)):
            weights, recorded = (w(*errors) for w in (settings.weighting, recorded_weights(config)))
            assert list(map(float, weights)) == pytest.approx(list(map(float, recorded)))


def test_scaled_weights_are_those_of_the_base_times_constants():
    base, losses = Dampened("rational", normalize=True), (np.array(0.2), np.array(0.7))
    expected = np.array([0.0, 2.0, 0.1]) * base(*losses)
    np.testing.assert_allclose(Scaled(base, 0.0, 2.0, 0.1)(*losses), expected)
    np.testing.assert_allclose(Scaled(base)(*losses), base(*losses))
