"""The door: the same labels written any way give the same codes, wrong ones a message."""

import datetime
import enum
import itertools

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jgram.checks import (
    check_aligned,
    check_observations,
    check_soft_labels,
    drop_missing,
    encode_labels,
    encode_reports,
)

WORDS = ["dog", "cat", "dog", "ant"]
CODES = [2, 1, 2, 0]


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def refused(call, *args, **kwargs) -> str:
    """The one-line message with which the call is refused."""
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z") as info:
        call(*args, **kwargs)
    message = str(info.value)
    return message


# Labels -------------------------------------------------------------------------------------

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


# Observations -------------------------------------------------------------------------------


def test_kinds_are_detected():
    assert check_observations(["a", "b", "a"]).kind == "categorical"
    assert check_observations([True, False]).kind == "categorical"
    assert check_observations(pd.Series([1, 2, 1], dtype="category")).kind == "categorical"
    assert check_observations([1, 2, 1]).kind == "numeric"
    assert check_observations(np.zeros((4, 2, 3)) + np.arange(4)[:, None, None]).kind == "numeric"


def test_outcomes_are_encoded_and_joined_across_columns():
    single = check_observations([7, 3, 7, 3], kind="categorical")
    assert (single.values.tolist(), single.names) == ([1, 0, 1, 0], (3, 7))
    assert single.values.dtype == np.int32
    joint = {"sex": ["f", "m", "f", "f"], "site": ["x", "x", "x", "y"]}
    for y in (joint, pd.DataFrame(joint), np.array(list(zip(*joint.values(), strict=True)))):
        observed = check_observations(y)
        assert observed.names == (("f", "x"), ("f", "y"), ("m", "x"))
        assert observed.values.tolist() == [0, 2, 0, 1]
    assert check_observations([0.5, 1.5, 0.5], kind="categorical").names == (0.5, 1.5)


@pytest.mark.parametrize(
    "frame",
    [
        {"age": [30, 41], "dose": [0.5, 1.0]},
        pd.DataFrame({"age": [30, 41], "dose": [0.5, 1.0]}, index=[5, 2]),
        pd.DataFrame({"age": [30, 41], "dose": [0.5, 1.0]}).convert_dtypes(),
        pl.DataFrame({"age": [30, 41], "dose": [0.5, 1.0]}),
        pa.table({"age": [30, 41], "dose": [0.5, 1.0]}),
    ],
    ids=["mapping", "pandas", "pandas nullable", "polars", "arrow"],
)
def test_frames_are_stacked_with_their_names(frame):
    observed = check_observations(frame)
    np.testing.assert_array_equal(observed.values, [[30, 0.5], [41, 1]])
    assert observed.names == ("age", "dose")


def test_blocks_and_columns_are_stacked():
    block = np.arange(6.0).reshape(3, 2)
    observed = check_observations({"image": block, "age": [1, 2, 4]})
    assert observed.names == ("image[0]", "image[1]", "age")
    np.testing.assert_array_equal(observed.values, np.column_stack([block, [1, 2, 4]]))


def test_floats_keep_their_width_and_inputs_are_not_changed():
    single = np.array([1, 2, 4], np.float32)
    assert check_observations(single).values.dtype == np.float32
    assert check_observations([1, 2, 4]).values.dtype == np.float64
    assert check_observations(jnp.array([1, 2], jnp.bfloat16)).values.dtype == np.float32
    assert single.tolist() == [1, 2, 4]


@pytest.mark.parametrize(
    ("y", "kind", "parts"),
    [
        ({"age": [1, np.nan]}, "auto", ["age: 1 of 2 values missing", "row 1", "--missing drop"]),
        (np.array([[1, 2], [3, np.nan]]), "auto", ["y[1]: 1 values missing", "row 1"]),
        ({"age": [1, 2], "dose": [1, np.inf]}, "auto", ["dose: expected finite", "inf in row 1"]),
        ([1.0, 1e30], "auto", ["1e+30 in row 1", "rescale"]),
        (["a", None], "auto", ["1 of 2 values missing"]),
        (["1,234", "5"], "numeric", ["'1,234'", "--thousands"]),
        ({"age": [1, 2], "sex": ["f", "m"]}, "auto", ["sex: cannot mix", "age", "--bins"]),
        ([], "auto", ["at least one record"]),
        ({}, "auto", ["at least one column"]),
        ({"a": [1], "b": [1, 2]}, "auto", ["expected 1 records", "got 2"]),
        (np.zeros((2, 2, 2), int), "categorical", ["[n] or [n, k]"]),
        (np.array([1j, 2]), "numeric", ["expected numbers"]),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "auto", ["distinct column names"]),
        ("abc", "auto", ["got str"]),
    ],
)
def test_wrong_observations_are_refused(y, kind, parts):
    message = refused(check_observations, y, kind=kind)
    assert [part for part in parts if part not in message] == [], message


PROBABILITIES = np.array([[0.25, 0.75], [0.5, 0.5]])


