"""All changes of a module's source that mutmut's operators make."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst
import libcst.matchers as m
from mutmut.mutation.mutators import mutation_operators

BEYOND_BEHAVIOUR = (cst.Annotation, cst.Raise, cst.Import, cst.ImportFrom)
"""Types, and the words of errors: that they are raised is what tests have to assert."""


class Change(NamedTuple):
    """The source with one change, and the lines that differ as `- before` and `+ after`."""

    difference: str
    source: str


def changes_of(source: str) -> list[Change]:
    """Every change, in the order of the source; none twice."""
    module = cst.parse_module(source)
    found: dict[str, None] = {}
    for node in _nodes(module):
        for kind, operator in mutation_operators:
            if isinstance(node, kind):
                for other in operator(node):
                    changed = cst.ensure_type(module.deep_replace(node, other), cst.Module)
                    found[changed.code] = None
    return [Change(_difference(source, code), code) for code in found if code != source]


def _nodes(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in node.children:
        if not isinstance(child, BEYOND_BEHAVIOUR) and not _lists_names(child):
            yield child
            yield from _nodes(child)


def _lists_names(node: cst.CSTNode) -> bool:
    return m.matches(node, m.Assign(targets=[m.AssignTarget(m.Name("__all__"))]))


def _difference(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    place, *changed = list(lines)[2:]
    number = place.split()[1].lstrip("-").split(",")[0]
    return "\n".join([f"line {number}", *(f"{line[0]} {line[1:].strip()}" for line in changed)])
