"""The report of a run: one page on what was learned, beside what it needs to be written anew."""

from piefs.report.evidence import collect
from piefs.report.findings import Finding, findings
from piefs.report.page import EVIDENCE, PAGE, write_page

__all__ = ["EVIDENCE", "PAGE", "Finding", "collect", "findings", "write_page"]
