"""RUN/report.html: what was learned, on one page that stands alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from piefs.data import atomic
from piefs.data.documents import read_json, reading
from piefs.data.encoder import TableEncoder
from piefs.data.readers import read_table
from piefs.errors import InputError
from piefs.estimators.files import load_with_document
from piefs.report import pictures
from piefs.report.evidence import read_evidence
from piefs.report.findings import findings
from piefs.report.html import allow_only, document, embedded_json, heading, table
from piefs.report.plot import CLASS_COLORS
from piefs.report.summary import summary
from piefs.report.usage import usage

EVIDENCE, PAGE = "report.json", "report.html"
MANY_CLASSES, MAX_CLASS_ROWS = 20, 200
LEGIBLE = {"#4d4d4d": "#8a8f96"}  # a grey that is seen on dark paper too


def write_page(run: str | Path) -> Path:
    """Write the page of a finished run from what is in its folder; no data, no fit."""
    run = Path(run)
    evidence, metrics = read_evidence(run / EVIDENCE), _read_metrics(run / "metrics.json")
    estimator, model = load_with_document(run / "model")
    with reading(run / EVIDENCE, "fit again"):
        text = page(evidence, metrics, _read_history(run / "history.csv"), estimator, model)
    atomic.write_bytes(run / PAGE, text.encode())
    return run / PAGE


def _read_metrics(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"{path.parent} holds no finished run; fit one with piefs fit --out")
    return read_json(path, "fit again")


def _read_history(path: Path) -> list[dict[str, float]]:
    columns = read_table(path).columns
    values = {name: cells.astype(float) for name, cells in columns.items()}
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def page(
    evidence: dict[str, Any],
    metrics: dict[str, Any],
    history: Sequence[dict[str, float]],
    estimator: Any,
    model: dict[str, Any],
) -> str:
    """The whole page as text."""
    style, script = (_asset(name) for name in ("page.css", "page.js"))
    found = findings(metrics, evidence)
    sections = {
        "Summary": summary(evidence, metrics, found),
        "Explore": EXPLORER,
        "Inputs": _inputs(estimator, evidence),
        "Coordinates": _gallery(pictures.of_coordinates(evidence, metrics)),
        "Predictions": _predictions(evidence),
        "Training": _gallery(pictures.of_training(history, metrics["config"]["schedule"])),
        "Data": _data(evidence, model),
        "Use it": usage(evidence, model),
        "Settings": _settings(metrics),
    }
    sections = {title: content for title, content in sections.items() if content}
    nav = "".join(f"<a href='#{_anchor(title)}'>{title}</a>" for title in sections)
    body = "".join(
        f"<section id='{_anchor(title)}'><h2>{title}</h2>{content}</section>"
        for title, content in sections.items()
    )
    name, about = evidence["data"]["name"], evidence["data"]["description"]
    content = (
        f"<header><h1>{escape(name)}</h1><p class=note>{escape(about)}</p>"
        f"<p>{_headline(evidence, metrics)}</p>"
        f"<nav>{nav}</nav></header><main>{body}</main>"
        f"{embedded_json('shown-rows', _for_script(evidence))}<script>{script}</script>"
    )
    return document(f"{name}: PIEFS report", content, style=style, head=allow_only(script))


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _asset(name: str) -> str:
    return (files("piefs.report") / name).read_text(encoding="utf-8")


def _for_script(evidence: dict[str, Any]) -> dict[str, Any]:
    """What the interactive part of the page needs."""
    data = evidence["data"]
    named = ("class_names", "target", "image_shape")
    colors = [LEGIBLE.get(color, color) for color in CLASS_COLORS]
    return evidence["rows"] | {name: data[name] for name in named} | {"colors": colors}


def _headline(evidence: dict[str, Any], metrics: dict[str, Any]) -> str:
    n = evidence["data"]["n_rows"]
    k = len(metrics["energies"])
    what = {
        "classification": f"predict {escape(evidence['data']['target'])}"
        if evidence["data"]["target"] != "y"
        else "predict its class",
        "regression": f"predict {escape(evidence['data']['target'])}",
        "unsupervised": "describe it without labels",
    }[metrics["task"]]
    maps = "one smooth coordinate" if k == 1 else f"{k} ordered, orthonormal, smooth coordinates"
    return (
        f"PIEFS learned {maps} φ of each row to {what}, "
        f"from {n['train']:,} training rows in {metrics['seconds']:.1f} s; {n['validation']:,} "
        f"validation and {n['test']:,} test rows were held out."
    )


# --- the parts that a script brings to life ------------------------------------------------------

EXPLORER = """
<p class=note>Every dot is a row. Drag to select rows, turn the wheel or pinch to zoom, point at or
tap a dot to see its row.</p>
<div id=explorer>
  <div class=controls>
    <label>across <select id=axis-i></select></label>
    <label>up <select id=axis-j></select></label>
    <label>colour <select id=colour></select></label>
    <span id=splits></span>
  </div>
  <div class=controls>
    <button id=mode-select aria-pressed=true>select</button>
    <button id=mode-move aria-pressed=false>move</button>
    <button id=zoom-in aria-label='zoom in'>+</button>
    <button id=zoom-out aria-label='zoom out'>−</button>
    <button id=reset>reset view</button>
    <output id=status></output>
  </div>
  <div id=stage><canvas id=plot aria-label='scatter of the coordinates'></canvas>
  <div id=tip hidden></div></div>
  <div id=legend></div>
  <div id=selection hidden>
    <h3><span id=selected-count></span> <button id=clear>clear selection</button></h3>
    <div id=selected-classes></div>
    <div class=scroll><table id=selected-rows></table></div>
  </div>
