"""Results that show themselves, and come back from JSON as they were."""

import dataclasses
import json
from html import escape
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import jgram
from jgram import display, results
from jgram.annotators import answers_from_columns, infer_labels
from jgram.issues import label_issues
from jgram.report import compare
from tests.refusals import refused
from tests.schemas import made_schema

SCHEMAS = Path(jgram.__file__).parent / "schemas"
KINDS = ("score", "ranking", "pair", "issues", "annotators", "labels")


def schema_text(name):
    return json.dumps(made_schema(name), indent=1) + "\n"


@pytest.fixture(scope="module")
def found():
    """One result of each kind, class names that are ints, names that want escaping."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, 240)  # sizes for which other tests have compiled the programs

    def noisy(share):
        return np.where(rng.random(240) < share, rng.integers(0, 3, 240), truth)

    reports = {
        "<b>ann</b>\x1b": noisy(0.1),
        "bob\x1b[2J": noisy(0.5),
        "coin": rng.permutation(truth),
    }
    seen = np.array(["low", "mid", "high"])[noisy(0.1)]
    right = rng.integers(0, 2, (300, 1))
    said = np.where(rng.random((300, 5)) < [0.02, 0.1, 0.2, 0.3, 0.4], 1 - right, right)
    said[:, 2] = 1
    item, who = (part.ravel() for part in np.indices(said.shape))
    names = np.array(["ann", "bob", "cyd", "dan", "<eve>"])
    answers = answers_from_columns(item, names[who], said.ravel())
    return {
        "score": jgram.score(noisy(0.1), seen, name="<b>ann</b>"),
        "ranking": jgram.rank_reports(reports, seen),
        "pair": compare(reports["<b>ann</b>\x1b"], reports["coin"], seen, names=("<b>ann", "b")),
        "issues": suspicious(truth, noisy(0.2)),
        "annotators": jgram.rank_annotators(answers),
        "labels": infer_labels(answers),
    }


def suspicious(truth, labels):
    """Label issues where 4 of 240 records have no label, and somebody checked two."""
    given = [None if row % 60 == 7 else int(label) for row, label in enumerate(labels)]
    seen = truth + np.random.default_rng(0).normal(0, 0.3, 240)
    return label_issues(given, seen, name="<b>ann</b>", checked={1: True, 2: False})


def same(one, other):
    """Equal in all fields, arrays in their dtype too."""
    for field in dataclasses.fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype, field.name
            np.testing.assert_array_equal(a, b, field.name)
        else:
            assert a == b, field.name
            assert repr(a) == repr(b), field.name
    assert type(one) is type(other)


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_comes_back_from_json_as_it_was(found, kind, tmp_path):
    text = found[kind].to_json()
    (tmp_path / "result.json").write_text(text, encoding="utf-8")
    for source in (text, tmp_path / "result.json", str(tmp_path / "result.json"), json.loads(text)):
        same(found[kind], jgram.load(source))
    assert json.loads(text)["schema"] == f"jgram/{kind}/1"
    jsonschema.validate(json.loads(text), jgram.schema(kind))


def test_numbers_that_are_not_finite_come_back(found):
    (first, *_), nothing = found["annotators"].annotators, float("-inf")
    reading = dataclasses.replace(first.determinant, value=float("nan"), low=nothing)
    odd = dataclasses.replace(
        found["annotators"], annotators=(dataclasses.replace(first, determinant=reading),)
    )
    text = odd.to_json()
    jsonschema.validate(json.loads(text), jgram.schema("annotators"))
    back = jgram.load(text).annotators[0].determinant
    assert np.isnan(back.value)
    assert back.low == nothing


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_shows_itself(found, kind):
    result = found[kind]
    shown, page = str(result), result._repr_html_()
    told = display.conclusion_of(result.view())
    assert display.visible(told) in shown.splitlines()
    assert f"<b>{escape(display.visible(told))}</b>" in page
    assert "\x1b" not in shown + page
    assert "<b>ann" not in page
    assert "<script" not in page
    assert len(page) < 20_000
    frame, other = result.to_frame("pandas"), result.to_frame("polars")
    assert list(frame.columns) == other.columns
    sizes = {"score": 1, "ranking": 3, "pair": 1, "issues": 236, "labels": 300}
    assert len(frame) == len(other) == sizes.get(kind, 5)
    if kind == "labels":  # has no picture
        return
    drawing = result.plot()
    assert drawing._repr_png_().startswith(b"\x89PNG")  # a notebook shows it
    assert drawing.axes[0].has_data()


def test_the_frame_holds_the_numbers(found):
    ranking, frame = found["ranking"], found["ranking"].to_frame("pandas")
    assert frame["report"].tolist() == [report.name for report in ranking.reports]
    low, _ = ranking.reports[1].keeps_interval
    assert frame["keeps_low"][1] == low
    assert np.isnan(frame["keeps"][2]) == (ranking.reports[2].keeps is None)
    issues, frame = found["issues"], found["issues"].to_frame("polars")
    assert frame["row"].to_list() == issues.order.tolist()
    assert frame["wrong"].is_sorted(descending=True)
    assert frame["label"].to_list() == [issues.classes[k] for k in issues.labels[issues.order]]


def test_frames_need_a_library(found, monkeypatch):
    def absent(name):
        raise ImportError(name)

    assert "expected one of pandas, polars, pyarrow" in refused(found["score"].to_frame, "dask")
    monkeypatch.setattr(display, "import_module", absent)
    assert "pandas, polars or pyarrow: pip install" in refused(found["score"].to_frame)
    assert "to_frame takes narwhals and polars" in refused(found["score"].to_frame, "polars")


def test_the_table_needs_neither_rich_nor_typer(found):
    """Widths of names in other scripts as rich counts them, which is not imported."""
    from rich.cells import cell_len

    for text in ("三つの病院", "é", "Jürgen", "ｱ", "한국"):
        assert display.cell_width(text) == cell_len(text), text
    source = Path(display.__file__).read_text()
    assert "rich" not in source.replace("a style of rich", "")


# Versions and refusals ----------------------------------------------------------------------


@pytest.mark.parametrize("name", results.SCHEMAS)
def test_the_schemas_in_the_package_are_those_of_the_classes(name):
    """``python -m tests.test_results`` writes them anew; a change after a release is a version."""
    jsonschema.Draft202012Validator.check_schema(jgram.schema(name))
    assert (SCHEMAS / f"{name}.json").read_text(encoding="utf-8") == schema_text(name)


def test_every_attribute_is_described():
    for name in KINDS:
        found = jgram.schema(name)
        for part in (found, *found["$defs"].values()):
            for key, value in part["properties"].items():
                if key not in {"schema", "source", "by_class", "records", "cells"}:
                    told = "description" in value or "$ref" in value
                    assert told or name == "annotators", (name, key)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": "jgram/ranking/99"}, "expected jgram/ranking/1, got jgram/ranking/99: update"),
        ({"schema": "jgram/ranking/0"}, "got jgram/ranking/0: make it again"),
        ({"schema": "jgram/ranking/x"}, "got jgram/ranking/x: make it again"),
        ({"schema": None}, "expected one of jgram/score/1, jgram/ranking/1"),
        ({"schema": ["a"]}, "expected one of jgram/score/1"),
        ({"schema": "jgram/demo/2"}, "expected jgram/demo/1, got jgram/demo/2: update"),
        ({"reports": 3}, "jgram/ranking/1: reports: expected a list, got 3"),
        ({"reports": ["a"]}, "reports: expected an object, got 'a'"),
        ({"reports": [{}]}, "reports: name: expected a value, got none"),
        ({"confidence": "95%"}, "jgram/ranking/1: confidence: expected a number, got '95%'"),
        ({"num_classes": True}, "num_classes: expected a whole number, got True"),
        ({"num_records": "many"}, "num_records: expected a number, got 'many'"),
        ({"observations": [1]}, "observations: expected a text, got [1]"),
        ({"confidence": float("nan")}, "confidence: expected a number from 0 to 1, got nan"),
        ({"confidence": None}, "confidence: expected a number, got null without"),
        ({"confidence": None, "confidence_reason": "NaN"}, "from 0 to 1, got nan"),
        ({"seen": None, "seen_reason": "3"}, "seen_reason: expected NaN or Infinity"),
        ({"num_records": -5}, "num_records: expected a number from 0 to inf, got -5"),
        ({"block_length": -1}, "block_length: expected a number from 0"),
        ({"reports": "long" * 100}, "expected a list, got 'longlong"),
    ],
)
def test_what_is_not_a_result_is_refused_in_one_line(found, change, words):
    record = json.loads(found["ranking"].to_json()) | change
    assert words in refused(jgram.load, record)


def test_what_is_not_json_is_refused(tmp_path):
    assert "expected JSON of a result" in refused(jgram.load, "{nothing")
    assert "NaN, which JSON has not" in refused(jgram.load, '{"confidence": NaN}')
    assert "recursion" in refused(jgram.load, '{"a":' * 10**5)
    (tmp_path / "bytes.json").write_bytes(b"\xff{")
    assert "expected JSON of a result" in refused(jgram.load, tmp_path / "bytes.json")
    (tmp_path / "empty.json").touch()
    assert "expected JSON of a result" in refused(jgram.load, tmp_path / "empty.json")
    (tmp_path / "list.json").write_text("[1]")
    assert "expected one of jgram/score/1" in refused(jgram.load, tmp_path / "list.json")
    with pytest.raises(FileNotFoundError):
        jgram.load(tmp_path / "nothing.json")
    assert "expected one of score, ranking" in refused(jgram.schema, "rank")
    others = "baseline check demo drift payments plan sequential slices"
    assert {*KINDS, *others.split()} == set(results.SCHEMAS)


def test_a_result_without_its_arrays_is_refused(found):
    record = json.loads(found["issues"].to_json())
    broken = record | {"wrong": [0.5, "half"]}
    assert "jgram/issues/1: wrong: expected a number, got 'half'" in refused(jgram.load, broken)
    assert "wrong: expected a list, got 1" in refused(jgram.load, record | {"wrong": 1})
    assert "interval: expected 2 values, got 1" in refused(jgram.load, record | {"interval": [1]})
    del record["wrong"]
    assert "jgram/issues/1: wrong: expected a value, got none" in refused(jgram.load, record)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(record, jgram.schema("issues"))


if __name__ == "__main__":
    SCHEMAS.mkdir(exist_ok=True)
    for each in results.SCHEMAS:
        (SCHEMAS / f"{each}.json").write_text(schema_text(each), encoding="utf-8")
