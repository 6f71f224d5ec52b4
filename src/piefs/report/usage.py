"""How to use the model of a page: from Python and from the command line, beside the page."""

from __future__ import annotations

from html import escape
from typing import Any


def usage(evidence: dict[str, Any], model: dict[str, Any]) -> str:
    """Lines to copy; paths are those seen from the folder that the page lies in."""
    return (
        "<p>From the folder of this page, on the command line, with a file that has the same "
        f"columns:</p><pre>{escape(_commands(model))}</pre>"
        f"<p>In Python:</p><pre>{escape(_python(model))}</pre>"
        f"<p class=note>{escape(_inputs(evidence, model))}</p>"
    )


def _commands(model: dict[str, Any]) -> str:
    lines = ["piefs transform . new.csv --out coordinates.csv   # φ₁ … φ_K of each row"]
    if model["estimator"] != "PIEFSTransformer":
        lines += [
            "piefs predict . new.csv --out predictions.csv",
            "piefs score . new.csv" + ("" if model["target"] else " --target COLUMN"),
        ]
    return "\n".join([*lines, "piefs inspect .", "piefs report .   # writes this page anew"])


def _python(model: dict[str, Any]) -> str:
    lines = [
        "from piefs import load",
        "",
        'model = load("model")',
        "phi = model.transform(X)          # coordinates, (n, K)",
    ]
    if model["estimator"] == "PIEFSClassifier":
        lines.append("p = model.predict_proba(X)        # one column a class")
    elif model["estimator"] == "PIEFSRegressor":
        lines.append("y = model.predict(X)")
    return "\n".join(lines)


def _inputs(evidence: dict[str, Any], model: dict[str, Any]) -> str:
    names = evidence["data"]["feature_names"]
    shown = ", ".join(names[:12]) + (f", … ({len(names)} in all)" if len(names) > 12 else "")
    text = f"X has one row a sample and the {len(names):,} inputs in this order: {shown}."
    classes = evidence["data"]["class_names"]
    if model["estimator"] == "PIEFSClassifier" and len(classes) <= 12:
        text += f" Classes are numbered from 0: {', '.join(classes)}."
    return text
