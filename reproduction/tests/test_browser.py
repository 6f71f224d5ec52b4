"""The report in a real browser."""

import shutil
import subprocess

import pytest

from reproduction.cells import Cell
from reproduction.ledger import CLAIMS
from reproduction.records import Records
from reproduction.report import write_report
from reproduction.runs import work
from reproduction.tables import tables

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        BROWSER is None, reason="no Chromium on this machine (Debian: apt-get install chromium)"
    ),
]


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """The page's DOM after loading, and what the browser had to say."""
    results = tmp_path_factory.mktemp("results")
    for method in ("piefs-off", "random-forest"):
        work(Cell("two-moons", method, "supervised", "paper", 0), results, quick=True)
    page, _ = write_report(results)
    call = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    call += [f"--user-data-dir={results / 'profile'}", "--dump-dom", page.as_uri()]
    done = subprocess.run(call, capture_output=True, text=True, check=True, timeout=120)
    return results, done.stdout, done.stderr


def test_page_loads_without_a_word_on_the_console(opened):
    _, _, log = opened
    assert "CONSOLE" not in log


def test_every_table_figure_and_claim_is_on_the_page(opened):
    results, dom, _ = opened
    for table in tables(Records(results / "records")):
        assert f'id="{table.name}"' in dom
    assert dom.count("<figure") == 6
    assert dom.count('src="data:image/png') == 6
    ledger = dom[dom.index('id="ledger"') : dom.index('id="deviations"')]
    assert ledger.count("<tr>") == len(CLAIMS) + 1


def test_page_asks_nothing_of_the_network(opened):
    _, dom, _ = opened
    assert "http:" not in dom
    assert "https:" not in dom