def test_probabilities_pass_within_rounding():
    check = check_observations(PROBABILITIES + np.array([[9e-7, 0], [0, 0]]), kind="probability")
    assert check.kind == "probability"
    assert check_soft_labels(PROBABILITIES.astype(np.float32)).dtype == np.float32
    np.testing.assert_array_equal(check_soft_labels(pd.DataFrame(PROBABILITIES)), PROBABILITIES)


@pytest.mark.parametrize(
    ("values", "part"),
    [
        (PROBABILITIES / 2, "sum to 1, got 0.5 in row 0: divide by the row sums"),
        (PROBABILITIES * 100, "got 100 in row 0: percentages"),
        (PROBABILITIES + np.array([[3e-6, 0], [0, 0]]), "sum to 1"),
        (np.array([[0.5, 0.5], [1 + 1e-9, -1e-9]]), "got -1e-09 in row 1: clip"),
        (np.array([[2.0, -3.0], [0.1, 0.2]]), "logits"),
        (np.array([[0.5, np.nan], [0.5, 0.5]]), "missing"),
        (np.array([0.2, 0.8]), "np.stack([1 - p, p], axis=1)"),
    ],
)
def test_rows_that_are_not_probabilities_are_told_apart(values, part):
    assert part in refused(check_soft_labels, values)


def test_the_refusals_of_probabilities_are_distinct():
    wrong = [PROBABILITIES / 2, np.full((2, 2), np.nan), PROBABILITIES - 1e-9, PROBABILITIES * -9]
    wrong[2] = np.array([[1 + 1e-9, -1e-9]])
    messages = [refused(check_soft_labels, values) for values in wrong]
    assert all(a[:40] != b[:40] for a, b in itertools.combinations(messages, 2))


def test_soft_labels_have_a_column_for_each_class():
    assert "per class, 3, got 2" in refused(check_soft_labels, PROBABILITIES, num_classes=3)


def test_columns_that_say_nothing_are_warned_of():
    (warning,) = check_observations({"age": [1, 2], "site": [5, 5]}).warnings
    assert "site" in warning
    assert "age" not in warning
    assert "every record" in check_observations(["a", "a"]).warnings[0]
    assert "hardly repeat" in check_observations(list("abcd")).warnings[0]
    assert not check_observations(list("abab")).warnings


# Alignment and missing records --------------------------------------------------------------


def test_pandas_indexes_must_agree():
    x_hat, y = pd.Series([0, 1, 2]), pd.Series([1.0, 2.0, 3.0])
    assert check_aligned({"x_hat": x_hat, "y": y}) == 3
    assert check_aligned({"x_hat": x_hat.sample(frac=1, random_state=1), "y": y.to_numpy()}) == 3
    assert "another order" in refused(check_aligned, {"x_hat": x_hat, "y": y[::-1]})
    assert "differs from" in refused(
        check_aligned, {"x_hat": x_hat, "y": y.set_axis([1, 2, 3]), "z": [0, 1, 2]}
    )


def test_lengths_must_agree():
    assert "y: expected 2 records as in x_hat, got 3" in refused(
        check_aligned, {"x_hat": [0, 1], "y": np.zeros((3, 4))}
    )
    assert refused(check_aligned, {}).startswith("expected at least one column")


@pytest.mark.parametrize(
    "y",
    [
        [1.0, None, 3.0, 4.0],
        np.array([[1, 1], [2, np.nan], [3, 3], [4, 4]]),
        pd.Series([1, None, 3, 4], dtype="Int64"),
        pl.Series([1, None, 3, 4]),
        pa.chunked_array([[1, None], [3, 4]]),
        {"a": [1, None, 3, 4], "b": [5, 6, 7, 8]},
        pd.DataFrame({"a": [1, None, 3, 4], "b": [5, 6, 7, 8]}),
        pl.DataFrame({"a": [1, None, 3, 4], "b": [5, 6, 7, 8]}),
        pa.table({"a": [1, None, 3, 4], "b": [5, 6, 7, 8]}),
    ],
    ids=lambda y: f"{type(y).__module__.split('.')[0]} {type(y).__name__}",
)
def test_incomplete_records_are_dropped_from_all_columns(y):
    columns, rows = drop_missing({"x_hat": ["a", "b", None, "c"], "y": y})
    assert rows.tolist() == [0, 3]
    assert encode_labels(columns["x_hat"]).classes == ("a", "c")
    values = check_observations(columns["y"]).values.reshape(2, -1)
    assert values[:, 0].tolist() == [1, 4]


def test_dropping_keeps_declared_categories_and_refuses_an_empty_rest():
    labels = pd.Series(pd.Categorical(["a", None], categories=["a", "b"]))
    columns, _ = drop_missing({"x_hat": labels})
    assert encode_labels(columns["x_hat"]).classes == ("a", "b")
    assert "every one of the 2" in refused(drop_missing, {"x": [None, "a"], "y": [1.0, np.nan]})
