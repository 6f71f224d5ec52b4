"""The page of a run as a file: what is on it, and that no data becomes markup."""

import base64
import csv
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from commands import piefs
from piefs.report import EVIDENCE
from piefs.report.page import write_page

FORMAT_2 = Path(__file__).parents[1] / "app" / "format2"


class Tags(HTMLParser):
    """The elements of a page by name, and the text of its scripts."""

    def __init__(self, content):
        super().__init__()
        self.names, self.scripts, self.figures, self.is_in_script = [], [], [], False
        self.feed(content)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.is_in_script = tag == "script"
        if tag == "figure":
            self.figures.append(dict(attrs)["id"].removeprefix("figure-"))

    def handle_endtag(self, tag):
        self.is_in_script = False

    def handle_data(self, data):
        if self.is_in_script:
            self.scripts.append(data)


@pytest.fixture(scope="module")
def content(messy):
    return (messy.folder / "report.html").read_text()


@pytest.fixture(scope="module")
def tags(content):
    return Tags(content)


def test_the_command_names_the_page_and_its_folder_has_it(messy, content):
    assert "report.html" in messy.said
    assert 50_000 < len(content) < 6_000_000


def test_a_page_is_written_again_without_the_data_and_is_the_same(messy, content):
    (messy.folder / "report.html").unlink()
    rows = messy.folder.parent / "rows.csv"
    rows.rename(rows.with_name("gone.csv"))
    done = piefs("report", messy.folder)
    rows.with_name("gone.csv").rename(rows)
    assert done.returncode == 0, done.stderr
    assert "report.html" in done.stdout
    assert (messy.folder / "report.html").read_text() == content


def test_names_that_look_like_markup_stay_text(messy, content, tags):
    assert tags.names.count("script") == 2  # the rows and our own
    assert "img" not in tags.names
    for name in (messy.hostile, messy.column):
        assert name not in content
    rows = json.loads(tags.scripts[0])
    assert messy.hostile in rows["class_names"]
    assert messy.column in [column["name"] for column in rows["columns"]]


def test_only_the_pages_own_script_may_run(content, tags):
    digest = base64.b64encode(hashlib.sha256(tags.scripts[1].encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}'" in content
    assert not re.search(r"(src|href)=['\"]?(https?:|//)", content)


def test_a_run_has_one_list_of_pictures(messy, content, tags):
    drawn = {path.stem for path in (messy.folder / "figures").iterdir()}
    assert drawn - {"coordinates"} == set(tags.figures)  # the page's own scatter in its place
    assert {"confusion", "reliability", "gram", "energies", "score-by-maps", "losses"} <= drawn
    assert all(path.stat().st_size > 3000 for path in (messy.folder / "figures").iterdir())
    assert "R&amp;D $5</text>" in content
    assert "currentColor" in content


def test_page_says_how_columns_are_used_and_how_to_use_the_model(content):
    assert "age: number, 10 missing values replaced by the median" in content
    assert 'load("model")' in content
    assert "piefs predict . new.csv" in content
    assert "random forest" in content
    assert 'data-kind="constant-columns"' in content


def test_a_run_of_an_earlier_version_still_has_a_page(tmp_path):
    folder = shutil.copytree(FORMAT_2, tmp_path / "run")
    with (folder / "history.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "map", "loss_class", "loss_mde", "gram_residual"])
        writer.writerows([[20, 3, 0.6, 0.1, 1.0], [40, 3, 0.3, 0.2, 0.8]])
    write_page(folder)
    content = (folder / "report.html").read_text()
    assert "predict churn, from 62 training rows" in content
    assert "<td>logistic regression</td>" in content
    assert {"confusion", "gram", "losses"} <= set(Tags(content).figures)


def test_a_run_without_steps_has_a_page_without_curves(messy, tmp_path):
    folder = shutil.copytree(messy.folder, tmp_path / "run")
    (folder / "history.csv").unlink()
    metrics = json.loads((folder / "metrics.json").read_text())
    metrics |= {"steps": 0, "steps_saved": 0, "steps_per_second": 0.0}
    (folder / "metrics.json").write_text(json.dumps(metrics))
    write_page(folder)
    content = (folder / "report.html").read_text()
    assert "Seed 0." in content
    assert 'href="#training"' not in content
    assert not {"losses", "validation", "gram-history"} & set(Tags(content).figures)


def test_a_folder_without_a_run_and_a_damaged_one_are_refused(messy, tmp_path):
    assert piefs("report", tmp_path / "nothing").returncode == 2
    folder = tmp_path / "copy"
    (folder / "model").mkdir(parents=True)
    for path in ("metrics.json", "history.csv", "model/model.json", "model/weights.safetensors"):
        (folder / path).write_bytes((messy.folder / path).read_bytes())
    done = piefs("report", folder)
    assert done.returncode == 2
    assert "without --no-report" in done.stderr
    evidence = json.loads((messy.folder / EVIDENCE).read_text())
    unnamed = evidence | {"data": {k: v for k, v in evidence["data"].items() if k != "name"}}
    for damaged in ("{", *map(json.dumps, (evidence | {"format": 99}, {"format": 1}, unnamed))):
        (folder / EVIDENCE).write_text(damaged)
        done = piefs("report", folder)
        assert done.returncode == 2
        assert "fit again" in done.stderr
