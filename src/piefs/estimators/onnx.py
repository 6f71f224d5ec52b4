"""A fitted model as an ONNX graph: rows in, coordinates and predictions out, scaling included.

The functions of `export_template` are run on names of values in place of arrays, and every numpy
function that they call becomes a node. Only operators that runtimes have in both precisions occur.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from piefs.data.files import optional
from piefs.estimators.export_template import coordinates, outputs

if TYPE_CHECKING:
    from piefs.estimators.export import Exported

OPSET, IR_VERSION = 17, 8  # of 2022: runtimes still in use know them
FAR = 1e4
"""A mean of so many deviations needs rows in double precision: single has seven digits."""

OPERATORS: dict[Any, str] = {
    **{np.add: "Add", np.subtract: "Sub", np.multiply: "Mul", np.true_divide: "Div"},
    **{np.matmul: "MatMul", np.negative: "Neg", np.absolute: "Abs", np.sqrt: "Sqrt"},
    **{np.exp: "Exp", np.log: "Log", np.tanh: "Tanh", np.sin: "Sin"},
    **{np.maximum: "Max", np.minimum: "Min"},
}


class Graph:
    """Nodes and constants, named as they are made."""

    def __init__(self, onnx: Any) -> None:
        self.helper, self.numpy_helper = onnx.helper, onnx.numpy_helper
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[Any] = []

    def constant(self, value: Any, dtype: Any) -> str:
        """The name of a constant."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The name of what an operator makes of its inputs."""
        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def kind(self, dtype: Any) -> int:
        """ONNX's number for a type."""
        return self.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def output(self, value: str, name: str, dtype: Any, *shape: int) -> None:
        """Give a value out under a name; its first axis are the rows."""
        self.nodes.append(self.helper.make_node("Identity", [value], [name]))
        kind = self.kind(dtype)
        self.outputs.append(self.helper.make_tensor_value_info(name, kind, ["n", *shape]))


class Value(NDArrayOperatorsMixin):
    """A value of a graph that takes part in numpy's arithmetic as an array would."""

    def __init__(self, graph: Graph, name: str, dtype: Any) -> None:
        self.graph, self.name, self.dtype = graph, name, np.dtype(dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any) -> Value:
        names = (
            one.name if isinstance(one, Value) else self.graph.constant(one, self.dtype)
            for one in inputs
        )
        return self._made(OPERATORS[ufunc], *names)

    def __getitem__(self, place: tuple[slice, list[int]]) -> Value:
        """Columns `[:, [i]]` of a matrix."""
        columns = self.graph.constant(place[1], np.int64)
        return self._made("Gather", self.name, columns, axis=1)

    @property
    def T(self) -> Value:  # noqa: N802 - as of an array
        """A matrix turned over."""
        return self._made("Transpose", self.name, perm=[1, 0])

    def squeeze(self, axis: int) -> Value:
        """Without an axis of length one."""
        return self._made("Squeeze", self.name, self.graph.constant([axis], np.int64))

    def astype(self, dtype: Any) -> Value:
        """In another precision."""
        name = self.graph.node("Cast", self.name, to=self.graph.kind(dtype))
        return Value(self.graph, name, dtype)

    def _made(self, operator: str, *inputs: str, **attributes: Any) -> Value:
        return Value(self.graph, self.graph.node(operator, *inputs, **attributes), self.dtype)


def onnx_bytes(exported: Exported) -> bytes:
    """The graph as the content of a file, checked by ONNX itself."""
    onnx = optional("onnx", "an ONNX file", "onnx")
    model, document, arrays = exported.model, exported.document(), exported.arrays
    scaling: Any = model.scaling
    is_far = bool(np.any(np.abs(scaling.center) > FAR * scaling.scale))
    graph, dtype = Graph(onnx), np.dtype(np.float64 if is_far else model.dtype)
    phi = coordinates(Value(graph, "X", dtype), document, arrays)
    graph.output(phi.name, "coordinates", phi.dtype, len(model.mixing))
    if document["task"] != "coordinates":
        _add_predictions(graph, outputs(phi, document, arrays), document, len(model.readout.bias))
    rows = onnx.helper.make_tensor_value_info("X", graph.kind(dtype), ["n", document["n_features"]])
    content = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, "piefs", [rows], graph.outputs, graph.constants),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="piefs",
        producer_version=document["piefs_version"],
        doc_string=f"{len(model.mixing)} coordinates of rows X, its columns as in training",
    )
    properties = {name: document[name] for name in ("piefs_version", "task")}
    listed = {name: document[name] for name in ("feature_names", "classes")}
    listed["table"] = exported.table
    properties |= {name: json.dumps(one) for name, one in listed.items() if one is not None}
    onnx.helper.set_model_props(content, properties)
    onnx.checker.check_model(content)
    return content.SerializeToString()


def _add_predictions(graph: Graph, values: Value, document: dict[str, Any], n: int) -> None:
    if document["task"] == "regression":
        shape = () if document["single_output"] else (n,)
        graph.output(values.name, "prediction", values.dtype, *shape)
        return
    labels = np.array(document["classes"])
    kind = object if labels.dtype.kind == "U" else labels.dtype
    probabilities = graph.node("Softmax", values.name, axis=1)
    winner = graph.node("ArgMax", values.name, axis=1, keepdims=0)
    label = graph.node("Gather", graph.constant(labels, kind), winner)
    graph.output(probabilities, "probabilities", values.dtype, n)
    graph.output(label, "label", kind)
