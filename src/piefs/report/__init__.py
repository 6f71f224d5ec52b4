"""What was learned: scores, relevance, findings, figures, and the page of a run.

`piefs.report.page.write_page` writes the page; it needs the extra [app].
"""

EVIDENCE, PAGE = "report.json", "report.html"
"""The files in a run's folder: what the page is made from, and the page."""
