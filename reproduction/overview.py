"""The whole in three sentences: what has run, how much agrees with the paper, which claims hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reproduction.cells import cells_of
from reproduction.deviations import Comparison, compared_accuracies, compared_gram_errors
from reproduction.ledger import Claim
from reproduction.records import Records


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
