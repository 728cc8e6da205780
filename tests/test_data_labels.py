"""The door for reports: the same labels written any way give the same codes, or a message."""

import datetime
import enum
from decimal import Decimal
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jgram.data import encode_labels, encode_reports
from tests.refusals import refused

WORDS = ["dog", "cat", "dog", "ant"]
CODES = [2, 1, 2, 0]


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


CONTAINERS = {  # tests/test_fuzz.py has what is usual
    "numpy unicode": np.array(WORDS),
    "numpy bytes": np.array(WORDS, "S"),
    "numpy string": np.array(WORDS, np.dtypes.StringDType()),
    "pandas object": pd.Series(WORDS, dtype=object),
    "pandas arrow": pd.Series(WORDS, dtype="string[pyarrow]"),
    "pandas index": pd.Index(WORDS),
    "pandas shifted index": pd.Series(WORDS, index=[7, 3, 9, 1]),
    **{str(np.dtype(t)): np.array(CODES, t) for t in "bBhHiIlLqQefd"},
    "list of scalars": list(np.array(CODES)),
    "list of arrays": list(jnp.array(CODES)),
    "fractions": [Fraction(x) for x in CODES],
    "floats among ints": [2.0, 1, 2, np.float32(0)],
    "arrow decimals": pa.array([Decimal(x) for x in CODES]),
    "polars decimals": pl.Series([Decimal(x) for x in CODES]),
    "jax": jnp.array(CODES),
    "jax bfloat16": jnp.array(CODES, jnp.bfloat16),
    "pandas arrow ints": pd.Series(CODES, dtype="int64[pyarrow]"),
}


@pytest.mark.parametrize("labels", CONTAINERS.values(), ids=CONTAINERS)
def test_names_become_codes_and_are_kept(labels):
    encoded = encode_labels(labels)
    assert encoded.codes.dtype == np.int32
    assert encoded.codes.tolist() == CODES
    assert encoded.classes in (("ant", "cat", "dog"), (0, 1, 2))
    assert {type(label) for label in encoded.classes} in ({str}, {int})
    assert encoded.rows.tolist() == [0, 1, 2, 3]
    assert not encoded.warnings


@given(st.permutations(list(range(6))), st.permutations(WORDS))
def test_order_of_records_does_not_change_the_classes(order, words):
    labels = np.array([*words, "bee", "cow"])
    encoded, moved = encode_labels(labels), encode_labels(labels[list(order)])
    assert moved.classes == encoded.classes
    assert moved.codes.tolist() == encoded.codes[list(order)].tolist()


def test_declared_categories_and_absent_classes_stay():
    pl.Series(["zebra", "yak"], dtype=pl.Categorical)  # a pool that others share
    for labels, options, classes in (
        (pd.Series(pd.Categorical(["b", "a"], categories=["b", "z", "a"])), {}, ("b", "z", "a")),
        (pl.Series(["b"], dtype=pl.Enum(["z", "b"])), {}, ("z", "b")),
        *(
            (made([True, True]), {}, (False, True))
            for made in (list, np.array, pd.Series, pl.Series, pa.array, jnp.array)
        ),
        (pd.Series([True], dtype="boolean"), {}, (False, True)),
        (pl.Series(["b", "a"], dtype=pl.Categorical), {}, ("a", "b")),
        (range(1, -1, -1), {"num_classes": 3}, (0, 1, 2)),
        (["a"], {"classes": ["b", "a"]}, ("b", "a")),
        (["same"] * 3, {}, ("same",)),
        (pd.Series([-1, 1], dtype="category"), {}, (-1, 1)),
        ([-1, 1, -1], {"classes": [-1, 1]}, (-1, 1)),
        ([-1, 0], {"num_classes": 2, "abstain": -1}, (0, 1, -1)),
        (["yes", "?", "no"], {"abstain": "?"}, ("no", "yes", "?")),
    ):
        encoded = encode_labels(labels, **options)
        assert encoded.classes == classes
        assert [encoded.classes[code] for code in encoded.codes] == pd.Series(labels).tolist()


