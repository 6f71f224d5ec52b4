"""Exported files say what the model says: in onnxruntime, and in a Python that has numpy alone."""

import ast
import importlib.util
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import onnx
import onnxruntime
import pandas
import pytest
from scipy.special import ndtr

from piefs import PIEFSClassifier, PIEFSRegressor, PIEFSTransformer
from piefs.core import trees
from piefs.core.kernel import KernelMaps
from piefs.core.maps import ScalarMap
from piefs.core.model import Model, Readout, Scaling
from piefs.core.networks import ACTIVATIONS, MLP
from piefs.errors import InputError
from piefs.estimators.export import Exported, export, exported, plain_labels
from piefs.estimators.export_template import gelu_tail
from piefs.estimators.rows import scaling_of

QUICK = {"steps_per_component": 20, "early_stopping": False, "random_state": 0, "hidden": (32, 32)}
CENTERS, SCALES = np.array([0.0, 5.0, -0.3, 900.0]), np.array([1.0, 30.0, 0.1, 100.0])
N_ROWS = 100_000

# Imports of anything but numpy and the standard library fail; the exported file is beside.
ALONE = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in {"numpy", "exported", *sys.stdlib_module_names}:
            raise ImportError(f"{name} is not numpy")
sys.meta_path.insert(0, Refuse())
sys.path.insert(0, sys.argv[1])
import exported, numpy as np
X = np.load(sys.argv[1] + "/X.npy")
results = {name: getattr(exported, name)(X) for name in sys.argv[2:]}
np.savez(sys.argv[1] + "/results.npz", **results)
"""


def rows(n, seed=1):
    return np.random.default_rng(seed).normal(CENTERS, SCALES, (n, 4))


def labels_of(X):
    z = (X - CENTERS) / SCALES
    return (z[:, 0] > 0).astype(int) + (z[:, 1] + z[:, 3] > 0)


def fitted(kind, **keywords):
    X = rows(300, 0)
    y = labels_of(X)
    if kind is PIEFSRegressor:
        y = 1e6 + 3.0 * y + X[:, 0]
    return kind(**QUICK | {"n_components": 5} | keywords).fit(X, y)


@pytest.fixture(scope="module")
def classifier():
    return fitted(PIEFSClassifier)


def changed(one, **parts):
    """An exported model with other parts of its `Model`."""
    return replace(one, model=replace(one.model, **parts))


@pytest.fixture(scope="module")
def of_activation(network):
    """An exported classifier with random maps of any activation and precision: no training."""

    def made(base, activation, dtype):
        nets = [network(np.random.default_rng(k), (4, 16, 16, 1), activation) for k in range(3)]
        weights = tuple(np.stack([n.weights[i] for n in nets]).astype(dtype) for i in range(3))
        biases = tuple(np.stack([n.biases[i] for n in nets]).astype(dtype) for i in range(3))
        readout = np.random.default_rng(9).normal(size=(3, 3)).astype(dtype)
        return changed(
            exported(base),
            maps=ScalarMap(MLP(weights, biases, activation)),
            mixing=np.tril(readout) + np.eye(3, dtype=dtype),
            readout=Readout(readout, readout[0]),
        )

    return made


def onnx_bytes(one):
    """The graph of an exported model."""
    with tempfile.TemporaryDirectory() as folder:
        export(one, Path(folder) / "model.onnx")
        return (Path(folder) / "model.onnx").read_bytes()


def by_onnxruntime(content, X, block=20_000):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options)
    names = [output.name for output in session.get_outputs()]
    kind = {"tensor(float)": np.float32, "tensor(double)": np.float64}[session.get_inputs()[0].type]
    blocks = [X[i : i + block].astype(kind) for i in range(0, len(X), block)]
    parts = [session.run(None, {"X": part}) for part in blocks]
    return dict(zip(names, map(np.concatenate, zip(*parts, strict=True)), strict=True))


def by_numpy_alone(folder, model, X, *functions):
    model.export(folder / "exported.py")
    np.save(folder / "X.npy", X)
    command = [sys.executable, "-I", "-c", ALONE, str(folder), *functions]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with np.load(folder / "results.npz") as results:
        return dict(results)


def plainly(one, X):
    """What the arrays mean, in double precision and with the library's own activations."""
    model = one.model
    net, scaling = model.maps.net, model.scaling
    with jax.enable_x64(True):
        sigma = ACTIVATIONS[net.activation].value
        x = ((X - scaling.center) / scaling.scale)[None]
        for layer, (w, b) in enumerate(zip(net.weights, net.biases, strict=True)):
            x = np.asarray(x if layer == 0 else sigma(x)) @ w.astype(float) + b[:, None, :]
        return x[:, :, 0].T @ model.mixing.T.astype(float)


