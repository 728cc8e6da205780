"""``--html``: one page that nothing can break out of, in order for eyes, ears and machines."""

import dataclasses
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

from jgram import rank_reports
from jgram.cli import charts, html
from jgram.data import to_json
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


OTHERS = [pytest.param(name, marks=pytest.mark.thorough) for name in ("annotators", "issues")]


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
    assert first["text"].rstrip(".").casefold() in conclusion.casefold()
    assert first["text"].count(". ") == 0
    assert first["text"].endswith(".")
    assert first["text"] == parsed.all("title")[0]["text"]
    levels = [1, *(int(heading["tag"][1]) for heading in others)]
    assert max(np.diff(levels)) == 1  # none is skipped
    assert levels.count(1) == 1


def test_it_is_in_order_for_a_screen_reader(parsed):
    assert parsed.all("html")[0]["lang"] == "en"
    assert [len(parsed.all(tag)) for tag in ("header", "main", "footer")] == [1, 1, 1]
    ids = [element["id"] for element in parsed.elements if "id" in element]
    assert len(ids) == len(set(ids))
    for element in parsed.elements:
        for name in ("aria-labelledby", "aria-controls", "for", "data-spec"):
            assert element.get(name, ids[0]) in ids
    assert len(parsed.all("table")) == len(parsed.all("caption")) > 0
    assert all(cell.get("scope") in ("col", "row") for cell in parsed.all("th"))
    plots = [element for element in parsed.elements if element.get("role") == "img"]
    assert len(plots) == sum("data-spec" in element for element in parsed.elements) > 0
    assert all(len(plot["aria-label"]) > 40 for plot in plots)
    labelled = {label["for"] for label in parsed.all("label")}
    assert {field["id"] for field in parsed.all("input")} == labelled


def test_hostile_names_are_text(parsed):
    plots = len([element for element in parsed.elements if "data-spec" in element])
    scripts = parsed.all("script")
    assert len(scripts) == plots + 2
    assert [script.get("type") for script in scripts].count("application/json") == plots + 1
    assert not parsed.all("img", "link", "iframe", "object", "form", "base")
    assert not [name for element in parsed.elements for name in element if name.startswith("on")]
    shown = [cell["text"] for cell in parsed.all("td", "th")]
    assert any(pages.HOSTILE in text for text in shown)
    assert any(pages.IMAGE in text for text in shown)


def test_nothing_is_fetched(page, parsed):
    text = page.path.read_text(encoding="utf-8")
    links = [e[name] for e in parsed.elements for name in ("src", "href") if name in e]
    assert links
    assert all(link.startswith("#") for link in links)
    style = parsed.all("style")[0]["text"]
    assert "@import" not in style
    assert "url(" not in style
    policy = next(e["content"] for e in parsed.all("meta") if "http-equiv" in e)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert len(text) < 1.4e6


def test_the_json_is_what_the_command_prints(page, parsed):
    (held,) = [script for script in parsed.all("script") if script.get("id") == "json"]
    assert json.loads(held["text"]) == page.printed


def test_it_says_how_it_was_computed(page, parsed):
    facts = dict(
        zip(
            (term["text"] for term in parsed.all("dt")),
            (fact["text"] for fact in parsed.all("dd")),
            strict=True,
        )
    )
    assert facts["jgram"]
    assert facts["Classes"] in "23"
    assert facts["File"].endswith(".csv")
    assert parsed.all("pre")[0]["text"].startswith(f"jgram {page.path.stem} ")
    if page.path.stem == "rank":
        assert facts["Seed"] == "0"
        assert facts["Records"] == "240"
    words = [word["text"] for word in parsed.all("dfn")]
    assert (
        words
        == {
            "rank": ["keeps", "Noise", "log score"],
            "annotators": ["log score", "determinant", "Accuracy"],
            "issues": [],
        }[page.path.stem]
    )


def test_findings_stand_with_their_advice(page, parsed):
    found = json.loads(page.printed)
    shown = "".join(item["text"] for item in parsed.all("li"))
    expected = found["findings"]
    if page.path.stem == "rank":
        expected = expected + [f for one in found["reports"] for f in one["published"]["findings"]]
    for finding in expected:
        told = page.path.stem != "rank" or finding["concerns"] != "score"
        assert (finding["advice"] in shown) == told


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

    for name, least in {"ink": 7, "soft": 4.5, "good": 4.5, "bad": 3, "warn": 4.5}.items():
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


def test_equal_results_are_equal_bytes(tmp_path, ranking):
    for name in ("a.html", "b.html"):
        html.write_ranking(tmp_path / name, ranking, SOURCE, to_json(ranking))
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
    html.write_ranking(tmp_path / "a.html", found, SOURCE, to_json(found))
    parsed = Parsed((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert parsed.all("h1")[0]["text"] == "The data cannot tell any of these reports from noise."
    assert "not estimable" in [cell["text"] for cell in parsed.all("td")]
    assert "None: each of them might be noise." in [p["text"] for p in parsed.all("p")]
    assert {"standard input", "1"} <= {fact["text"] for fact in parsed.all("dd")}
    assert "a note" in [item["text"] for item in parsed.all("li")]


@pytest.mark.thorough
def test_large_tables_and_plots_are_cut_and_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(html, "MOST_ROWS", 5)
    monkeypatch.setattr(charts, "MOST_MARKS", 4)
    parsed = Parsed(pages.make(tmp_path, "annotators").path.read_text(encoding="utf-8"))
    (caption, collusion), (figure,) = parsed.all("caption"), parsed.all("figcaption")
    assert "(the first 5 of 8; all are in --out and in the JSON below)" in caption["text"]
    assert "Pairs who agree too much" in collusion["text"]
    assert "eve, gus" in [item["text"] for item in parsed.all("li")]
    assert "The 2 best and the 2 worst of 8 annotators." in figure["text"]
    (spec,) = [s["text"] for s in parsed.all("script") if s.get("id") == "s-readings"]
    assert "… 4 more" in json.loads(spec)["layer"][2]["encoding"]["y"]["scale"]["domain"]


def test_pairs_that_share_a_member_are_one_group():
    groups = html._groups([("a", "b"), ("c", "d"), ("e", "f"), ("d", "b")])
    assert groups == [["a", "b", "c", "d"], ["e", "f"]]


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("page.pdf", "page.pdf: expected a .html or .htm file"),
        ("nowhere/page.html", "there is no folder nowhere: make it first"),
    ],
)
@pytest.mark.parametrize("command", pages.COMMANDS)
def test_refused_before_any_work(tmp_path, monkeypatch, capsys, command, target, told):
    monkeypatch.chdir(tmp_path)
    options = {
        "rank": ["--report=a", "--report=b", "--observation=y"],
        "annotators": [],
        "issues": ["--report=a", "--observation=y"],
    }[command]
    with pytest.raises(SystemExit) as ended:
        pages.main([command, "not-there.csv", *options, "--html", target])
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_a_missing_library_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(html, "NEEDED", ("jinja2", "no_such_library"))
    with pytest.raises(ValueError, match=r"^--html takes .*: pip install 'jgram\[cli\]'$"):
        html.check_page(tmp_path / "page.html")