def test_other_hashables_are_classes():
    assert encode_labels([Colour.RED, Colour.BLUE, Colour.RED]).codes.tolist() == [0, 1, 0]
    days = [datetime.datetime(2020, 2, 1), datetime.datetime(2020, 1, 1)]
    for dates in (days, pd.Series(pd.to_datetime(days)), np.array(days, "datetime64[ns]")):
        assert encode_labels(dates).codes.tolist() == [1, 0]
        assert encode_labels(dates).classes == (days[1], days[0])
    ranges = pd.cut(pd.Series([1, 5, 9]), 3)
    assert encode_labels(ranges).codes.tolist() == [0, 1, 2]


def test_large_ids_are_told_apart_beside_gaps_too():
    ids = [2**63 + 1, 2**63, 2**63 + 1]
    for labels in (ids, np.array(ids, np.uint64), [2**80, 5, 2**80]):
        encoded = encode_labels(labels)
        assert encoded.codes.tolist() == [1, 0, 1]
        assert encoded.classes == tuple(sorted(set(np.asarray(labels, object))))
    values = [2**53, None, 2**53 + 1]
    nullable = (pd.Series(values, dtype=kind) for kind in ("Int64", "int64[pyarrow]"))
    for labels in (pl.Series(values), pa.array(values), *nullable):
        assert encode_labels(labels, missing="drop").classes == (2**53, 2**53 + 1)


MISSING = {
    "None": ["a", None, "b"],
    "NaN among text": ["a", float("nan"), "b"],
    "float NaN": [0.0, np.nan, 1.0],
    "numpy NaN": np.array([0, np.nan, 1]),
    "pandas nullable": pd.Series([0, None, 1], dtype="Int64"),
    "pandas boolean": pd.Series([True, None, False], dtype="boolean"),
    "pandas category": pd.Series(["a", None, "b"], dtype="category"),
    "pandas category codes": pd.Categorical.from_codes([0, -1, 1], categories=["a", "b"]),
    "pandas arrow": pd.Series(["a", None, "b"], dtype="string[pyarrow]"),
    "pandas dates": pd.Series([pd.Timestamp(2000, 1, 1), None, pd.Timestamp(1999, 1, 1)]),
    "polars": pl.Series([0, None, 1]),
    "polars bools": pl.Series([True, None, False]),
    "arrow chunks of dictionaries": pa.chunked_array(
        [pa.array(["a", None]).dictionary_encode(), pa.array(["b"]).dictionary_encode()]
    ),
    "pandas arrow dictionary": pd.Series(["a", None, "b"]).astype(
        pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    ),
    "polars NaN": pl.Series([0.0, float("nan"), 1.0]),
    "masked": np.ma.array([0, 7, 1], mask=[0, 1, 0]),
    "masked text": np.ma.array(["a", "x", "b"], mask=[0, 1, 0]),
    "masked scalar in a list": [0, np.ma.masked, 1],
    "object NA": np.array(["a", pd.NA, "b"], object),
    "Decimal NaN": [Decimal(0), Decimal("nan"), Decimal(1)],
    "jax": jnp.array([0, jnp.nan, 1]),
}