def test_a_classifier_in_onnxruntime_is_ours_on_100_000_rows(classifier):
    X = rows(N_ROWS).astype(np.float32)
    found = by_onnxruntime(onnx_bytes(exported(classifier)), X)
    probabilities = classifier.predict_proba(X)
    assert np.abs(found["coordinates"] - classifier.transform(X)).max() < 1e-5
    assert np.abs(found["probabilities"] - probabilities).max() < 1e-6
    best, second = np.sort(probabilities, axis=1)[:, :-3:-1].T
    is_clear = best - second > 1e-5
    assert (found["label"] == classifier.predict(X))[is_clear].all()
    assert is_clear.mean() > 0.999
    assert found["label"].dtype == np.int64


def test_a_regressor_in_onnxruntime_predicts_in_the_units_of_its_targets():
    model = fitted(PIEFSRegressor)
    X = rows(1000).astype(np.float32)
    found = by_onnxruntime(onnx_bytes(exported(model)), X)["prediction"]
    assert found.shape == (1000,)
    np.testing.assert_allclose(found, model.predict(X), rtol=0, atol=1e-5 * model.target_scale_[0])


def test_several_targets_are_predicted_as_columns(tmp_path):
    X = rows(300).astype(np.float32)
    model = PIEFSRegressor(n_components=1, **QUICK).fit(X, X[:, :2] * [1, 100])
    found = by_onnxruntime(onnx_bytes(exported(model)), X)["prediction"]
    alone = by_numpy_alone(tmp_path, model, X, "predict")["predict"]
    for one in (found, alone):
        error = (one - model.predict(X)) / model.target_scale_
        assert np.abs(error).max() < 1e-5


def test_a_transformer_has_coordinates_alone(tmp_path):
    X = ((rows(300, 0) - CENTERS) / SCALES).astype(np.float32)
    model = PIEFSTransformer(5, standardize=False, **QUICK).fit(X, labels_of(rows(300, 0)))
    found = by_onnxruntime(onnx_bytes(exported(model)), X)
    assert list(found) == ["coordinates"]
    assert np.abs(found["coordinates"] - model.transform(X)).max() < 1e-5
    module = imported(exported(model), tmp_path)
    assert np.abs(module.transform(X) - model.transform(X)).max() < 1e-5
    with pytest.raises(ValueError, match="without a target"):
        module.predict(X)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_activation_in_both_precisions(
    of_activation, classifier, activation, dtype, tmp_path
):
    plain = of_activation(classifier, activation, dtype)
    X = rows(500).astype(dtype)
    expected = plainly(plain, X)
    close = {"float32": 1e-5, "float64": 1e-13}[dtype] * np.abs(expected).max()
    found = by_onnxruntime(onnx_bytes(plain), X)["coordinates"]
    assert found.dtype == dtype
    assert np.abs(found - expected).max() < close
    alone = imported(plain, tmp_path).transform(X)
    assert alone.dtype == dtype
    assert np.abs(alone - expected).max() < close


def imported(plain, folder):
    """The exported module, within this process."""
    export(plain, folder / "exported.py")
    spec = importlib.util.spec_from_file_location("exported", folder / "exported.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXTREMES = {
    "zeros": np.zeros((2, 4)),
    "tiny": np.full((2, 4), 1e-38),
    "large": np.array([[1e4], [-1e4]]) * SCALES,
    "huge": np.array([[1e30], [-1e30], [1e34], [-1e34]]) * [1, 1, 0.1, 1],
    "one huge column": np.array([[0, 1e20, 0, 900], [0, -1e20, 0, 900]]),
}


@pytest.mark.parametrize("activation", [name for name in ACTIVATIONS if name != "sin"])
@pytest.mark.parametrize("name", EXTREMES)
def test_extreme_rows(of_activation, classifier, activation, name, tmp_path):
    # Not for sin: the sine of a number whose last digit is above 2π has no digit in common.
    plain = of_activation(classifier, activation, "float32")
    X = EXTREMES[name].astype(np.float32)
    expected = plainly(plain, X)
    with np.errstate(over="ignore"):
        expected = expected.astype(np.float32)
    for found in (
        by_onnxruntime(onnx_bytes(plain), X)["coordinates"],
        imported(plain, tmp_path).transform(X),
    ):
        scale = np.maximum(np.abs(expected).max(axis=1, keepdims=True), 1)
        np.testing.assert_allclose(found / scale, expected / scale, rtol=0, atol=1e-5)


