"""A fitted model as an ONNX graph: rows in, coordinates and predictions out, scaling included.

Only operators that runtimes have in both precisions are used, and forms that neither overflow nor
lose the digits of large inputs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from piefs.errors import InputError
from piefs.estimators.exports.plain import PlainModel, gelu_tail

OPSET, IR_VERSION = 17, 8  # of 2022: runtimes still in use know them
FAR = 1e4
"""A mean of so many deviations needs rows in double precision: single has seven digits."""


class Graph:
    """Nodes and constants, named as they are made."""

    def __init__(self, helper: Any, numpy_helper: Any, dtype: np.dtype) -> None:
        self.helper, self.numpy_helper, self.dtype = helper, numpy_helper, dtype
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, value: Any, dtype: Any = None) -> str:
        """The name of a constant, in the maps' precision unless another type is given."""
        name = f"{name}_{len(self.constants)}"
        array = np.asarray(value, dtype=dtype or self.dtype)
        self.constants.append(self.numpy_helper.from_array(array, name))
        return name

    def node(
        self, operator: str, *inputs: str, output: str | None = None, **attributes: Any
    ) -> str:
        """The name of what an operator makes of its inputs."""
        output = output or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def cast(self, value: str, dtype: Any) -> str:
        """A value in another precision."""
        return self.node("Cast", value, to=self.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def _softplus(graph: Graph, z: str) -> str:
    """log(1 + eᶻ) = max(z, 0) + log(1 + e^−|z|)."""
    exponential = graph.node("Exp", graph.node("Neg", graph.node("Abs", z)))
    logarithm = graph.node("Log", graph.node("Add", graph.constant("one", 1), exponential))
    return graph.node("Add", graph.node("Relu", z), logarithm)


def _silu(graph: Graph, z: str) -> str:
    """z/(1 + e^−z): a sigmoid of limited accuracy would be multiplied by a large z."""
    exponential = graph.node("Exp", graph.node("Neg", z))
    return graph.node("Div", z, graph.node("Add", graph.constant("one", 1), exponential))


def _gelu(graph: Graph, z: str) -> str:
    """zΦ(z) = max(z, 0) − |z|Φ(−|z|), the tail as `gelu_tail` says."""
    size = graph.node("Abs", z)
    x = graph.node("Mul", size, graph.constant("sqrt_half", 0.5**0.5))
    inverse = graph.node(
        "Add", graph.node("Min", x, graph.constant("six", 6)), graph.constant("two", 2)
    )
    s = graph.node(
        "Sub",
        graph.node("Div", graph.constant("a", 16 / 3), inverse),
        graph.constant("b", 5 / 3),
    )
    *lower, tail = (graph.constant("c", c) for c in 0.5 * gelu_tail(graph.dtype))
    for coefficient in reversed(lower):
        tail = graph.node("Add", graph.node("Mul", tail, s), coefficient)
    decay = graph.node("Exp", graph.node("Neg", graph.node("Mul", x, x)))
    tail = graph.node("Mul", graph.node("Mul", size, decay), tail)
    return graph.node("Sub", graph.node("Relu", z), tail)


ACTIVATIONS: dict[str, Callable[[Graph, str], str]] = {
    "relu": lambda graph, z: graph.node("Relu", z),
    "tanh": lambda graph, z: graph.node("Tanh", z),
    "sin": lambda graph, z: graph.node("Sin", z),
    "softplus": _softplus,
    "silu": _silu,
    "gelu": _gelu,
}


def onnx_bytes(model: PlainModel) -> bytes:
    """The graph as the content of a file, checked by ONNX itself."""
    onnx = _onnx()
    graph = Graph(onnx.helper, onnx.numpy_helper, model.dtype)
    outputs = _outputs(graph, model)
    infos = [onnx.helper.make_tensor_value_info(*info) for info in outputs]
    kind = onnx.helper.np_dtype_to_tensor_dtype(input_dtype(model))
    rows = onnx.helper.make_tensor_value_info("X", kind, ["n", model.n_features])
    content = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, "piefs", [rows], infos, graph.constants),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="piefs",
        producer_version=version("piefs-learn"),
        doc_string=_description(model),
    )
    onnx.helper.set_model_props(content, _properties(model))
    onnx.checker.check_model(content)
    return content.SerializeToString()