</div>
"""


def _inputs(estimator: Any, evidence: dict[str, Any]) -> str:
    """The maps as functions of the inputs."""
    kind = "gallery small" if evidence["data"]["image_shape"] else "gallery"
    parts = {
        "The maps over the plane": pictures.of_plane(estimator, evidence),
        "Which inputs matter": pictures.of_inputs(evidence),
        "How the leading maps move, on average, as one input changes and the others stay": (
            pictures.of_dependence(evidence)
        ),
    }
    return "".join(
        f"<h3>{title}</h3>{_gallery(made, kind)}" for title, made in parts.items() if made
    )


def _gallery(made: Iterable[pictures.Picture], kind: str = "gallery") -> str:
    content = "".join(picture.html for picture in made)
    return f"<div class='{kind}'>{content}</div>" if content else ""


def _predictions(evidence: dict[str, Any]) -> str:
    drawn = _gallery(pictures.of_predictions(evidence))
    if not drawn:
        return ""
    return (
        f"{drawn}{_by_class(evidence)}<h3>The hardest test rows</h3><p class=note>Those with the "
        "largest loss: slips in the data, or what the model has not understood.</p>"
        "<div id=hardest></div>"
    )


def _by_class(evidence: dict[str, Any]) -> str:
    judged, names = evidence["judged"]["test"], evidence["data"]["class_names"]
    if "by_class" not in judged:
        return ""
    counts = evidence["facts"]["class_counts"]
    rows = [
        f"<tr><td>{escape(name)}</td>"
        + "".join(f"<td>{_percent(values[c])}</td>" for values in judged["by_class"])
        + f"<td>{counts['train'][c]:,}</td><td>{counts['test'][c]:,}</td></tr>"
        for c, name in _worst_first(names, judged["by_class"][2])
    ]
    head = ["class", "precision, %", "recall, %", "F1, %", "training rows", "test rows"]
    made, many = table(heading(head), *rows), len(rows) > MANY_CLASSES
    order = ", the worst first" if many else ""
    return (
        f"<details{'' if many else ' open'}><summary>By class, on test rows{order}</summary>{made}"
        "</details>"
    )


def _worst_first(names: Sequence[str], f1: Sequence[float | None]) -> list[tuple[int, str]]:
    """Classes with their numbers, as they come, or by F1 where they are many."""
    numbered = list(enumerate(names))
    if len(numbered) <= MANY_CLASSES:
        return numbered
    return sorted(numbered, key=lambda pair: f1[pair[0]] or 0.0)[:MAX_CLASS_ROWS]


def _percent(value: float | None) -> str:
    return "–" if value is None or value != value else f"{100 * value:.1f}"


# --- data and settings ---------------------------------------------------------------------------


def _data(evidence: dict[str, Any], model: dict[str, Any]) -> str:
    """What was done with each column."""
    if evidence["data"]["image_shape"]:
        height, width = map(int, evidence["data"]["image_shape"])
        return f"<p>Every row is an image of {height} × {width} pixels, each pixel an input.</p>"
    encoder = TableEncoder.from_document(model["table"])
    lines = [f"<li>{escape(line)}</li>" for line in encoder.describe()]
    scaled = "<p class=note>Inputs are scaled to mean 0 and deviation 1 of the training rows.</p>"
    notices = "".join(f"<li>{escape(notice)}</li>" for notice in evidence["data"]["notices"])
    return (
        (scaled if model["standardize"] else "")
        + f"<details{' open' if len(lines) <= 12 else ''}><summary>What became of the "
        f"{len(lines):,} columns</summary><ul>{''.join(lines)}</ul></details>"
        + (f"<ul>{notices}</ul>" if notices else "")
    )


def _settings(metrics: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {value}" for name, value in metrics["versions"].items())
    rows = [
        f"<tr><td>{escape(name)}</td><td class=text>{escape(json.dumps(value))}</td></tr>"
        for name, value in metrics["config"].items()
    ]
    steps = f"{metrics['steps']:,} steps, {metrics['steps_per_second']:,.0f} a second."
    made = table(heading(["setting", "value"]), *rows)
    return (
        f"<p>Seed {escape(str(metrics['config']['seed']))}; {steps} {escape(versions)}.</p>"
        f"<details><summary>All settings</summary>{made}</details>"
    )
