"""What both pages say: in short, tables, claims, and what is far from the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reproduction.cells import cells_of
from reproduction.deviations import (
    Comparison,
    compared_accuracies,
    compared_gram_errors,
    deviations,
)
from reproduction.entries import SCATTERED
from reproduction.ledger import Claim, ledger
from reproduction.records import Records
from reproduction.tables import Table, tables

FAR = (
    "Accuracies by more than two standard errors, or where our seeds scatter by more than "
    f"{SCATTERED:g} points and the paper's do not; Gram errors by more than a factor of two."
)
OPEN = (
    "± is one standard error of a difference, of the seeds and of the draw of the test rows; where "
    "it stands, a claim is open if it would be judged otherwise within that error. Claims are open "
    "too where runs are missing or seeds are few, and where what they presuppose is not the case."
)


HEAD = ("component", "what it does", "here", "in the reported runs")

COMPONENTS: tuple[tuple[str, str, str, str], ...] = (
    ("maps in sequence", "one φ_k at a time, the earlier frozen", '`solver="sequential"`', "yes"),
    (
        "Gram orthogonality",
        "pulls the batch's Gram matrix to the identity, so that maps say different things",
        '`losses.gram_error`, `gram="batch"`',
        "yes",
    ),
    (
        "cross-entropy readout",
        "a linear classifier on the maps, which bends them to the task",
        "`losses.Readout`",
        "yes; not without labels",
    ),
    (
        "modified Dirichlet penalty",
        "E‖A(x)∇φ_k‖², which keeps maps smooth",
        "`energies`, `gradients`",
        "yes",
    ),
    (
        "dynamic weights",
        "orthogonality first, then the classes, then smoothness",
        '`weighting="exponential"`, `t_orth`, `t_class`',
        "yes; static without labels",
    ),
    (
        "graph-Laplacian pretraining",
        "maps begin as eigenmaps of a neighbourhood graph",
        '`pretraining="graph-laplacian"`',
        "in the ablation on HTRU2 alone",
    ),
    ("metric off", "A = I", '`metric="off"`', "piefs-off"),
    ("metric diag", "A = Λ(x), of determinant 1", '`metric="diag"`', "piefs-diag"),
    ("metric trotter", "A = Λ(x)U(x), rotated first", '`metric="trotter"`', "piefs-trotter"),
)


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


def in_short(records: Records, claims: Sequence[Claim]) -> list[str]:
    """Sentences to begin with, each a count of what the tables show."""
    every, planned = list(records), cells_of()
    n_done = sum(map(records.has, planned))
    accuracies, errors = compared_accuracies(every), compared_gram_errors(every)
    verdicts = [claim.holds for claim in claims]
    return [
        f"{n_done} of {len(planned)} planned runs are done.",
        f"{_near(accuracies)} accuracies on the paper's own data agree with its numbers within two "
        f"standard errors, {_near(errors)} Gram errors within a factor of two.",
        f"Of {len(claims)} claims {verdicts.count(True)} hold, {verdicts.count(False)} do not, "
        f"{verdicts.count(None)} are open.",
    ]


def _near(compared: Iterable[Comparison]) -> str:
    are_near = [not one.is_far for one in compared]
    return f"{sum(are_near)} of {len(are_near)}"


def verdict(holds: bool | None) -> str:
    """Of a claim, in words."""
    return "open" if holds is None else "holds" if holds else "does not hold"
