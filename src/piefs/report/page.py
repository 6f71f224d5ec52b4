"""RUN/report.html: what was learned, on one page that needs no other file.

The template escapes every string; only our own script, style and pictures are markup already.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib import colormaps
from matplotlib.colors import to_hex

from piefs.data.encoder import TableEncoder
from piefs.data.files import read_document, reading, write_bytes
from piefs.data.readers import read_table
from piefs.estimators.persistence import load_with_document
from piefs.report import EVIDENCE, PAGE
from piefs.report.evidence import Document, read_evidence
from piefs.report.findings import findings, settings_in_use
from piefs.report.pictures import as_svg, pictures
from piefs.report.plot.style import CLASS_COLORS, NUMBER_COLORS
from piefs.report.scores import SCORES, SHOWN

MANY_CLASSES, MAX_CLASS_ROWS = 20, 200
BETTER: dict[str, Any] = dict.fromkeys(("accuracy", "f1", "roc_auc", "r2"), max)
BETTER |= dict.fromkeys(("log_loss", "rmse", "mae"), min)  # not ece: guessing is well calibrated
PALETTE = {
    # Dark grey would vanish on a dark page.
    "classes": [{"#4d4d4d": "#8a8f96"}.get(color, color) for color in CLASS_COLORS],
    "numbers": [to_hex(color) for color in colormaps[NUMBER_COLORS](np.linspace(0, 1, 9))],
}


def write_page(
    run: str | Path,
    metrics: Document | None = None,
    drawn: Callable[[], object] = lambda: None,
) -> None:
    """Write the page of a run from the files in its folder; no data, no fit.

    While a run still goes on, its metrics are given, and `drawn` completes them: it is called once
    all pictures are drawn.
    """
    run = Path(run)
    evidence = read_evidence(run / EVIDENCE)
    if metrics is None:
        metrics = read_document(run / "metrics.json", "fit again: its metrics are written last")
    estimator, model = load_with_document(run / "model")
    with reading(run / EVIDENCE, "fit again"):
        sections = pictures(evidence, metrics, _read_history(run / "history.csv"), estimator)
        del sections["rows"]  # the page has a scatter of its own
        figures = {
            section: {name: Markup(as_svg(name, draw)) for name, draw in made.items()}
            for section, made in sections.items()
        }
        drawn()
        settings = settings_in_use(metrics["config"])
        probe = ", linear probe" if metrics["task"] == "unsupervised" else ""
        ours = {"name": f"PIEFS{probe}", "scores": metrics, "note": ""}
        methods = [ours, *evidence["baselines"]]
        text = _render(
            data=evidence["data"],
            metrics=metrics,
            model=model,
            scores=SCORES,
            shown=SHOWN,
            findings=findings(metrics, evidence),
            methods=methods,
            best=_best(methods),
            figures=figures,
            by_class=_by_class(evidence),
            clip=estimator.model_.scaling.clip,
            many_classes=len(evidence["data"]["class_names"]) > MANY_CLASSES,
            columns=TableEncoder.from_document(model["table"]).describe(),
            settings={name: json.dumps(value) for name, value in settings.items()},
            rows=evidence["rows"],
            palette=PALETTE,
        )
    write_bytes(run / PAGE, text.encode())


def _read_history(path: Path) -> list[dict[str, float]]:
    """The rows of the history; none if the solver took no steps."""
    if not path.is_file():
        return []
    columns = read_table(path).columns
    rows = np.stack([cells.astype(float) for cells in columns.values()], axis=1)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _render(**context: Any) -> str:
    """The template with its style and script, and a policy that allows this script only."""
    environment = Environment(
        loader=PackageLoader("piefs.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    script = asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = environment.get_template("page.html.j2")
    return template.render(style=asset("page.css"), script=script, script_digest=digest, **context)


def asset(name: str) -> Markup:
    """The style sheet or the script, as it is."""
    return Markup((files("piefs.report") / "templates" / name).read_text(encoding="utf-8"))


# --- the summary ---------------------------------------------------------------------------------


def _best(methods: Sequence[Document]) -> dict[tuple[str, str], str]:
    """The best of each score on each held-out split, as it is shown."""
    best = {}
    for name, _, form in SCORES:
        for split in ("validation", "test"):
            values = [method["scores"].get(name, {}).get(split) for method in methods]
            known = [value for value in values if value is not None]
            if known and name in BETTER:
                best[name, split] = form(BETTER[name](known))
    return best


def _by_class(evidence: Document) -> list[tuple[str, list[float], list[int]]]:
    """Precision, recall and F1 in percent, and counts; of many classes the worst first."""
    judged, names = evidence["judged"].get("test", {}), evidence["data"]["class_names"]
    if "confusion" not in judged:
        return []
    counts = np.array(judged["confusion"], float)
    right, predicted, true = counts.diagonal(), counts.sum(axis=0), counts.sum(axis=1)
    with np.errstate(invalid="ignore"):  # of a class without rows these are not defined
        scores = 100 * np.stack([right / predicted, right / true, 2 * right / (predicted + true)])
    n_rows = np.array([evidence["facts"]["class_counts"][split] for split in ("train", "test")])
    order = np.arange(len(names))
    if len(names) > MANY_CLASSES:
        order = np.argsort(np.nan_to_num(scores[2]), kind="stable")[:MAX_CLASS_ROWS]
    return [(names[c], scores[:, c].tolist(), n_rows[:, c].tolist()) for c in order]