def test_a_column_far_from_zero_makes_rows_double(classifier, tmp_path):
    offsets = np.array([0, 1.7e9, 0, 0])
    far = changed(exported(classifier), scaling=Scaling(CENTERS + offsets, SCALES))
    X = rows(200) + offsets
    content = onnx_bytes(far)
    (given,) = onnx.load_from_string(content).graph.input
    assert given.type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
    assert np.abs(by_onnxruntime(content, X)["coordinates"] - plainly(far, X)).max() < 1e-5
    assert np.abs(imported(far, tmp_path).transform(X) - plainly(far, X)).max() < 1e-5


def test_a_constant_column_keeps_its_scale(classifier):
    X = rows(100)
    X[:, 1] = 7.0
    constant = changed(exported(classifier), scaling=scaling_of(X))
    found = by_onnxruntime(onnx_bytes(constant), X.astype(np.float32))["coordinates"]
    assert np.abs(found - plainly(constant, X.astype(np.float32))).max() < 1e-5


def test_the_graph_names_its_inputs_classes_and_version(classifier):
    names = ["a", 'b"', "naïve", "d\n"]
    named = replace(
        exported(classifier), feature_names=names, labels=np.array(["low", "mid", "high"])
    )
    content = onnx_bytes(named)
    graph = onnx.load_from_string(content)
    properties = {p.key: p.value for p in graph.metadata_props}
    assert json.loads(properties["feature_names"]) == names
    assert json.loads(properties["classes"]) == ["low", "mid", "high"]
    assert properties["piefs_version"] == graph.producer_version
    shape = graph.graph.input[0].type.tensor_type.shape.dim
    assert (graph.graph.input[0].name, shape[0].dim_param, shape[1].dim_value) == ("X", "n", 4)
    X = rows(50).astype(np.float32)
    labels = by_onnxruntime(content, X)["label"].tolist()
    assert labels == np.array(["low", "mid", "high"])[classifier.predict(X)].tolist()
    assert by_onnxruntime(content, X[:1])["coordinates"].shape == (1, 5)


@pytest.mark.parametrize("labels", [[False, True], [0.5, 1.5], [-3, 2**40]])
def test_labels_keep_their_type(classifier, labels):
    plain = exported(classifier)
    readout = Readout(*(part[:2] for part in plain.model.readout))
    two = replace(changed(plain, readout=readout), labels=plain_labels(np.array(labels)))
    found = by_onnxruntime(onnx_bytes(two), rows(50))["label"]
    assert set(found.tolist()) == set(labels)
    assert type(found.tolist()[0]) is type(labels[0])


def test_numpy_alone_is_ours_on_100_000_rows(classifier, tmp_path):
    X = rows(N_ROWS)
    found = by_numpy_alone(tmp_path, classifier, X, "transform")["transform"]
    assert np.abs(found - classifier.transform(X)).max() < 1e-5
    few = by_numpy_alone(tmp_path, classifier, X[:1000], "predict_proba", "predict")
    assert np.abs(few["predict_proba"] - classifier.predict_proba(X[:1000])).max() < 1e-6
    assert (few["predict"] == classifier.predict(X[:1000])).all()


HOSTILE = [
    '"""\nimport os\n',
    "'); raise SystemExit #",
    "\\",
    "{}",
    "MODEL: dict[str, Any] = {}\n",
    "é\u2028",
]


def test_hostile_names_stay_names(classifier, tmp_path):
    hostile = replace(
        exported(classifier),
        feature_names=HOSTILE[:4],
        labels=np.array(HOSTILE[3:]),
    )
    module = imported(hostile, tmp_path)
    assert module.MODEL["feature_names"] == HOSTILE[:4]
    assert module.MODEL["classes"] == HOSTILE[3:]
    X = rows(20)
    assert module.predict(X).tolist() == np.array(HOSTILE[3:])[classifier.predict(X)].tolist()
    plain = imported(exported(classifier), tmp_path / "plain")
    assert code_of(module) == code_of(plain)


def code_of(module):
    """The statements of an exported file, its two literals left out."""
    statements = ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body
    for statement in statements:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and ast.unparse(statement).startswith(
            ("MODEL", "WEIGHTS")
        ):
            ast.literal_eval(statement.value)
            statement.value = ast.Constant(None)
    return [ast.dump(statement) for statement in statements]


