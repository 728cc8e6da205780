"""Columns of any container line up, and what is missing in one is dropped in all."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from jgram.data import check_aligned, check_observations, drop_missing, encode_labels
from jgram.data.columns import column, named_columns
from jgram.data.files import Reading, parsed
from tests.refusals import refused


def test_columns_must_line_up():
    x_hat, y = pd.Series([0, 1, 2]), pd.Series([1.0, 2.0, 3.0])
    assert check_aligned({"x_hat": x_hat, "y": y}) == 3
    assert check_aligned({"x_hat": x_hat.sample(frac=1, random_state=1), "y": y.to_numpy()}) == 3
    for columns, part in (
        ({"x_hat": x_hat, "y": y[::-1]}, "another order"),
        ({"x_hat": x_hat, "y": y.set_axis([1, 2, 3]), "z": [0, 1, 2]}, "differs from"),
        ({"x_hat": [0, 1], "y": np.zeros((3, 4))}, "y: expected 2 records as in x_hat, got 3"),
        ({}, "expected at least one column"),
    ):
        assert part in refused(check_aligned, columns)
    for frame in (pd.DataFrame({1: [1, 2], "1": [3, 4]}), {1: [1, 2], "1": [3, 4]}):
        assert "got '1' twice: rename one" in refused(named_columns, frame, "y")
    for given in (sparse.csr_matrix(np.eye(3)), sparse.coo_array(np.eye(3))):
        assert "sparse" in refused(check_observations, given)
        assert ".toarray()" in refused(check_observations, {"words": given})


GAPS = {"a": [1, None, 3, 4], "b": [5, 6, 7, 8]}


@pytest.mark.parametrize(
    "y",
    [
        [1.0, None, 3.0, 4.0],
        np.array([[1, 1], [2, np.nan], [3, 3], [4, 4]]),
        pd.Series(GAPS["a"], dtype="Int64"),
        pl.Series(GAPS["a"]),
        pa.chunked_array([[1, None], [3, 4]]),
        *(made(GAPS) for made in (dict, pd.DataFrame, pl.DataFrame, pa.table)),
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


RUNS = pa.RunEndEncodedArray.from_arrays([2, 3, 4], pa.array(["a", None, "b"]))


@pytest.mark.parametrize(
    ("given", "values"),
    [
        (pa.array(["a", "a", None, "b"], pa.string_view()), ["a", "a", "b"]),
        (pa.array([b"a", b"a", None, b"b"], pa.binary_view()), [b"a", b"a", b"b"]),
        (RUNS, ["a", "a", "b"]),
        (pa.chunked_array([RUNS]), ["a", "a", "b"]),
        (pl.Series([1, 2, None, 3], dtype=pl.Int128), [1, 2, 3]),
    ],
    ids=["string view", "binary view", "run-end encoded", "in chunks", "128 bits"],
)
def test_types_that_numpy_does_not_know_are_read(given, values):
    read = column(given, "c")
    assert read.values.tolist() == values
    assert read.present.tolist() == [True, True, False, True]


def test_texts_that_arrow_codes_are_read_by_their_codes():
    parts = [pa.array(["b", "a", None]), pa.array(["c", "a"])]
    gap = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["x", None, "x"]))
    for given in (pa.chunked_array(parts), pa.chunked_array(parts).dictionary_encode(), gap):
        found = column(given, "t")
        assert found.__array__().tolist() == given.to_pylist()
        assert found.factors[0] == sorted({*given.to_pylist()} - {None})


def test_integers_that_floats_cannot_tell_apart_stay_two():
    large = 2**53
    for given in ([large, large + 1, 1e5], np.array([large, large + 1, 1e5], object)):
        assert encode_labels(given).classes == (100000, large, large + 1)
    cells = parsed([f"{large}", f"{large + 1}", "1e5"], "id", Reading())
    assert encode_labels(cells).classes == (100000, large, large + 1)
    assert parsed([f"{large + 1}", "1.5"], "x", Reading()).dtype == float
    assert "may stand for several" in refused(encode_labels, np.array([float(large), 1]))
