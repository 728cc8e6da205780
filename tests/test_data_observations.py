"""The door for observations: one finite array of known kind, or a message."""

from decimal import Decimal
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from jgram.data import check_observations, check_soft_labels, find_leaks
from tests.refusals import refused


def test_kinds_are_detected():
    block = np.zeros((4, 2, 3)) + np.arange(4)[:, None, None]
    texts = ["007", "010", "007"], ["1", "2", "3"], ["1.0", "2.0"] * 3, ["250.1", "V57", "E9"]
    for y, kind in (
        *((each, "categorical") for each in (["a", "b", "a"], [True, False], *texts)),
        (pd.Series([1, 2, 1], dtype="category"), "categorical"),
        *((each, "numeric") for each in ([1, 2, 1], block)),
    ):
        assert check_observations(y).kind == kind


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


def test_frames_blocks_and_columns_are_stacked_with_their_names():
    columns = {"age": [30, 41], "dose": [0.5, 1.0]}
    pandas = pd.DataFrame(columns, index=[5, 2])
    arrow, polars = pa.table(columns), pl.DataFrame(columns)
    for frame in (columns, pandas, pandas.convert_dtypes(), polars, arrow):
        observed = check_observations(frame)
        np.testing.assert_array_equal(observed.values, [[30, 0.5], [41, 1]])
        assert observed.names == ("age", "dose")
    block = np.arange(6.0).reshape(3, 2)
    observed = check_observations({"image": block, "age": [1, 2, 4]})
    assert observed.names == ("image[0]", "image[1]", "age")
    np.testing.assert_array_equal(observed.values, np.column_stack([block, [1, 2, 4]]))


def test_floats_keep_their_width():
    for given, width in (
        (np.array([1, 2, 4], np.float32), np.float32), ([1, 2, 4], np.float64),
        (jnp.array([1, 2], jnp.bfloat16), np.float32),
    ):  # fmt: skip
        assert check_observations(given).values.dtype == width


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("y", "kind", "parts"),
    [
        ({"age": [1, np.nan]}, "auto", ["age: 1 of 2 values missing", "row 1", "--missing drop"]),
        (np.array([[1, 2], [3, np.nan]]), "auto", ["y[1]: 1 values missing", "row 1"]),
        ({"age": [1, 2], "dose": [1, np.inf]}, "auto", ["dose: expected finite", "inf in row 1"]),
        ([1.0, 1e30], "auto", ["1e+30 in row 1", "rescale"]),
        (["a", None], "auto", ["1 of 2 values missing"]),
        (["1,234", "5"], "numeric", ["'1,234'", "--thousands"]),
        (["1,234", "5"], "auto", ["'1,234' in row 0: its mark may be that of decimals"]),
        ({"age": [1, 2], "sex": ["f", "m"]}, "auto", ["sex: cannot mix", "age", "--bins"]),
        ([["f", 1.5], ["m", 2.5]], "auto", ["y[0]: cannot mix categories with the numbers of y[1"]),
        ([], "auto", ["at least one record"]),
        ({}, "auto", ["at least one column"]),
        (np.zeros((3, 0)), "auto", ["at least one column"]),
        ({"a": [1], "b": [1, 2]}, "auto", ["expected 1 records", "got 2"]),
        (np.zeros((2, 2, 2), int), "categorical", ["[n] or [n, k]"]),
        ([1.0, np.inf, 1.0], "categorical", ["expected finite outcomes, got inf in row 1"]),
        (np.array([1j, 2]), "numeric", ["expected numbers"]),
        (np.array([1j, 2, 1j]), "auto", ["complex"]),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "auto", ["distinct column names"]),
        ("abc", "auto", ["got str"]),
        ([1, 2, 3], "number", ["expected auto, categorical, numeric, probability"]),
        (["19.1%", "20.2%", "7"], "auto", ["got '7' in row 2: it is not written as the others"]),
        (["€ 1.299,99", "€ 2.50", "€ 3,99"], "auto", ["'€ 2.50' in row 1"]),
        (["1,5", None, "2,5", "?"], "auto", ["'?' in row 3"]),
        ([[1.0, 2], [3]], "auto", ["2 values in row 0 and 1 in row 1"]),
        ([{"a": 1}, {"a": 2}], "auto", ["records"]),
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
        (np.array([[0.0], [1.0]]), "[:, 0]"),
        (np.full((2, 3), 1 / 3), "per class, 2, got 3"),
    ],
)
def test_rows_that_are_not_probabilities_are_told_apart(values, part):
    classes = 2 if values.shape == (2, 3) else None
    assert part in refused(check_soft_labels, values, num_classes=classes)


def test_columns_that_say_nothing_are_warned_of():
    (warning,) = check_observations({"age": [1, 2], "site": [5, 5]}).warnings
    assert "site" in warning
    assert "age" not in warning
    assert "every record" in check_observations(["a", "a"]).warnings[0]
    assert "hardly repeat" in check_observations(list("abcd")).warnings[0]
    assert not check_observations(list("abab")).warnings


# Kinds of silence ---------------------------------------------------------------------------


def test_missing_observations_never_become_a_value():
    dictionary = pa.array(["a", None, "b"]).dictionary_encode()
    for y in (
        np.ma.array([1.0, 9.0, 2.0], mask=[0, 1, 0]),
        np.ma.array([[1.0, 2], [9, 9], [2, 3]], mask=[[0, 0], [1, 0], [0, 0]]),
        dictionary,
        {"site": pa.chunked_array([dictionary])},
        pl.Series([1.0, float("nan"), 2.0]),
        np.array([[1.0, 2], [None, 2], [3, 4]], object),
    ):
        assert "missing (first in row 1)" in refused(check_observations, y)


def test_objects_that_are_numbers_are_numbers():
    decimals = [Decimal("1.5"), Decimal("2.5"), Decimal(4)]
    for y in (
        *(made(decimals) for made in (list, np.array, pa.array, pl.Series, pd.Series)),
        np.array([1.5, 2.5, 4], object),
        np.array([[1.5], [2.5], [4]], object),
        [1.5, Fraction(5, 2), 4],
    ):
        observed = check_observations(y)
        assert observed.kind == "numeric"
        assert observed.values.ravel().tolist() == [1.5, 2.5, 4]


def test_object_blocks_are_columns_of_their_own():
    mixed = np.array([["f", True], ["m", False], ["f", True]], object)
    assert check_observations(mixed).names == (("f", True), ("m", False))
    assert check_observations([["f", "x"], ["m", "y"]]).names == (("f", "x"), ("m", "y"))


def test_leaks_are_columns_that_equal_a_report_up_to_names():
    report = np.array([0, 1, 2, 1, 0, -1])
    y = {
        "copy": ["x", "z", "y", "z", "x", "x"],
        "almost": ["x", "z", "y", "z", "y", "x"],
        "finer": [1, 2, 3, 4, 1, 0],
        "coarser": ["x", "z", "z", "z", "x", "x"],
        "constant": ["x"] * 6,
        "gaps": [5.5, None, 7.5, 6.5, None, 1],
        "block": np.column_stack([report % 2, report]),
    }
    found = find_leaks({"ann": report, "bob": np.array([0, 0, 0, 0, 0, 0])}, y)
    assert found == (("ann", "copy"), ("ann", "gaps"), ("ann", "block[1]"))
    assert find_leaks({"ann": report}, pl.DataFrame({"copy": y["copy"]})) == (("ann", "copy"),)
