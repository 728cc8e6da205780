"""``--html``: one page that nothing can break out of, in order for eyes, ears and machines."""

import dataclasses
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

from jgram import plots, rank_reports
from jgram.cli import page as pages_of
from tests import pages

EMPTY = {"meta", "input", "br", "img", "link"}
BREAKS = {"p", "li", "td", "th", "tr", "h1", "h2", "h3", "figcaption", "caption"}


class Parsed(HTMLParser):
    """Elements in order, each with its attributes and all of its text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(text)
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        found = {"tag": tag, **dict(attributes), "text": ""}
        self.elements.append(found)
        if tag not in EMPTY:
            self.open.append(found)

    def handle_endtag(self, tag):
        last = self.open.pop()
        assert last["tag"] == tag, f"{tag} closes {last['tag']}"

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, *tags):
        return [element for element in self.elements if element["tag"] in tags]


OTHERS = [pytest.param(name, marks=pytest.mark.thorough) for name in pages.COMMANDS[1:]]


@pytest.fixture(scope="module", params=["rank", *OTHERS])
def page(request, tmp_path_factory):
    return pages.make(tmp_path_factory.mktemp("pages"), request.param)


@pytest.fixture(scope="module")
def parsed(page):
    return Parsed(page.path.read_text(encoding="utf-8"))


def test_the_first_heading_is_the_conclusion(page, parsed):
    first, *others = parsed.all("h1", "h2", "h3")
    conclusion = json.loads(page.printed)["conclusion"]
    assert first["tag"] == "h1"
    assert conclusion.startswith(first["text"].rstrip("."))
    assert first["text"].count(". ") == 0
    assert first["text"] == parsed.all("title")[0]["text"]
    assert {heading["tag"] for heading in others} == {"h2"}


def test_it_is_in_order_for_a_screen_reader(parsed):
    assert parsed.all("html")[0]["lang"] == "en"
    assert [len(parsed.all(tag)) for tag in ("header", "main", "footer")] == [1, 1, 1]
    ids = [element["id"] for element in parsed.elements if "id" in element]
    assert len(ids) == len(set(ids))
    for element in parsed.elements:
        for name in ("aria-labelledby", "for"):
            assert element.get(name, ids[0]) in ids
    assert all("aria-labelledby" in table for table in parsed.all("table"))
    assert all(cell.get("scope") in ("col", "row") for cell in parsed.all("th"))
    (plot,) = [element for element in parsed.elements if element.get("role") == "img"]
    assert len(plot["aria-label"]) > 40
    assert len(parsed.all("svg")) == 1
    labelled = {label["for"] for label in parsed.all("label")}
    assert {field["id"] for field in parsed.all("input")} == labelled


def test_hostile_names_are_text(parsed):
    scripts = parsed.all("script")
    assert [script.get("type") for script in scripts] == ["application/json", None]
    assert not parsed.all("img", "link", "iframe", "object", "form", "base", "image")
    assert not [name for element in parsed.elements for name in element if name.startswith("on")]
    for tag in (("td", "th"), ("text",)):  # of tables, of the plot
        shown = "".join(cell["text"] for cell in parsed.all(*tag))
        assert pages.IMAGE[:12] in shown or tag == ("text",)
        assert "\x1b" not in shown


def test_nothing_is_fetched(page, parsed):
    text = page.path.read_text(encoding="utf-8")
    names = ("src", "href", "xlink:href")
    links = [e[name] for e in parsed.elements for name in names if name in e]
    assert links
    assert all(link.startswith("#") for link in links)
    style = "".join(element["text"] for element in parsed.all("style"))
    assert "@import" not in style
    assert not re.search(r"url\((?!#)", text)
    policy = next(e["content"] for e in parsed.all("meta") if "http-equiv" in e)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert len(text) < 2e5


def test_the_plot_is_in_the_colours_and_letters_of_the_page(page, parsed):
    """No colour of the drawing is left, and no text of it runs off its edge."""
    text = page.path.read_text(encoding="utf-8")
    svg = text[text.index("<svg") : text.index("</svg>")]
    assert "var(--ink)" in svg
    assert "var(--good)" in svg
    assert not set(re.findall(r"#[0-9a-f]{6}\b", svg)) - {"#000000"}
    assert parsed.all("text")


def test_the_json_is_what_the_command_prints(page, parsed):
    (held,) = [script for script in parsed.all("script") if script.get("id") == "json"]
    assert json.loads(held["text"]) == page.printed


def test_it_says_what_the_terminal_says(page, parsed):
    """Every line of the view, the findings with their advice among them."""
    found = json.loads(page.printed)
    shown = [line["text"] for line in parsed.all("p", "h1")]
    expected = found["findings"]
    if page.path.stem == "rank":
        expected = expected + [f for one in found["reports"] for f in one["published"]["findings"]]
    for finding in expected:
        told = page.path.stem != "rank" or finding["concerns"] != "score"
        assert any(finding["advice"] in line for line in shown) == told
    facts = dict(
        zip(*([part["text"] for part in parsed.all(tag)] for tag in ("dt", "dd")), strict=True)
    )
    assert facts["jgram"]
    assert facts["File"].endswith(".csv")
    assert parsed.all("pre")[0]["text"].startswith(f"jgram {page.path.stem} ")
    if page.path.stem == "rank":
        assert facts["Seed"] == "0"
        assert any(line.startswith("240 records, 3 classes") for line in shown)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colours_can_be_read(scheme):
    """4.5 to 1 for text, 3 to 1 for marks, as WCAG 2.2 asks."""
    style = (files("jgram.cli") / "templates" / "page.css").read_text()
    block = re.findall(r":root \{(.*?)\}", style, re.S)[scheme]
    colours = dict(re.findall(r"--(\w+): #(\w{3,6});", block))

    def luminance(name):
        text = colours[name] if len(colours[name]) == 6 else "".join(2 * c for c in colours[name])
        parts = np.array([int(text[i : i + 2], 16) for i in (0, 2, 4)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    for name, least in {"ink": 7, "soft": 4.5, "good": 4.5, "bad": 3}.items():
        for ground in ("paper", "panel") if name in ("ink", "soft") else ("paper",):
            low, high = sorted((luminance(name), luminance(ground)))
            assert (high + 0.05) / (low + 0.05) >= least, (name, ground)


SOURCE = {"file": "-", "observations": ["y"], "seed": 1, "notes": ["a note"]}


@pytest.fixture(scope="module")
def ranking():
    """Of the same size as the page's, which is compiled already."""
    truth = np.arange(240) % 3
    reports = {f"1 in {k}": np.where(np.arange(240) % k, truth, 0) for k in (2, 5, 7)}
    return rank_reports(reports, truth.astype(str))


