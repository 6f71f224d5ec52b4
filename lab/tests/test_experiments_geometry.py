"""The geometry benchmark: its data, its measures, its rivals, and the sections of the report."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from lab.benchmarks.results import RESULTS  # noqa: E402
from lab.experiments.geometry import GEOMETRY_SETS, findings, subspace_angle, turn_of  # noqa: E402
from lab.experiments.metric_report import geometry_benchmark, metrics_study  # noqa: E402
from lab.experiments.rfm import RecursiveFeatureMachine  # noqa: E402


def test_class_depends_on_the_plane_alone_and_the_nuisance_is_as_the_name_says():
    for name in ("irrelevant-100", "rotated-100", "anisotropic-100"):
        task, turn = GEOMETRY_SETS[name](3), turn_of(name.split("-")[0], 3)
        z = task.x_test @ turn
        sector = (5 * (np.arctan2(z[:, 1], z[:, 0]) + np.pi) / (2 * np.pi)).astype(int)
        assert np.mean(sector == task.y_test) > 0.999
        spread = z[:, 2:].std(axis=0)
        assert spread[-1] / spread[0] == pytest.approx(4 if "aniso" in name else 1, rel=0.1)
        assert len(task.x) == 100
        assert not set(map(bytes, task.x)) & set(map(bytes, task.x_validation))


def test_angle_is_zero_for_the_plane_itself_and_right_for_a_known_tilt():
    plane = np.eye(5)[:, :2]
    assert subspace_angle(plane @ plane.T, plane) == pytest.approx(0, abs=1e-5)
    tilted = plane.copy()
    tilted[:, 1] = [0, np.cos(0.3), np.sin(0.3), 0, 0]
    assert subspace_angle(tilted @ tilted.T, plane) == pytest.approx(np.degrees(0.3))
    assert findings("maps", plane @ plane.T, plane)["ranking_maps"] == pytest.approx(1)


@pytest.mark.slow
def test_recursive_feature_machine_finds_the_plane_and_gains_by_it():
    task = GEOMETRY_SETS["rotated-300"](0)
    model = RecursiveFeatureMachine()
    model.fit(task.x, task.y, task.x_validation, task.y_validation)
    assert subspace_angle(model.agop_, turn_of("rotated", 0)[:, :2]) < 20
    kernel = model._kernel(model.x_, np.eye(20), 10.0)[0]
    model_state, onehot = model._state, np.eye(5)[task.y]
    learned = np.mean(model.predict(task.x_test) == task.y_test)
    weights = np.linalg.solve(kernel + 1e-3 * np.eye(300), onehot)
    model._state = (np.eye(20), 10.0, weights)
    assert learned > np.mean(model.predict(task.x_test) == task.y_test) + 0.05
    assert model_state is not model._state


def record(study, dataset, method, accuracy, **more):
    return {"study": study, "dataset": dataset, "method": method, "seed": 0} | {
        "accuracy": accuracy,
        "seconds": 3.0,
        **more,
    }


def test_sections_show_the_gain_over_off():
    records = [
        record("geometry", "rotated-300", "off", 0.70, angle_maps=70.0),
        record("geometry", "rotated-300", "agop, trace", 0.85, angle_maps=9.0, angle_metric=8.0),
        record("metrics", "htru2", "off, labels", 0.97, log_scale_range=0.0),
        record("metrics", "htru2", "diag, trace, labels", 0.96, log_scale_range=1.5),
        record("metrics", "htru2", "off, no labels", 0.90, log_scale_range=0.0),
    ]
    geometry = geometry_benchmark(records)
    assert "| agop, trace | 85.0 | +15.0 | 9.0 | 8.0 |" in geometry
    metrics = metrics_study(records)
    assert "| diag, trace | 96.00 | -1.0 | – | 1.50 | 3 | 1 |" in metrics
    assert "### htru2, no labels" in metrics
    assert geometry_benchmark([]) == metrics_study([]) == ""


def test_page_on_metrics_shows_what_was_measured():
    text = (ROOT / "docs/metrics.md").read_text()
    rows = RESULTS["expressivity"]["rows"]
    assert {"trotter", "butterfly", "cayley"} <= {row["name"] for row in rows}
    assert "| butterfly | 2 | 64 |" in text
