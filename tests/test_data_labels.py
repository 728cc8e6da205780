"""The door for reports: the same labels written any way give the same codes, or a message."""

import datetime
import enum

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


WORD_CONTAINERS = {
    "list": WORDS,
    "tuple": tuple(WORDS),
    "numpy unicode": np.array(WORDS),
    "numpy object": np.array(WORDS, object),
    "numpy bytes": np.array(WORDS, "S"),
    "numpy string": np.array(WORDS, np.dtypes.StringDType()),
    "pandas": pd.Series(WORDS),
    "pandas object": pd.Series(WORDS, dtype=object),
    "pandas arrow": pd.Series(WORDS, dtype="string[pyarrow]"),
    "pandas category": pd.Series(WORDS, dtype="category"),
    "pandas categorical": pd.Categorical(WORDS),
    "pandas index": pd.Index(WORDS),
    "pandas shifted index": pd.Series(WORDS, index=[7, 3, 9, 1]),
    "polars": pl.Series(WORDS),
    "polars categorical": pl.Series(WORDS, dtype=pl.Categorical),
    "arrow": pa.array(WORDS),
    "arrow chunks": pa.chunked_array([WORDS[:1], WORDS[1:]]),
    "arrow dictionary": pa.array(WORDS).dictionary_encode(),
}


@pytest.mark.parametrize("labels", WORD_CONTAINERS.values(), ids=WORD_CONTAINERS)
def test_names_become_codes_and_are_kept(labels):
    encoded = encode_labels(labels)
    assert encoded.codes.dtype == np.int32
    assert encoded.codes.tolist() == CODES
    assert encoded.classes == ("ant", "cat", "dog")
    assert all(type(label) is str for label in encoded.classes)
    assert encoded.rows.tolist() == [0, 1, 2, 3]
    assert not encoded.warnings


INT_CONTAINERS = {
    **{str(np.dtype(t)): np.array(CODES, t) for t in "bBhHiIlLqQfd"},
    "float16": np.array(CODES, np.float16),
    "list": CODES,
    "list of floats": [float(x) for x in CODES],
    "list of scalars": list(np.array(CODES)),
    "list of arrays": list(jnp.array(CODES)),
    "jax": jnp.array(CODES),
    "jax bfloat16": jnp.array(CODES, jnp.bfloat16),
    "pandas": pd.Series(CODES),
    "pandas nullable": pd.Series(CODES, dtype="Int64"),
    "pandas arrow": pd.Series(CODES, dtype="int64[pyarrow]"),
    "polars": pl.Series(CODES),
    "arrow": pa.array(CODES),
}


@pytest.mark.parametrize("labels", INT_CONTAINERS.values(), ids=INT_CONTAINERS)
def test_ints_of_any_width_keep_their_codes(labels):
    encoded = encode_labels(labels, num_classes=3)
    assert encoded.codes.tolist() == CODES
    assert encoded.classes == (0, 1, 2)
    assert all(type(label) is int for label in encoded.classes)