@pytest.mark.parametrize("labels", MISSING.values(), ids=MISSING)
def test_missing_labels_are_counted_and_located_dropped_or_kept(labels):
    message = refused(encode_labels, labels, name="rater")
    assert message.startswith("rater: 1 of 3 labels missing (first in row 1)")
    assert "missing='drop'" in message
    encoded = encode_labels(labels, missing="drop")
    assert sorted(encoded.codes.tolist()) == [0, 1]
    assert encoded.rows.tolist() == [0, 2]
    kept = encode_labels(labels, missing="keep")
    assert kept.codes.tolist() == [encoded.codes[0], -1, encoded.codes[1]]
    assert kept.rows.tolist() == [0, 1, 2]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("labels", "options", "parts"),
    [
        ([1, "1", 2], {}, ["(such as 1 and '1')"]),
        ([1.0, "1"], {}, ["(such as 1.0 and '1')"]),
        (["x", 2, "y"], {}, ["(such as 'x' and 2)"]),
        ([1, True, 0], {}, ["(such as 1 and True)"]),
        (np.array([1, "1"], object), {}, ["(such as 1 and '1')"]),
        (pd.Series(["a", 1]), {}, ["(such as 'a' and 1)"]),
        ([Colour.RED, "RED"], {}, ["(such as <Colour.RED: 1> and 'RED')"]),
        ([0, 5, 1], {"num_classes": 3}, ["got 5 in row 1", "0-based"]),
        ([1, 2, 3], {"num_classes": 3}, ["got 3 in row 2", "0-based"]),
        ([0, -1, -1], {"num_classes": 2}, ["got -1 in row 1", "2 such records", "'missing'"]),
        ([0, 1, -1], {}, ["got -1 in row 2", "1 such record)", "classes=", "abstain="]),
        ([0, 1.2], {}, ["got 1.2 in row 1", "--bins"]),
        ([Decimal(0), Decimal("0.5")], {}, ["got 0.5 in row 1"]),
        (np.array([0, np.nan, 1.5]), {"missing": "drop"}, ["got 1.5 in row 2"]),
        ([0, np.inf], {}, ["got inf in row 1"]),
        ([1j, 2], {}, ["complex"]),
        ([], {}, ["at least one label"]),
        (np.array([]), {}, ["at least one label"]),
        ([None, None], {"missing": "drop"}, ["every one of the 2 records"]),
        ([None, None], {"missing": "keep"}, ["every one of the 2 records"]),
        (["cat", "dgo"], {"classes": ["cat", "dog"]}, ["'dgo' in row 1", "did you mean 'dog'"]),
        ([0, 1], {"classes": ["0", "1"]}, ["got 0 in row 0"]),
        ([0, 1], {"classes": [0, 1, 0]}, ["distinct"]),
        ([0, 1], {"classes": [0, 1], "num_classes": 3}, ["expected 2", "got 3"]),
        (["a", "b"], {"num_classes": 3}, ["'a', 'b'", "got 3", "classes="]),
        ([[0, 1], [1, 0]], {}, ["one value per record", "(2, 2)"]),
        (np.array([[0], [1], [1]]), {}, ["(3, 1): take its only column, [:, 0]"]),
        ("cat", {}, ["got str"]),
        ({0, 1}, {}, ["got set"]),
        (3, {}, ["got int"]),
        (np.array(3), {}, ["got ndarray"]),
        ((x for x in "ab"), {}, ["got generator"]),
        (pd.DataFrame({"a": [0, 1]}), {}, ["(2, 1)"]),
        ([[0, 1], [1]], {}, ["2 values in row 0 and 1 in row 1"]),
        ([[0, 1], 1], {}, ["2 values in row 0 and one value in row 1"]),
        ([{"a": 1}, {"a": 2}], {}, ["got records such as {'a': 1} in row 0"]),
        (pd.Series([{"a": 1}, {"a": 2}]), {}, ["records"]),
        (pl.Series([{"a": 1}, {"a": 2}]), {}, ["struct"]),
        (pl.Series([[1, 2], [1, 2]]), {}, ["(2, 2)"]),
        (pl.Series([[1, 2], [1]]), {}, ["2 values in row 0"]),
        ([{1}, {2}], {}, ["got set such as {1}"]),
        (np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), {}, ["records of a, b"]),
        (np.array([b"\xff", b"a"]), {}, ["UTF-8"]),
        *(([0, 1, 1], options, [part]) for options, part in (
            ({"missing": "Drop"}, "'raise', 'drop' or 'keep', got 'Drop'"),
            ({"classes": [0, 1, None]}, "expected labels, got 0, 1, None"),
            ({"classes": []}, "got none"),
            ({"classes": "01"}, "expected a list of labels, got '01'"),
            ({"classes": 2}, "expected a list of labels, got 2"),
            ({"num_classes": 2.5}, "positive int, got 2.5"),
            ({"num_classes": True}, "positive int, got True"),
            ({"num_classes": 0}, "positive int, got 0"),
        )),
    ],
)  # fmt: skip
def test_wrong_labels_are_refused(labels, options, parts):
    message = refused(encode_labels, labels, **options)
    assert [part for part in parts if part not in message] == [], message


