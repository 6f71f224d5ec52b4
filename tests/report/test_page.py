"""The report of a run, as a file and in a real browser: it works, and trusts no data."""

import csv
import itertools
import json
import re

import numpy as np
import pytest

from browser import BROWSER, WHY_NONE, Browser
from commands import piefs
from piefs.app.run import run
from piefs.data import load
from piefs.report import EVIDENCE, write_page
from piefs.report.html import embedded_json

pytestmark = pytest.mark.usefixtures("undrawn")  # the page has its own pictures

HOSTILE = "<script>document.title='owned'</script>"
COLUMN = "</script><img src=x onerror=\"document.title='owned'\">"
needs_browser = pytest.mark.skipif(BROWSER is None, reason=WHY_NONE)


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    """A run on a table with gaps, an identifier, a constant, and names that would be markup."""
    folder = tmp_path_factory.mktemp("messy")
    rng = np.random.default_rng(0)
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["customer", "age", COLUMN, "same", "kind"])
        for i in range(300):
            age = rng.normal(40, 10)
            kind = HOSTILE if age > 45 else "young" if age < 35 else "R&D $5"
            color = rng.choice(["<b>red</b>", "blue"])
            writer.writerow([f"C{i:04d}", "" if i % 30 == 0 else f"{age:.2f}", color, 7, kind])
    done = piefs(
        *("fit", "rows.csv", "--target", "kind", "--id", "customer", "--missing", "impute"),
        *("-k", "3", "--steps", "40", "--batch-size", "64", "--out", "run"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return folder / "run", done.stdout


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """A run on images, with one map only."""
    out = tmp_path_factory.mktemp("images")
    settings = {"preset": "fast", "n_components": 1, "steps_per_component": 20, "hidden": (16, 16)}
    run(load("digits").head(150), out, **settings, batch_size=64, random_state=0)
    return out


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture
def page(browser, messy):
    browser.open(messy[0] / "report.html")
    browser.painted()
    return browser


def text(page, selector):
    return page.run(f"document.querySelector({json.dumps(selector)}).textContent")


def picture(page):
    page.painted()
    return page.run("document.getElementById('plot').toDataURL()")


def choose(page, selector, value):
    page.run(
        f"(() => {{ const s = document.querySelector({json.dumps(selector)}); s.value = {value}; "
        "s.dispatchEvent(new Event('change')); })()"
    )


def brush(page):
    left, top, width, height = page.place("#plot")
    page.drag(left + 60, top + 20, left + width - 20, top + height - 50)


@needs_browser
def test_page_loads_in_silence_and_asks_nothing_of_the_network(page, messy):
    brush(page)
    assert page.console == []
    elsewhere = [url for url in page.requests if not url.startswith("data:")]
    assert elsewhere == [(messy[0] / "report.html").resolve().as_uri()]


@needs_browser
def test_hostile_names_stay_text(page):
    brush(page)
    assert page.run("document.title") == "rows: PIEFS report"
    assert (
        page.run("document.querySelectorAll('script').length") == 2
    )  # the data and the page's own
    assert page.run("document.querySelectorAll('img, #selection b, dd b').length") == 0
    assert HOSTILE in text(page, "#legend")
    assert HOSTILE in text(page, "#selected-classes")
    assert COLUMN in text(page, "#selected-rows")
    assert HOSTILE in text(page, "#predictions details")


@needs_browser
def test_a_script_that_is_not_the_pages_own_does_not_run(page):
    page.run(
        "(() => { const s = document.createElement('script'); "
        "s.textContent = 'window.ran = true'; document.body.append(s); })()"
    )
    assert page.run("window.ran === undefined")


@needs_browser
def test_axes_and_colours_can_be_chosen(page):
    before = picture(page)
    assert text(page, "#status").endswith("φ₂ against φ₁")
    choose(page, "#axis-j", 2)
    assert picture(page) != before
    assert text(page, "#status").endswith("φ₃ against φ₁")
    other = picture(page)
    names = page.run("[...document.querySelectorAll('#colour option')].map((o) => o.textContent)")
    assert names == ["kind", "kind, predicted", "right or wrong", "confidence", "split"]
    choose(page, "#colour", 3)
    assert picture(page) != other
    assert text(page, "#legend").startswith("≤")


@needs_browser
def test_a_class_can_be_hidden_and_shown_again(page):
    before, status = picture(page), text(page, "#status")
    shown = int(status.split()[0])
    hidden = int(re.search(r"\((\d+)\)", text(page, "#legend button")).group(1))
    page.click("#legend button")
    assert int(text(page, "#status").split()[0]) == shown - hidden
    assert picture(page) != before
    page.click("#legend button")
    assert text(page, "#status") == status


@needs_browser
def test_a_rectangle_selects_rows_counts_them_by_class_and_lists_them(page):
    assert page.run("document.getElementById('selection').hidden")
    brush(page)
    shown = int(text(page, "#status").split()[0])
    assert text(page, "#selected-count").startswith(f"{shown} selected")
    counts = re.findall(r": (\d+)", text(page, "#selected-classes"))
    assert sum(map(int, counts)) == shown
    assert page.run("document.querySelectorAll('#selected-rows tr').length") == 51
    assert re.search(r"line \d+, (validation|test)", text(page, "#selected-rows"))
    assert re.search(r"C\d{4}", text(page, "#selected-rows"))
    page.click("#clear")
    assert page.run("document.getElementById('selection').hidden")


@needs_browser
def test_a_row_is_shown_where_the_pointer_is(page):
    left, top, width, height = page.place("#plot")
    across, up = np.linspace(60, width - 20, 40), np.linspace(30, height - 60, 12)
    for x, y in itertools.product(across, up):
        page.mouse("mouseMoved", left + x, top + y)
        if not page.run("document.getElementById('tip').hidden"):
            break
    shown = text(page, "#tip")
    assert re.search(r"line \d+, (validation|test)", shown)
    assert "predicted" in shown
    assert re.search(r"customerC\d{4}", shown)
    assert "age" in shown
    page.mouse("mouseMoved", 1, 1)
    assert page.run("document.getElementById('tip').hidden")
    page.tap(left + x, top + y)
    assert not page.run("document.getElementById('tip').hidden")
    assert text(page, "#tip") == shown


@needs_browser
def test_zooming_changes_the_view_and_reset_brings_it_back(page):
    before = picture(page)
    page.click("#zoom-in")
    page.mouse("mouseMoved", 1, 1)
    assert picture(page) != before
    page.click("#reset")
    page.mouse("mouseMoved", 1, 1)
    assert picture(page) == before


@needs_browser
@pytest.mark.parametrize("width", [390, 1400])
def test_page_is_never_wider_than_the_screen(page, width, tmp_path):
    page.screenshot(tmp_path / "page.png", width=width, dark=width < 600)
    assert page.run("document.documentElement.scrollWidth") == width


@needs_browser
def test_images_have_thumbnails_and_one_map_has_a_plot(browser, images):
    browser.open(images / "report.html")
    browser.painted()
    assert browser.console == []
    assert "along φ₁" in text(browser, "#status")
    assert browser.run("document.querySelectorAll('#hardest canvas.thumb').length") == 12
    lit = (
        "[...document.querySelector('#hardest canvas').getContext('2d').getImageData(0,0,8,8).data]"
    )
    assert browser.run(f"new Set({lit}).size") > 3
    assert browser.run("document.querySelectorAll('[id^=figure-relevance] svg').length") == 1


# --- the page as a file --------------------------------------------------------------------------


def test_the_command_names_the_page_and_its_folder_has_it(messy):
    folder, said = messy
    assert "report.html" in said
    assert 50_000 < (folder / "report.html").stat().st_size < 6_000_000


def test_a_report_is_written_anew_without_the_data_and_is_the_same(messy):
    folder, _ = messy
    before = (folder / "report.html").read_bytes()
    (folder / "report.html").unlink()
    (folder.parent / "rows.csv").rename(folder.parent / "gone.csv")
    done = piefs("report", folder)
    (folder.parent / "gone.csv").rename(folder.parent / "rows.csv")
    assert done.returncode == 0, done.stderr
    assert "report.html" in done.stdout
    assert (folder / "report.html").read_bytes() == before


def test_pictures_hold_names_as_text_and_follow_the_pages_ink(messy):
    content = (messy[0] / "report.html").read_text()
    assert "R&amp;D $5</text>" in content
    assert "currentColor" in content
    for name in ("confusion", "reliability", "gram", "energies", "score-by-maps", "losses"):
        assert f"id='figure-{name}'" in content


def test_page_says_what_became_of_columns_and_how_to_use_the_model(messy):
    content = (messy[0] / "report.html").read_text()
    assert "age: number, 10 missing values replaced by the median" in content
    assert "load(&quot;model&quot;)" in content
    assert "piefs predict . new.csv" in content
    assert "random forest" in content
    assert "data-kind='constant-columns'" in content


def test_embedded_json_cannot_end_its_element():
    made = embedded_json("x", {"</script><script>": "a & b"})
    inner = made[made.index(">") + 1 : made.rindex("</script>")]
    assert "<" not in inner
    assert json.loads(inner) == {"</script><script>": "a & b"}


def test_a_folder_without_a_run_and_a_damaged_one_are_told(messy, tmp_path):
    assert piefs("report", tmp_path / "nothing").returncode == 2
    folder = tmp_path / "copy"
    (folder / "model").mkdir(parents=True)
    for path in ("metrics.json", "history.csv", "model/model.json", "model/weights.safetensors"):
        (folder / path).write_bytes((messy[0] / path).read_bytes())
    done = piefs("report", folder)
    assert done.returncode == 2
    assert "without --no-report" in done.stderr
    evidence = json.loads((messy[0] / EVIDENCE).read_text())
    for damaged in ("{", json.dumps(evidence | {"format": 99}), json.dumps({"format": 1})):
        (folder / EVIDENCE).write_text(damaged)
        done = piefs("report", folder)
        assert done.returncode == 2
        assert "fit again" in done.stderr
    (folder / EVIDENCE).write_text(json.dumps(evidence))
    assert write_page(folder).is_file()
