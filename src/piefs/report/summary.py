"""The first section of a page: scores, what looks bad, baselines, and the gap to training rows."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from piefs.report.html import heading, table
from piefs.report.scores import SHOWN
from piefs.training.diagnosis import Finding

SCORES = tuple(shown for shown in SHOWN if shown[0] != "gram_error")
HIGHER_IS_BETTER = ("accuracy", "f1", "roc_auc", "r2")
LOWER_IS_BETTER = ("log_loss", "rmse", "mae")  # not ece: who always guesses is well calibrated
SPLITS = ("validation", "test")


def summary(evidence: dict[str, Any], metrics: dict[str, Any], found: list[Finding]) -> str:
    return _tiles(metrics) + _findings(found) + _scores(evidence, metrics) + _gap(evidence, metrics)


def _tiles(metrics: dict[str, Any]) -> str:
    """The few numbers to see first, on test rows."""
    shown = [
        (label, form(metrics[name]["test"]))
        for name, label, form in SCORES
        if name in metrics and metrics[name]["test"] is not None
    ][:3]
    shown.append(("Gram error ‖C − I‖², test", f"{metrics['gram_error']['test']:.3f}"))
    tiles = "".join(
        f"<div class=tile><b>{value}</b><span>{escape(label)}</span></div>"
        for label, value in shown
    )
    return f"<p class=note>On the test rows:</p><div class=tiles>{tiles}</div>"


def _findings(found: list[Finding]) -> str:
    if not found:
        return "<p class='finding good'><b>Nothing looks wrong.</b></p>"
    return "".join(
        f"<div class='finding {'bad' if finding.bad else 'hint'}' "
        f"data-kind='{escape(finding.kind)}'>"
        f"<b>{escape(finding.says)}</b> {escape(finding.advice)}</div>"
        for finding in found
    )


def _scores(evidence: dict[str, Any], metrics: dict[str, Any]) -> str:
    """Our scores beside the baselines', validation and test."""
    ours = {
        "name": "PIEFS" + (", linear probe" if metrics["task"] == "unsupervised" else ""),
        "scores": metrics,
        "note": "",
    }
    names = [(name, label, form) for name, label, form in SCORES if name in metrics]
    if not names:
        return "<p class=note>There is no target, so there are no scores.</p>"
    methods = [ours, *evidence["baselines"]]
    best = {(name, split): _best(name, split, methods) for name, *_ in names for split in SPLITS}
    rows = [
        f"<tr{' class=ours' if method is ours else ''}><td>{_method(method)}</td>"
        + "".join(
            _cell(method["scores"].get(name, {}).get(split), form, best[name, split])
            for name, _, form in names
            for split in SPLITS
        )
        + "</tr>"
        for method in methods
    ]
    head = heading(["", *(label for _, label, _ in names)], span=2)
    return (
        "<h3>Beside simple baselines</h3><p class=note>All on the same splits. The best of each "
        f"column is marked.</p>{table(head, heading(['', *len(names) * SPLITS]), *rows)}"
    )


def _method(method: dict[str, Any]) -> str:
    note = f"<small>{escape(method['note'])}</small>" if method["note"] else ""
    return escape(method["name"]) + note


def _best(name: str, split: str, methods: Sequence[dict[str, Any]]) -> float | None:
    values = [method["scores"].get(name, {}).get(split) for method in methods]
    known = [value for value in values if value is not None]
    if name in HIGHER_IS_BETTER:
        return max(known, default=None)
    return min(known, default=None) if name in LOWER_IS_BETTER else None


def _cell(value: float | None, form: Any, best: float | None) -> str:
    if value is None:
        return "<td>–</td>"
    mark = " class=best" if best is not None and form(value) == form(best) else ""
    return f"<td{mark}>{form(value)}</td>"


def _gap(evidence: dict[str, Any], metrics: dict[str, Any]) -> str:
    """Training beside held-out rows: what a model knows of rows that it has seen."""
    rows = [
        f"<tr><td>{escape(label)}</td>"
        + "".join(_cell(metrics[name].get(split), form, None) for split in ("train", *SPLITS))
        + "</tr>"
        for name, label, form in SHOWN
        if name in metrics
    ]
    return f"<h3>Training and held-out rows</h3>{table(heading(['', 'train', *SPLITS]), *rows)}"
