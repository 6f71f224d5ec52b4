"""One page with every table and figure: results/report.html, beside README.md and summary.csv."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

from piefs.data.files import reading, write_bytes
from piefs.data.folders import library_versions
from piefs.report.page import style
from reproduction.components import COMPONENTS, HEAD
from reproduction.deviations import Comparison, deviations
from reproduction.entries import SCATTERED, Entry
from reproduction.figures import CAPTIONS, draw_all
from reproduction.html import document, figure, heading, marked, table
from reproduction.ledger import Claim, ledger
from reproduction.overview import in_short
from reproduction.records import Records
from reproduction.tables import Table, tables
from reproduction.text import apart, markdown, number_of, over_seeds, summary_csv, with_difference

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

FAR = (
    "Accuracies by more than two standard errors, or where our seeds scatter by more than "
    f"{SCATTERED:g} points and the paper's do not; Gram errors by more than a factor of two."
)
OPEN = (
    "± is one standard error of a difference, of the seeds and of the draw of the test rows; where "
    "it stands, a claim is open if it would be judged otherwise within that error. Claims are open "
    "too where runs are missing or seeds are few, and where what they presuppose is not the case."
)
VERDICTS = {True: "yes", False: "no", None: "open"}


@dataclass(frozen=True)
class Contents:
    """What both pages say: in short, the tables, the claims, and what is far from the paper's."""

    short: list[str]
    tables: list[Table]
    claims: list[Claim]
    far: list[Comparison]


def contents(records: Records) -> Contents:
    """All that can be said of the records, but for figures."""
    claims = ledger(records)
    return Contents(in_short(records, claims), tables(records), claims, deviations(records))


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
    return document("PIEFS: the paper, re-derived", "\n".join(sections), style=style() + STYLE)


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


def _verdict(holds: bool | None) -> str:
    return "open" if holds is None else "holds" if holds else "does not hold"


def _claims(claims: Iterable[Claim]) -> str:
    rows = (
        f"<tr><td class=text>{marked(c.quote)}</td><td class=text>{escape(c.where)}</td>"
        f"<td class=text>{marked(c.finding)}</td>"
        f"<td class='{VERDICTS[c.holds]}'>{_verdict(c.holds)}</td></tr>"
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


def readme(said: Contents) -> str:
    """The contents as Markdown."""
    lines = [
        "# Results",
        "",
        " ".join(said.short),
        "",
        "Written by `piefs reproduce`; the same with figures is in `report.html`. Entries are ours,"
        " mean ± standard deviation [seeds], then in parentheses the paper's, and the difference in"
        " standard errors (of the seeds, and of the draw of the held-out rows). Accuracies are in"
        " per cent.",
        "",
        "### Training components",
        "",
        *_markdown_rows(HEAD, COMPONENTS),
        "",
        *map(markdown, said.tables),
        "### Claims",
        "",
        OPEN,
        "",
        *_markdown_rows(
            ("the paper", "where", "here", ""),
            ((c.quote, c.where, c.finding, _verdict(c.holds)) for c in said.claims),
        ),
        "",
        "### Where we differ",
        "",
        FAR,
        "",
        *_markdown_rows(
            ("cell", "ours (the paper's; difference)", "why"),
            ((one.name, with_difference(one.entry, one.digits), one.why) for one in said.far),
        ),
    ]
    return "\n".join(lines) + "\n"


def _markdown_rows(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return [lines[0], "|" + "---|" * len(tuple(head)), *lines[1:]]
