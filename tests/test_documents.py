"""What the pages at the root and in experiments/ name is there, under that name."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = "".join(path.read_text() for path in ROOT.glob("tests/test_*.py"))
PAPER = (ROOT / "experiments" / "PAPER.md").read_text()
CHANGES = (ROOT / "CHANGELOG.md").read_text()


def exists(name):
    """Whether a dotted name below the root is a module, or an attribute of one, or of a class."""
    head, *rest = name.split(".")
    thing = importlib.import_module(head)
    for part in rest:
        try:
            thing = getattr(thing, part)
        except AttributeError:
            try:
                thing = importlib.import_module(f"{thing.__name__}.{part}")
            except (ImportError, AttributeError):
                return part in getattr(thing, "__dataclass_fields__", ())
    return True


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(test_\w+\*?)`", PAPER))))
def test_the_paper_page_names_tests(name):
    assert f"def {name.removesuffix('*')}" in TESTS


def test_the_paper_page_names_functions():
    names = set(re.findall(r"`([a-z_]+\.[a-z_.]+)`", PAPER))
    assert len(names) > 25
    missing = sorted(name for name in names if not exists(f"jgram.{name}"))
    assert not missing


def test_the_paper_page_is_linked_in_both_directions():
    for module in ("__init__", "guarantees", "orderings"):
        assert "experiments/PAPER.md" in (ROOT / "jgram" / "paper" / f"{module}.py").read_text()
    for page in (ROOT / "README.md", ROOT / "experiments" / "README.md"):
        assert "PAPER.md" in page.read_text(), page


def test_the_changelog_names_what_exists():
    """Whatever starts with ``jgram.``, except in the first column of a table: the old names."""
    new = CHANGES.split("\n## 0.1.0")[0]
    lines = [
        line.partition(" | ")[2] if line.startswith("|") else line for line in new.splitlines()
    ]
    names = set(re.findall(r"`(jgram\.[\w.]+)`", "\n".join(lines)))
    assert len(names) > 80
    missing = sorted(name for name in names if not exists(name))
    assert not missing


def test_the_layers_are_as_drawn():
    """Every module of the package stands in the picture, and imports none that stands below it."""
    picture = (ROOT / "CONTRIBUTING.md").read_text().split("## Recipes")[0]
    drawn = [re.split(r"\s{3,}", line.strip())[0] for line in re.findall(r"^    .*", picture, re.M)]
    place = {name: i for i, line in enumerate(drawn) for name in re.findall(r"\w+", line)}
    beside = {"simulate", "paper", "simclr", "datasets", "__init__"}
    paths = [path.relative_to(ROOT / "jgram") for path in ROOT.glob("jgram/**/*.py")]
    assert {path.with_suffix("").parts[0] for path in paths} - beside == set(place) - {"jgram"}
    for path in paths:
        layer = path.with_suffix("").parts[0]
        text = (ROOT / "jgram" / path).read_text()
        used = re.findall(r"^from jgram\.(\w+)[\w.]* import", text, re.M)
        below = [name for name in used if place.get(name, -1) > place.get(layer, len(drawn))]
        assert not below, f"{layer} imports {below}"
