"""How far exported models are from ours on 100,000 rows, in onnxruntime and in numpy alone."""

import importlib.util
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime

from piefs import PIEFSClassifier, PIEFSRegressor
from piefs.data import load

N_ROWS, BLOCK = 100_000, 10_000
PAGE = Path(__file__).parents[2] / "docs" / "exports.md"
OPEN, CLOSE = "<!-- parity -->\n", "<!-- /parity -->"


def run() -> dict[str, Any]:
    """Classifiers and a regressor of the preset `fast`, in single precision unless it is said."""
    cases: dict[str, tuple[str, dict[str, Any]]] = {
        "two-moons": ("two-moons", {}),
        "htru2": ("htru2", {}),
        "htru2, relu": ("htru2", {"activation": "relu"}),
        "htru2, gelu": ("htru2", {"activation": "gelu"}),
        "htru2, double precision": ("htru2", {"optimizer": {"dtype": "float64"}}),
        "digits": ("digits", {}),
    }
    found = [_classifier(name, data, keywords) for name, (data, keywords) in cases.items()]
    return {"n_rows": N_ROWS, "preset": "fast", "seed": 0, "cases": [*found, _regressor()]}


def _classifier(name: str, data: str, keywords: dict[str, Any]) -> dict[str, Any]:
    train = load(data).train
    model = PIEFSClassifier(preset="fast", random_state=0, **keywords).fit(train.x, train.y)
    X = rows_like(train.x)
    ours = {"coordinates": model.transform(X), "prediction": model.predict_proba(X)}
    return _differences(name, model, X, ours, 1.0)


def _regressor() -> dict[str, Any]:
    x = load("htru2").train.x
    model = PIEFSRegressor(preset="fast", random_state=0).fit(x[:, 1:], x[:, 0])
    X = rows_like(x[:, 1:])
    ours = {"coordinates": model.transform(X), "prediction": model.predict(X)}
    return _differences("htru2, a number", model, X, ours, float(model.target_scale_[0]))


def rows_like(x: np.ndarray) -> np.ndarray:
    """Half of them rows of the data, shaken; half uniform over a box twice as wide."""
    rng = np.random.default_rng(0)
    drawn = x[rng.integers(len(x), size=N_ROWS // 2)]
    shaken = drawn + 0.1 * x.std(axis=0) * rng.standard_normal(drawn.shape)
    low, high = x.min(axis=0), x.max(axis=0)
    box = rng.uniform(low - (high - low) / 2, high + (high - low) / 2, drawn.shape)
    return np.concatenate([shaken, box]).astype(np.float32)


def _differences(
    name: str, model: Any, X: np.ndarray, ours: dict[str, np.ndarray], unit: float
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        model.export(Path(folder) / "model.onnx")
        model.export(Path(folder) / "exported.py")
        by_onnx = _by_onnxruntime(Path(folder) / "model.onnx", X)
        module = _imported(Path(folder) / "exported.py")
    predict = module.predict_proba if "probabilities" in by_onnx else module.predict
    others = {
        "onnxruntime": (
            by_onnx["coordinates"],
            by_onnx.get("probabilities", by_onnx.get("prediction")),
        ),
        "numpy": (module.transform(X), predict(X)),
    }
    return {
        "name": name,
        "largest_coordinate": float(np.abs(ours["coordinates"]).max()),
    } | {
        runtime: {
            "coordinates": float(np.abs(phi - ours["coordinates"]).max()),
            "prediction": float(np.abs(answer - ours["prediction"]).max() / unit),
        }
        for runtime, (phi, answer) in others.items()
    }


def _by_onnxruntime(path: Path, X: np.ndarray) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(path)
    kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64}
    X = X.astype(kinds[session.get_inputs()[0].type])
    parts = [session.run(None, {"X": X[i : i + BLOCK]}) for i in range(0, len(X), BLOCK)]
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, map(np.concatenate, zip(*parts, strict=True)), strict=True))


def _imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.transform(np.zeros((1, module.MODEL["n_features"])))  # while its file is there
    return module


def table(found: dict[str, Any]) -> str:
    """The largest differences as the page shows them."""
    lines = [
        "| model | largest coordinate | onnxruntime: coordinates | predictions "
        "| numpy: coordinates | predictions |",
        "|---|---|---|---|---|---|",
    ]
    for case in found["cases"]:
        differences = [
            case[runtime][what]
            for runtime in ("onnxruntime", "numpy")
            for what in ("coordinates", "prediction")
        ]
        cells = [f"{case['largest_coordinate']:.1f}", *(f"{one:.0e}" for one in differences)]
        lines.append(f"| {case['name']} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