def test_reports_share_one_class_set():
    encoded = encode_reports({"ann": ["a", "b", "b"], "Ann": ["c", "b", "b"]})
    assert encoded.classes == ("a", "b", "c")
    assert encoded.codes["ann"].tolist() == [0, 1, 1]
    assert encoded.codes["Ann"].tolist() == [2, 1, 1]
    assert "reports 'ann' and 'Ann' differ only in case or spaces" in encoded.warnings
    columns = {"ann": ["a", "b"], "bob": ["b", None]}
    for frame in (pd.DataFrame, pl.DataFrame, pa.table, pl.LazyFrame):
        encoded = encode_reports(frame(columns), missing="keep")
        found = {name: codes.tolist() for name, codes in encoded.codes.items()}
        assert found == {"ann": [0, 1], "bob": [1, -1]}


@pytest.mark.parametrize(
    ("reports", "part"),
    [
        ({"ann": [0, 1], "bob": ["0", "1"]}, "ann, bob: expected values of one type"),
        ({"ann": [0, 1], "bob": [0, 1, 1]}, "bob: expected 2 records as in ann, got 3"),
        ({"a": pd.Series([0, 1]), "b": pd.Series([0, 1], index=[1, 0])}, "another order"),
        ({}, "expected at least one"),
        ([["a", "b"], ["b", "a"]], "expected names and labels"),
        (np.zeros((3, 2), int), "expected names and labels"),
        (["a", "b"], "expected names and labels"),
    ],
)
def test_what_are_no_reports_of_the_same_records_is_refused(reports, part):
    assert part in refused(encode_reports, reports)


# Missing labels, abstentions ----------------------------------------------------------------


def test_kept_reports_miss_labels_apart():
    reports = {"ann": ["a", None, "b", "a"], "bob": [None, "b", "b", "a"]}
    encoded = encode_reports(reports, missing="keep")
    assert encoded.codes["ann"].tolist() == [0, -1, 1, 0]
    assert encoded.codes["bob"].tolist() == [-1, 1, 1, 0]
    none = {"ann": ["a", "b"], "bob": [None, None]}
    assert encode_reports(none, missing="keep").codes["bob"].tolist() == [-1, -1]


def test_abstention_is_the_last_class():
    encoded = encode_reports({"rule": [-1, 0, 1, -1], "other": [0, 0, 1, 1]}, abstain=-1)
    assert encoded.classes == (0, 1, -1)
    assert encoded.codes["rule"].tolist() == [2, 0, 1, 2]
    assert encode_labels([-1, 0], classes=[0, 1], abstain=-1).codes.tolist() == [2, 0]


# Columns that cannot be reports -------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "part"),
    [
        ([f"p{j}" for j in range(30)], "every record is its own class: an identifier?"),
        (np.arange(30) * 7, "30 different ones in 30 records"),
        (np.arange(20_000) // 2, "at most 5000 classes, got 10000 in 20000 records"),
        ([f"{j / 7:.3f}" for j in range(30)], "a number: put the column into bins"),
        ([f"{j / 7:.1f}%" for j in range(30)], "a number: put the column into bins"),
    ],
)
def test_columns_that_cannot_be_reports_are_refused_before_anything_is_computed(labels, part):
    assert part in refused(encode_reports, {"id": labels})
    assert len(encode_labels(labels).codes) == len(labels)  # names of anything may be many


