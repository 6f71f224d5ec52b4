"""One page with every table and figure: results/report.html, beside README.md and summary.csv."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from html import escape
from pathlib import Path

from piefs.data.files import library_versions, reading, write_bytes
from piefs.report.page import asset
from reproduction.deviations import Comparison
from reproduction.entries import Entry
from reproduction.figures import CAPTIONS, draw_all
from reproduction.ledger import Claim
from reproduction.overview import COMPONENTS, FAR, HEAD, OPEN, Contents, contents, verdict
from reproduction.records import Records
from reproduction.tables import Table
from reproduction.text import apart, number_of, over_seeds, readme, summary_csv

STYLE = """
p, figcaption { max-width: 60rem; } table:has(td.text) th { text-align: left; }
td.text { white-space: normal; min-width: 12rem; } td small { white-space: nowrap; }
h2 { margin-top: 2.6rem; } h2, h3 { scroll-margin-top: 3.2rem; } table { font-size: .86rem; }
td.near { background: var(--good-tint); } td.far { background: var(--bad-tint); }
td.none, .open { color: var(--soft); }
.yes { color: var(--good); font-weight: 600; } .no { color: var(--bad); font-weight: 600; }
figure { margin: 1.4rem 0; }
figure img { max-width: 100%; height: auto; background: #fff; border-radius: 8px; }
"""

VERDICTS = {True: "yes", False: "no", None: "open"}


def write_report(results: str | Path) -> tuple[Path, list[str]]:
    """Write everything that can be said of the records under `results`: the page, and in short."""
    results = Path(results)
    records = Records(results / "records")
    page = results / "report.html"
    with reading(records.folder, "remove what is no record of piefs reproduce"):
        said, figures = contents(records), draw_all(records, results / "figures")
        write_bytes(page, _page(said, figures).encode())
        write_bytes(results / "README.md", readme(said).encode())
        write_bytes(results / "summary.csv", summary_csv(records).encode())
    return page, said.short


def _page(said: Contents, figures: dict[str, Path]) -> str:
    sections = [
        "<h1>The paper, re-derived</h1>",
        f"<p>{escape(' '.join(said.short))}</p>",
        "<p class=note>Each entry: ours, mean ± standard deviation over seeds [number "
        "of seeds]; below it the paper's number and the difference in standard errors (of the "
        "seeds, and of the draw of the held-out rows). Green: within two of them, Gram errors "
        "within a factor of two; orange: further away, or seeds that scatter where the paper's do "
        "not.</p>",
        "<nav><a href='#tables'>Tables</a><a href='#figures'>Figures</a>"
        "<a href='#ledger'>Claims</a><a href='#deviations'>Deviations</a>"
        "<a href='#again'>Again</a></nav>",
        "<h2 id=tables>Tables</h2>",
        "<h3 id=training-components>Training components</h3>",
        _components(),
        *map(_table, said.tables),
        "<h2 id=figures>Figures</h2>",
        *(_figure(name, path) for name, path in figures.items()),
        "<h2 id=ledger>What the paper says, and what we measured</h2>",
        f"<p class=note>{OPEN}</p>",
        _claims(said.claims),
        "<h2 id=deviations>Where we differ</h2>",
        f"<p class=note>{FAR}</p>",
        _deviations(said.far),
        "<h2 id=again>Make it again</h2>",
        "<pre>piefs reproduce                      # everything that is missing\n"
        "piefs reproduce table-main --dataset mnist --seeds 5 --jobs 2\n"
        "piefs reproduce --show mnist/piefs-off/supervised/paper/0\n"
        "piefs reproduce mnist/piefs-off/supervised/paper/0 --out again   # that run alone</pre>",
        f"<p class=note>{escape(_environment())}</p>",
    ]
    style = asset("page.css") + STYLE
    return document("PIEFS: the paper, re-derived", "\n".join(sections), style=style)


def _environment() -> str:
    versions = ", ".join(f"{name} {version}" for name, version in library_versions().items())
    return f"Written with {versions}; each record holds the versions of its own run."


def _table(made: Table) -> str:
    rows = (
        f"<tr><td>{escape(label)}</td>{''.join(_cell(e, made.digits) for e in entries)}</tr>"
        for label, entries in made.rows
    )
    return (
        f"<h3 id='{made.name}'>{escape(made.title)}</h3><p class=note>{marked(made.note)}</p>"
        + table(heading(["", *made.columns]), *rows)
    )


def _components() -> str:
    rows = (
        "<tr>" + "".join(f"<td class=text>{marked(text)}</td>" for text in row) + "</tr>"
        for row in COMPONENTS
    )
    return table(heading(HEAD), *rows)


def _cell(entry: Entry, digits: int) -> str:
    paper = "" if entry.paper is None else f"paper {number_of(entry.paper, digits)}"
    if entry.ours is None:
        return f"<td class=none>–<small>{paper}</small></td>"
    z = entry.z
    kind = {None: "", False: " class=near", True: " class=far"}[entry.is_far]
    difference = "" if z is None else f"<small>{apart(z)}</small>"
    return f"<td{kind}>{over_seeds(entry.ours, digits)}<small>{paper}</small>{difference}</td>"


def _figure(name: str, path: Path) -> str:
    return figure(path.read_bytes(), CAPTIONS[name], name=name)


def _claims(claims: Iterable[Claim]) -> str:
    rows = (
        f"<tr><td class=text>{marked(c.quote)}</td><td class=text>{escape(c.where)}</td>"
        f"<td class=text>{marked(c.finding)}</td>"
        f"<td class='{VERDICTS[c.holds]}'>{verdict(c.holds)}</td></tr>"
        for c in claims
    )
    return table(heading(["claim", "where", "here", ""]), *rows)


def _deviations(far: Iterable[Comparison]) -> str:
    rows = (
        f"<tr><td>{escape(one.name)}</td>{_cell(one.entry, one.digits)}"
        f"<td class=text>{escape(one.why)}</td></tr>"
        for one in far
    )
    return table(heading(["cell", "ours and the paper's", "why"]), *rows)


def document(title: str, body: str, *, style: str) -> str:
    """A whole page."""
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{style}</style><body>{body}</body></html>\n"
    )


def marked(text: str) -> str:
    """Escaped, with `code` and *emphasis*."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)


def heading(names: Iterable[str]) -> str:
    """A row of headings."""
    return f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in names)}</tr>"


def table(*rows: str) -> str:
    """A table of `<tr>` elements that scrolls by itself if it is wider than the page."""
    return f"<div class=scroll><table>{''.join(rows)}</table></div>"


def figure(content: bytes, caption: str, *, name: str) -> str:
    """A PNG that the page holds, and its caption."""
    image = base64.b64encode(content).decode()
    return (
        f"<figure id='figure-{escape(name)}'>"
        f"<img alt='{escape(caption)}' src='data:image/png;base64,{image}'>"
        f"<figcaption>{marked(caption)}</figcaption></figure>"
    )