def input_dtype(model: PlainModel) -> np.dtype:
    """The type of X: that of the maps, unless single precision would lose a column's digits."""
    if model.center is None or model.scale is None:
        return model.dtype
    is_far = bool(np.any(np.abs(model.center) > FAR * model.scale))
    return np.dtype(np.float64) if is_far else model.dtype


def _onnx() -> Any:
    try:
        return import_module("onnx")
    except ImportError as error:
        raise InputError(
            "an ONNX file needs the package onnx; pip install piefs-learn[onnx]"
        ) from error


def _outputs(graph: Graph, model: PlainModel) -> list[tuple[str, Any, list[Any]]]:
    """Build the graph; the names, types and shapes of its outputs."""
    phi = _coordinates(graph, model)
    own = graph.helper.np_dtype_to_tensor_dtype(model.dtype)
    outputs: list[tuple[str, Any, list[Any]]] = [("coordinates", own, ["n", model.n_components])]
    if model.task == "coordinates":
        return outputs
    values = graph.node(
        "Add",
        graph.node("MatMul", phi, graph.constant("readout", model.readout_weights.T)),
        graph.constant("bias", model.readout_bias),
    )
    if model.task == "regression":
        return [*outputs, _prediction(graph, model, values)]
    labels = np.asarray(model.labels)
    graph.node("Softmax", values, output="probabilities", axis=1)
    winner = graph.node("ArgMax", values, axis=1, keepdims=0)
    kept = labels.astype(object) if labels.dtype.kind == "U" else labels
    kind = graph.helper.np_dtype_to_tensor_dtype(kept.dtype)
    graph.node("Gather", graph.constant("labels", kept, kept.dtype), winner, output="label")
    return [*outputs, ("probabilities", own, ["n", len(labels)]), ("label", kind, ["n"])]


def _coordinates(graph: Graph, model: PlainModel) -> str:
    """Φ(X): all maps at once, (n, d) × (K, d, h) → (K, n, h), and mixed."""
    x = "X"
    if model.center is not None:
        x = graph.cast(x, np.float64)
        x = graph.node("Sub", x, graph.constant("center", model.center, np.float64))
        x = graph.node("Div", x, graph.constant("scale", model.scale, np.float64))
        x = graph.cast(x, model.dtype)
    for layer, (w, b) in enumerate(zip(model.weights, model.biases, strict=True)):
        x = x if layer == 0 else ACTIVATIONS[model.activation](graph, x)
        product = graph.node("MatMul", x, graph.constant("weights", w))
        x = graph.node("Add", product, graph.constant("biases", b[:, None, :]))
    columns = graph.node("Squeeze", x, graph.constant("last", [2], np.int64))
    raw = graph.node("Transpose", columns, perm=[1, 0])
    mixing = graph.constant("mixing", model.mixing.T)
    return graph.node("MatMul", raw, mixing, output="coordinates")


def _prediction(graph: Graph, model: PlainModel, values: str) -> tuple[str, Any, list[Any]]:
    """Numbers in the user's units, in double precision: single cannot hold a large offset."""
    scaled = graph.node(
        "Mul",
        graph.cast(values, np.float64),
        graph.constant("target_scale", model.target_scale, np.float64),
    )
    center = graph.constant("target_center", model.target_center, np.float64)
    kind = graph.helper.np_dtype_to_tensor_dtype(np.dtype(np.float64))
    if not model.single_output:
        graph.node("Add", scaled, center, output="prediction")
        return "prediction", kind, ["n", len(model.readout_bias)]
    column = graph.node("Add", scaled, center)
    graph.node("Squeeze", column, graph.constant("last", [1], np.int64), output="prediction")
    return "prediction", kind, ["n"]


def _properties(model: PlainModel) -> dict[str, str]:
    """Names and versions, as JSON where they are lists."""
    found = {"piefs_version": version("piefs-learn"), "task": model.task}
    if model.feature_names is not None:
        found["feature_names"] = json.dumps(list(model.feature_names))
    if model.labels is not None:
        found["classes"] = json.dumps(model.labels.tolist())
    if model.table is not None:
        found["table"] = json.dumps(model.table)
    return found


def _description(model: PlainModel) -> str:
    text = f"{model.n_components} coordinates of rows X of {model.n_features} numbers"
    if model.feature_names is None:
        return f"{text}, in the order of training."
    named = f"{text}, the columns in the order of the metadata's feature_names"
    if model.table is None:
        return f"{named}."
    return f"{named}, encoded and without gaps; the metadata's table says how they were made."