def write(path, found):
    view = found.view(SOURCE)
    pages_of.write_page(path, view, found.plot(), SOURCE, found.to_json())
    return Parsed(path.read_text(encoding="utf-8"))


def test_equal_results_are_equal_bytes(tmp_path, ranking):
    for name in ("a.html", "b.html"):
        write(tmp_path / name, ranking)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_what_cannot_be_estimated_has_its_place(tmp_path, ranking):
    nothing = [
        dataclasses.replace(one, keeps=None, keeps_interval=None, inside_noise=True)
        for one in ranking.reports
    ]
    pairs = [
        dataclasses.replace(pair, separated=False, retention=None, retention_interval=None)
        for pair in ranking.pairs
    ]
    found = dataclasses.replace(
        ranking, reports=tuple(nothing), pairs=tuple(pairs), most_reliable=()
    )
    parsed = write(tmp_path / "a.html", found)
    assert parsed.all("h1")[0]["text"] == "The data cannot tell any of these reports from noise."
    assert "not estimable" in [cell["text"] for cell in parsed.all("td")]
    assert "not estimable" in "".join(text["text"] for text in parsed.all("text"))
    assert {"standard input", "1"} <= {fact["text"] for fact in parsed.all("dd")}
    assert "a note" in [line["text"] for line in parsed.all("p")]


@pytest.mark.thorough
def test_large_tables_and_plots_are_cut_and_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(pages_of, "MOST_ROWS", 5)
    monkeypatch.setattr(plots, "MOST_MARKS", 4)
    parsed = Parsed(pages.make(tmp_path, "annotators").path.read_text(encoding="utf-8"))
    first, collusion, _ = parsed.all("h2")
    assert "(the first 5 of 8; all are in the JSON below)" in first["text"]
    assert "Pairs who agree too much" in collusion["text"]
    assert len([cell for cell in parsed.all("th") if cell.get("scope") == "row"]) == 6
    words = " ".join(text["text"] for text in parsed.all("text"))
    assert "the 2 best and the 2 worst of 8" in words
