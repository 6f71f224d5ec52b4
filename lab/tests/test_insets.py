"""Tables that programs write into pages are what the records say."""

from pathlib import Path

from lab.benchmarks import exports
from lab.benchmarks.results import RESULTS
from lab.experiments.records import load_records
from lab.experiments.report import insets, page
from reproduction.records import Records
from reproduction.report import contents, readme

ROOT = Path(__file__).parents[2]


def test_insets_are_what_the_records_say(monkeypatch):
    monkeypatch.chdir(ROOT)
    records = load_records()
    for path, name, made in insets(records):
        text = (ROOT / path).read_text(encoding="utf-8")
        assert f"<!-- {name} -->\n{made}<!-- /{name} -->" in text
    assert page(records) == (ROOT / "results" / "beyond" / "README.md").read_text()


def test_the_page_of_results_is_what_the_records_say(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert readme(contents(Records("results/records"))) == Path("results/README.md").read_text()


def test_the_differences_on_the_page_on_exports_are_those_measured():
    found = RESULTS["exports"]
    assert (
        f"{exports.OPEN}{exports.table(found)}{exports.CLOSE}"
        in (ROOT / "docs/exports.md").read_text()
    )
    single = [case for case in found["cases"] if "double" not in case["name"]]
    for case in single:
        for runtime in ("onnxruntime", "numpy"):
            assert case[runtime]["prediction"] < 1e-5
            assert case[runtime]["coordinates"] < 1e-6 * case["largest_coordinate"]