def test_a_module_refuses_rows_it_cannot_take(classifier, tmp_path):
    module = imported(exported(classifier), tmp_path)
    with pytest.raises(ValueError, match=r"shape \(n, 4\)"):
        module.transform(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="missing or infinite"):
        module.predict(np.full((1, 4), np.nan))
    module.MODEL["feature_names"] = list("abcd")
    with pytest.raises(ValueError, match="in this order"):
        module.predict(pandas.DataFrame(np.zeros((1, 4)), columns=list("abdc")))


@pytest.mark.parametrize("name", ["model.txt", "my-model.py", "class.py", "numpy.py", "json.py"])
def test_a_name_that_cannot_work_is_refused(classifier, name, tmp_path):
    with pytest.raises(InputError):
        classifier.export(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_an_estimator_without_a_fit_and_labels_without_a_type_are_refused(tmp_path):
    with pytest.raises(InputError, match="not fitted"):
        PIEFSClassifier().export(tmp_path / "model.onnx")
    with pytest.raises(InputError, match="several types"):
        plain_labels(np.array(["a", 1], dtype=object))
    assert plain_labels(np.array(["a", "b"], dtype=object)).dtype.kind == "U"
    assert plain_labels(np.array([1, 2], dtype=np.uint8)).dtype == np.int64


def test_without_onnx_the_extra_is_named(classifier, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=r"piefs-learn\[onnx\]"):
        classifier.export(tmp_path / "model.onnx")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_tail_of_the_normal_distribution_is_exact_to_rounding(dtype):
    z = np.linspace(-12, 0, 2001)
    x = -z / 2**0.5
    s = 16 / 3 / (2 + np.minimum(x, 6)) - 5 / 3
    tail = 0.5 * np.exp(-(x**2)) * np.polynomial.polynomial.polyval(s, gelu_tail(np.dtype(dtype)))
    assert np.abs(z * tail - z * ndtr(z)).max() < 4 * np.finfo(dtype).eps


@pytest.fixture
def of_kernel():
    """A regression of two targets on three kernel maps, its inputs bounded."""

    def made(dtype):
        rng = np.random.default_rng(0)
        shapes = {"landmarks": (20, 4), "log_lam": (4,)}
        shapes |= {"weights": (20, 3), "slopes": (4, 3), "offset": (3,)}
        parts = {k: np.asarray(rng.normal(size=s), dtype) for k, s in shapes.items()}
        maps = KernelMaps(**parts, additive=np.asarray(0.3, dtype))
        mixing, readout = (rng.normal(size=(n, 3)).astype(dtype) for n in (3, 2))
        units = Scaling(np.array([1e6, 0.0]), np.array([2.0, 3.0]))
        scaling = Scaling(CENTERS, SCALES, clip=3.0)
        return Model(scaling, maps, mixing, None, Readout(readout, mixing[0, :2]), units)

    return made


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernel_maps_are_what_their_formula_says(of_kernel, dtype, tmp_path):
    model = of_kernel(dtype)
    one = Exported(model, single_output=False)
    X = rows(300) * [1, 1, 10, 1]
    phi = model.coordinates(X)
    numbers = model.outputs(X) * model.units.scale + model.units.center
    close = {"float32": 1e-5, "float64": 1e-12}[dtype] * np.abs(phi).max()
    module, found = imported(one, tmp_path), by_onnxruntime(onnx_bytes(one), X)
    for coordinates, predicted in (
        (module.transform(X), module.predict(X)),
        (found["coordinates"], found["prediction"]),
    ):
        assert coordinates.dtype == dtype
        assert np.abs(coordinates - phi).max() < close
        assert np.abs(predicted - numbers).max() < 10 * close


def test_a_kernel_model_is_read_from_its_structure_alone(of_kernel):
    model = of_kernel("float64")
    found = trees.tree_of(trees.structure_of(model), trees.named_arrays(model))
    np.testing.assert_array_equal(found.outputs(rows(9)), model.outputs(rows(9)))


def test_what_keeps_and_exports_models_does_not_import_jax():
    modules = ("persistence", "export", "onnx", "dask")
    names = ", ".join(f"piefs.estimators.{name}" for name in modules)
    code = f"import sys, {names}; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_missing_value_in_a_graph_gives_a_missing_value(of_activation, classifier, activation):
    one = of_activation(classifier, activation, "float32")
    found = by_onnxruntime(onnx_bytes(one), np.full((2, 4), np.nan))
    assert np.isnan(found["coordinates"]).all()
