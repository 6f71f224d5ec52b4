"""The page of a run in a real browser: it works, and no data becomes markup."""

import itertools
import json
import re

import numpy as np
import pytest

from browser import BROWSER, WHY_NONE, Browser
from piefs.app.run import run
from piefs.data import load

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason=WHY_NONE),
    pytest.mark.usefixtures("undrawn"),
]


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
    browser.open(messy.folder / "report.html")
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


def test_page_loads_in_silence_and_asks_nothing_of_the_network(page, messy):
    brush(page)
    assert page.console == []
    elsewhere = [url for url in page.requests if not url.startswith("data:")]
    assert elsewhere == [(messy.folder / "report.html").resolve().as_uri()]


def test_hostile_names_stay_text(page, messy):
    brush(page)
    assert page.run("document.title") == "rows: PIEFS report"
    assert page.run("document.querySelectorAll('script').length") == 2  # the data and our own
    assert page.run("document.querySelectorAll('img, #selection b, dd b').length") == 0
    assert messy.hostile in text(page, "#legend")
    assert messy.hostile in text(page, "#selected-classes")
    assert messy.column in text(page, "#selected-rows")
    assert messy.hostile in text(page, "#predictions details")


def test_a_script_that_is_not_the_pages_own_does_not_run(page):
    page.run(
        "(() => { const s = document.createElement('script'); "
        "s.textContent = 'window.ran = true'; document.body.append(s); })()"
    )
    assert page.run("window.ran === undefined")


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


def test_a_class_can_be_hidden_and_shown_again(page):
    before, status = picture(page), text(page, "#status")
    shown = int(status.split()[0])
    hidden = int(re.search(r"\((\d+)\)", text(page, "#legend button")).group(1))
    page.click("#legend button")
    assert int(text(page, "#status").split()[0]) == shown - hidden
    assert picture(page) != before
    page.click("#legend button")
    assert text(page, "#status") == status


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


def test_zooming_changes_the_view_and_reset_brings_it_back(page):
    before = picture(page)
    page.click("#zoom-in")
    page.mouse("mouseMoved", 1, 1)
    assert picture(page) != before
    page.click("#reset")
    page.mouse("mouseMoved", 1, 1)
    assert picture(page) == before


@pytest.mark.parametrize("width", [390, 1400])
def test_page_is_never_wider_than_the_screen(page, width, tmp_path):
    page.screenshot(tmp_path / "page.png", width=width, dark=width < 600)
    assert page.run("document.documentElement.scrollWidth") == width


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