@pytest.mark.parametrize(
    "labels",
    [
        [True, True],
        np.array([True, True]),
        pd.Series([True, True], dtype="boolean"),
        pl.Series([True, True]),
        pa.array([True, True]),
        jnp.array([True, True]),
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_bools_have_two_classes_reported_or_not(labels):
    encoded = encode_labels(labels)
    assert encoded.classes == (False, True)
    assert encoded.codes.tolist() == [1, 1]


def test_declared_categories_keep_order_and_absent_classes():
    labels = pd.Series(pd.Categorical(["b", "a"], categories=["b", "z", "a"]))
    assert encode_labels(labels).classes == ("b", "z", "a")
    assert encode_labels(labels).codes.tolist() == [0, 2]
    assert encode_labels(pl.Series(["b"], dtype=pl.Enum(["z", "b"]))).classes == ("z", "b")


def test_polars_categorical_pool_of_other_columns_adds_no_classes():
    pl.Series(["zebra", "yak"], dtype=pl.Categorical)
    assert encode_labels(pl.Series(["b", "a"], dtype=pl.Categorical)).classes == ("a", "b")


def test_other_hashables_are_classes():
    assert encode_labels([Colour.RED, Colour.BLUE, Colour.RED]).codes.tolist() == [0, 1, 0]
    days = [datetime.datetime(2020, 2, 1), datetime.datetime(2020, 1, 1)]
    for dates in (days, pd.Series(pd.to_datetime(days)), np.array(days, "datetime64[ns]")):
        assert encode_labels(dates).codes.tolist() == [1, 0]
        assert encode_labels(dates).classes == (days[1], days[0])
    ranges = pd.cut(pd.Series([1, 5, 9]), 3)
    assert encode_labels(ranges).codes.tolist() == [0, 1, 2]


def test_absent_class_stays_a_class():
    assert encode_labels([0, 1, 1], num_classes=3).classes == (0, 1, 2)
    assert encode_labels(["a"], classes=["b", "a"]).codes.tolist() == [1]


def test_constant_report_is_encoded():
    assert encode_labels(["same"] * 3).classes == ("same",)


def test_large_ids_are_factorised_on_the_host():
    ids = [2**63 + 1, 2**63, 2**63 + 1]
    for labels in (ids, np.array(ids, np.uint64), [2**80, 5, 2**80]):
        encoded = encode_labels(labels)
        assert encoded.codes.tolist() == [1, 0, 1]
        assert encoded.classes == tuple(sorted(set(np.asarray(labels, object))))


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series([2**53, None, 2**53 + 1], dtype="Int64"),
        pd.Series([2**53, None, 2**53 + 1], dtype="int64[pyarrow]"),
        pl.Series([2**53, None, 2**53 + 1]),
        pa.array([2**53, None, 2**53 + 1]),
    ],
    ids=["pandas", "pandas arrow", "polars", "arrow"],
)
def test_nulls_do_not_merge_large_ids(labels):
    encoded = encode_labels(labels, missing="drop")
    assert encoded.classes == (2**53, 2**53 + 1)
    assert encoded.rows.tolist() == [0, 2]


MISSING = {
    "None": ["a", None, "b"],
    "NaN among text": ["a", float("nan"), "b"],
    "float NaN": [0.0, np.nan, 1.0],
    "numpy NaN": np.array([0, np.nan, 1]),
    "pandas text": pd.Series(["a", None, "b"]),
    "pandas nullable": pd.Series([0, None, 1], dtype="Int64"),
    "pandas boolean": pd.Series([True, None, False], dtype="boolean"),
    "pandas category": pd.Series(["a", None, "b"], dtype="category"),
    "pandas category codes": pd.Categorical.from_codes([0, -1, 1], categories=["a", "b"]),
    "pandas arrow": pd.Series(["a", None, "b"], dtype="string[pyarrow]"),
    "pandas dates": pd.Series([pd.Timestamp(2000, 1, 1), None, pd.Timestamp(1999, 1, 1)]),
    "polars": pl.Series([0, None, 1]),
    "polars bools": pl.Series([True, None, False]),
    "arrow": pa.array(["a", None, "b"]),
    "jax": jnp.array([0, jnp.nan, 1]),
}


@pytest.mark.parametrize("labels", MISSING.values(), ids=MISSING)
def test_missing_labels_are_counted_and_located_or_dropped(labels):
    message = refused(encode_labels, labels, name="rater")
    assert message.startswith("rater: 1 of 3 labels missing (first in row 1)")
    assert "missing='drop'" in message
    encoded = encode_labels(labels, missing="drop")
    assert sorted(encoded.codes.tolist()) == [0, 1]
    assert encoded.rows.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        ([1, "1", 2], "1 and '1'"),
        ([1.0, "1"], "1.0 and '1'"),
        (["x", 2, "y"], "'x' and 2"),
        ([1, True, 0], "1 and True"),
        (np.array([1, "1"], object), "1 and '1'"),
        (pd.Series(["a", 1]), "'a' and 1"),
        ([Colour.RED, "RED"], "<Colour.RED: 1> and 'RED'"),
    ],
)
def test_mixed_types_are_refused_with_what_would_collide(labels, shown):
    assert f"(such as {shown})" in refused(encode_labels, labels)


