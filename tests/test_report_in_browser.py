"""The pages of ``--html`` in Chromium: without a network, by mouse and keyboard, on paper."""

import io
import json
import re
import shutil
from pathlib import Path

import pytest

from tests import pages

pytestmark = pytest.mark.thorough

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
WHITE = "rgb(255, 255, 255)"
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("needs chromium: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with playwright.sync_playwright() as running:
        found = running.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture(scope="module", params=pages.COMMANDS)
def page(request, browser, tmp_path_factory):
    return pages.make(tmp_path_factory.mktemp("pages"), request.param)


@pytest.fixture
def opened(browser, page):
    """Opens the page; afterwards nothing may have gone wrong, asked for a file, or run."""
    wrong, contexts = [], []

    def open_page(size, **options):
        context = browser.new_context(viewport=size, offline=True, **options)
        contexts.append(context)
        shown = context.new_page()
        shown.on("console", lambda message: wrong.append(message.text))
        shown.on("pageerror", lambda error: wrong.append(str(error)))
        shown.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        shown.on("request", lambda request: wrong.append(request.url))
        address = page.path.as_uri()
        shown.goto(address)
        shown.wait_for_selector(".plot svg")
        wrong.remove(address)
        return shown

    yield open_page
    for context in contexts:
        context.close()
    assert not wrong


def cells(shown, table, column):
    """Texts of a column, of the rows that are shown."""
    return shown.eval_on_selector_all(
        f"{table} tbody tr:not([hidden])", f"rows => rows.map(row => row.cells[{column}].innerText)"
    )


def test_the_conclusion_is_seen_first_on_a_phone(opened):
    shown = opened(PHONE)
    box = shown.locator("h1").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= 664  # what a browser's bars leave of a small phone
    assert shown.evaluate("document.documentElement.scrollWidth") <= 390
    plot = shown.locator(".plot svg").first.bounding_box()
    assert plot["x"] + plot["width"] <= 390


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_every_text_of_a_plot_can_be_read_and_is_inside(opened, size):
    shown = opened(size)
    box = shown.locator(".plot svg").bounding_box()
    texts = shown.eval_on_selector_all(
        ".plot svg text",
        "all => all.map(text => { const box = text.getBoundingClientRect();"
        " return [box.left, box.right, parseFloat(getComputedStyle(text).fontSize)"
        " * text.getScreenCTM().a]; })",
    )
    assert len(texts) > 4
    for left, right, height in texts:
        assert left >= box["x"] - 1
        assert right <= box["x"] + box["width"] + 1
        assert height > 11


def test_tables_sort_by_mouse_and_keyboard(opened, page):
    if page.path.stem == "score":
        pytest.skip("one row needs no order")
    shown = opened(DESK)
    name = "section:has(#t1)" if page.path.stem == "issues" else "section:has(#t0)"
    column = {"rank": 1, "annotators": 3, "score": 1, "issues": 0}[page.path.stem]
    head = shown.locator(f"{name} thead th").nth(column)
    before = cells(shown, name, column)

    def numbers():
        return [float(re.sub("[%,]| .*", "", text)) for text in cells(shown, name, column)]

    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert numbers() == sorted(numbers())
    shown.keyboard.press("Enter")  # the focus stays
    assert head.get_attribute("aria-sort") == "descending"
    assert numbers() == sorted(numbers(), reverse=True)
    assert sorted(cells(shown, name, column)) == sorted(before)
    shown.keyboard.press("Tab")
    shown.keyboard.press("Space")
    assert head.get_attribute("aria-sort") is None
    assert shown.locator(f"{name} thead th").nth(column + 1).get_attribute("aria-sort")
    assert shown.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_tables_filter(opened, page):
    if page.path.stem != "issues":
        pytest.skip("a few rows need no filter")
    shown, name = opened(DESK), "section:has(#t1)"
    total = len(cells(shown, name, 0))
    shown.get_by_label("Filter").fill(f"{pages.IMAGE} cold")
    kept = cells(shown, name, 0)
    assert 0 < len(kept) < total
    assert shown.locator(f"{name} output").inner_text() == f"{len(kept)} of {total} rows"
    shown.get_by_label("Filter").fill("")
    assert len(cells(shown, name, 0)) == total


def test_the_download_is_what_json_prints(opened, page):
    shown = opened(DESK)
    with shown.expect_download() as waiting:
        shown.get_by_role("link", name="Download the result as JSON").click()
    assert waiting.value.suggested_filename == f"{page.path.stem}.json"
    text = Path(waiting.value.path()).read_text(encoding="utf-8")
    assert text == page.printed
    assert json.loads(text)["conclusion"]


def test_it_prints(opened, page):
    """White paper, and every column: cells on an A4 page, none over another, heads in the PDF."""
    shown = opened({"width": 680, "height": 980}, color_scheme="dark")
    assert shown.evaluate("getComputedStyle(document.body).backgroundColor") != WHITE
    shown.emulate_media(media="print")
    assert not shown.locator(".tools, .download").filter(visible=True).count()
    assert shown.locator(".plot svg").first.is_visible()
    assert shown.evaluate("document.documentElement.scrollWidth") <= 680
    assert shown.evaluate("getComputedStyle(document.body).backgroundColor") == WHITE
    found = shown.eval_on_selector_all(
        "th, td",
        "all => all.filter(cell => cell.offsetParent).map(cell => ["
        "cell.getBoundingClientRect().left, cell.getBoundingClientRect().right,"
        " cell.scrollWidth - cell.clientWidth])",
    )
    assert found
    for left, right, hidden in found:
        assert -1 <= left < right <= 681
        assert hidden <= 1
    heads = shown.eval_on_selector_all("thead th", "all => all.map(head => head.innerText)")
    pypdf = pytest.importorskip("pypdf", reason="needs pypdf")
    printed = pypdf.PdfReader(io.BytesIO(shown.pdf(format="A4"))).pages
    text = re.sub(r"\s", "", "".join(sheet.extract_text() for sheet in printed))
    missing = [head for head in heads if re.sub(r"[\s↕↑↓]", "", head) not in text]
    assert not missing