def test_many_classes_are_allowed_where_they_are_listed_or_repeat():
    labels = [f"p{j}" for j in range(30)]
    assert len(encode_reports({"x": labels}, classes=labels).classes) == 30
    assert len(encode_reports({"x": np.arange(400) // 2}).classes) == 200
    assert len(encode_reports({"x": ["10%", "20%"] * 30}).classes) == 2


@pytest.mark.parametrize(
    ("classes", "warning"),
    [
        (["caf\u00e9", "cafe\u0301"], "'caf\\xe9' (1) beside 'cafe\\u0301' (1)"),
        (["cat", "cat\u200b"], "'cat\\u200b' (1) beside 'cat' (1)"),
        (["a b", "a\u00a0b"], "nearly equal"),
        (["\uff21", "A"], "nearly equal"),
        (["1", "1.0"], "'1.0' (1) beside '1' (1)"),
        (["10", "1e1"], "nearly equal"),
        (["cat", "Cat "], "class names are nearly equal: 'cat' (1) beside 'Cat ' (1)"),
        (["Building"] * 9 + ["Bulding", "building "], "'building ' (1), 'Bulding' (1) beside 'B"),
        (["hypotension"] + ["hypertension"] * 5, "'hypotension' (1) beside 'hypertension' (5)"),
        (["NA", "FR"], "'NA' is read as a class name"),
        (np.array(["a", np.nan]), "'nan' is read as a class name"),
    ],
)
def test_suspicious_classes_are_pointed_out_in_one_warning(classes, warning):
    (found,) = encode_labels(classes).warnings
    assert warning in found
    assert found.isascii()


def test_classes_that_differ_are_not_pointed_out():
    assert encode_labels(["1", "2", "10", "a", "b", "nano", "\u00e9", "e"]).warnings == ()
    for one, other in (("cat", "car"), ("level 1", "level 2"), ("formal", "normal")):
        assert encode_labels([one] * 9 + [other]).warnings == ()
    assert encode_labels(["Building"] * 4 + ["Bulding"]).warnings == ()


def test_names_are_merged_where_it_is_sure_or_said():
    labels = ["Building"] * 20 + ["Bulding", "building ", "hypertension"] + ["Street"] * 9 + [None]
    reports = {"a": labels, "b": ["Stret"] + ["hypotension"] * 5 + ["Street"] * 27}
    auto = encode_reports(reports, missing="keep", merge="auto")
    assert auto.classes == ("Building", "Street", "hypertension", "hypotension")
    assert auto.codes["a"].tolist() == [0] * 22 + [2] + [1] * 9 + [-1]
    assert auto.codes["b"].tolist() == [1] + [3] * 5 + [1] * 27
    assert auto.warnings == (
        "class names are merged: 'building ' (1), 'Bulding' (1) into 'Building' (20); 'Stret' (1) "
        "into 'Street' (36); class names are nearly equal: 'hypertension' (1) beside "
        "'hypotension' (5)",
    )
    told = {"building ": "House", "Bulding": "House", "Building": "House", "absent": "x"}
    found = encode_reports(reports, missing="keep", merge=told)
    assert found.classes == ("House", "Street", "Stret", "hypertension", "hypotension")
    kept = encode_reports(reports, missing="keep", merge="auto", classes=(*auto.classes, "Stret",
                          "building "))  # fmt: skip
    assert kept.codes["a"][20:22].tolist() == [0, 5]
    two = ["forest"] * 9 + ["forst"] + ["forset"] * 9  # which of two it is, nobody knows
    assert encode_reports({"x": two}, merge="auto").classes == ("forest", "forset", "forst")
    numbers = encode_reports({"x": pd.Categorical([1, 2, 3])}, merge={"2": "1"})
    assert (numbers.classes, numbers.codes["x"].tolist()) == ((1, 3), [0, 0, 1])
    weights = np.array([1.0, 9.0])
    assert encode_reports({"x": ["Forst", "Forest"]}, weights=weights, merge="auto").classes == (
        "Forest",
    )


@pytest.mark.parametrize(
    ("merge", "part"),
    [
        ("all", "merge: expected 'auto' or names by name, got 'all'"),
        ({"ca": "dog"}, "got 'ca': did you mean 'cat'?"),
        ({"cat": "dog", "dog": "fox"}, "expected names to stay, got 'dog' merged itself"),
    ],
)
def test_merges_that_cannot_be_meant_are_refused(merge, part):
    assert part in refused(encode_reports, {"x": ["cat", "dog"]}, merge=merge)


def test_days_and_moments_of_two_reports_are_the_same_classes():
    days = [datetime.date(2020, 1, 1 + i % 3) for i in range(9)]
    moments = [datetime.datetime.combine(day, datetime.time()) for day in days]
    for other in (moments, np.array(days, "datetime64[D]")):
        found = encode_reports({"a": days, "b": other})
        assert found.classes == tuple(moments[:3])
        np.testing.assert_array_equal(found.codes["a"], found.codes["b"])