@pytest.mark.parametrize(
    ("labels", "options", "parts"),
    [
        ([0, 5, 1], {"num_classes": 3}, ["got 5 in row 1", "0-based"]),
        ([1, 2, 3], {"num_classes": 3}, ["got 3 in row 2", "0-based"]),
        ([0, -1, -1], {"num_classes": 2}, ["got -1 in row 1", "2 such records", "'missing'"]),
        ([0, 1, -1], {}, ["got -1 in row 2", "1 such record)", "'missing'", "classes="]),
        ([0, 1.2], {}, ["got 1.2 in row 1", "--bins"]),
        (np.array([0, np.nan, 1.5]), {"missing": "drop"}, ["got 1.5 in row 2"]),
        ([0, np.inf], {}, ["got inf in row 1"]),
        ([1j, 2], {}, ["complex"]),
        ([], {}, ["at least one label"]),
        (np.array([]), {}, ["at least one label"]),
        ([None, None], {"missing": "drop"}, ["every one of the 2 records"]),
        (["cat", "dgo"], {"classes": ["cat", "dog"]}, ["'dgo' in row 1", "did you mean 'dog'"]),
        ([0, 1], {"classes": ["0", "1"]}, ["got 0 in row 0"]),
        ([0, 1], {"classes": [0, 1, 0]}, ["distinct"]),
        ([0, 1], {"classes": [0, 1], "num_classes": 3}, ["expected 2", "got 3"]),
        (["a", "b"], {"num_classes": 3}, ["'a', 'b'", "got 3", "classes="]),
        ([0, 1], {"num_classes": 0}, ["positive"]),
        ([[0, 1], [1, 0]], {}, ["one value per record", "(2, 2)"]),
        (np.zeros((3, 1), int), {}, ["(3, 1)"]),
        ("cat", {}, ["got str"]),
        ({0, 1}, {}, ["got set"]),
        (3, {}, ["got int"]),
        (np.array(3), {}, ["got ndarray"]),
        (pd.DataFrame({"a": [0, 1]}), {}, ["(2, 1)"]),
    ],
)
def test_wrong_labels_are_refused(labels, options, parts):
    message = refused(encode_labels, labels, **options)
    assert [part for part in parts if part not in message] == [], message


def test_negative_labels_are_classes_where_listed():
    assert encode_labels([-1, 1, -1], classes=[-1, 1]).codes.tolist() == [0, 1, 0]
    assert encode_labels(pd.Series([-1, 1], dtype="category")).classes == (-1, 1)


@pytest.mark.parametrize(
    ("labels", "warning"),
    [
        (["NA", "FR"], "'NA' is read as a class name"),
        (np.array(["a", np.nan]), "'nan' is read as a class name"),
        (["cat", "Cat "], "'Cat ' and 'cat' differ only in case or spaces"),
    ],
)
def test_suspicious_names_are_warned_of(labels, warning):
    assert any(warning in w for w in encode_labels(labels).warnings)


def test_reports_share_one_class_set():
    encoded = encode_reports({"ann": ["a", "b", "b"], "bob": ["c", "b", "b"]})
    assert encoded.classes == ("a", "b", "c")
    assert encoded.codes["ann"].tolist() == [0, 1, 1]
    assert encoded.codes["bob"].tolist() == [2, 1, 1]


def test_reports_drop_records_that_any_of_them_misses():
    encoded = encode_reports(
        {"ann": ["a", None, "b", "a"], "bob": ["a", "b", "b", None]}, missing="drop"
    )
    assert encoded.codes["bob"].tolist() == [0, 1]
    assert encoded.rows.tolist() == [0, 2]


def test_reports_of_different_types_lengths_or_rows_are_refused():
    assert "ann, bob: expected values of one type" in refused(
        encode_reports, {"ann": [0, 1], "bob": ["0", "1"]}
    )
    assert "bob: expected 2 records as in ann, got 3" in refused(
        encode_reports, {"ann": [0, 1], "bob": [0, 1, 1]}
    )
    shuffled = pd.Series([0, 1], index=[1, 0])
    assert "another order" in refused(encode_reports, {"a": pd.Series([0, 1]), "b": shuffled})


@given(st.permutations(list(range(6))), st.permutations(WORDS))
def test_order_of_records_does_not_change_the_classes(order, words):
    labels = np.array([*words, "bee", "cow"])
    encoded, moved = encode_labels(labels), encode_labels(labels[list(order)])
    assert moved.classes == encoded.classes
    assert moved.codes.tolist() == encoded.codes[list(order)].tolist()
