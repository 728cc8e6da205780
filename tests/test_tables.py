"""Files read right or refused with the option that decides; buckets; strict JSON."""

import enum
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jgram.checks import check_observations, encode_labels
from jgram.tables import difference, employment, quantile_bins, read_columns, to_json


@pytest.fixture
def write(tmp_path):
    """Write text (or bytes) to a file and give its path."""

    def write(content: str | bytes, name: str = "data.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def refused(call, *args, **kwargs) -> str:
    """The one-line message with which the call is refused."""
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z") as info:
        call(*args, **kwargs)
    return str(info.value)


# Text files ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("a,b\n1,x\n2,y\n", "data.csv"),
        ("a;b\n1;x\n2;y\n", "data.csv"),
        ("a\tb\n1\tx\n2\ty\n", "data.tsv"),
        ("a|b\n1|x\n2|y\n", "data.txt"),
        ("\ufeffa,b\r\n1,x\r\n2,y\r\n", "data.csv"),
        ("a;b\n1;x\n2;y\n".encode("utf-16"), "data.csv"),
        ('"a", "b"\n"1", "x"\n"2", "y"\n', "data.csv"),
        ("a , b\n\n1,x\n\n2,y", "data.csv"),
    ],
)
def test_the_same_table_however_it_is_written(write, content, name):
    columns = read_columns(write(content, name))
    assert columns["a"].dtype == np.int64
    assert columns["a"].tolist() == [1, 2]
    assert columns["b"].tolist() == ["x", "y"]


def test_pandas_polars_and_quoted_text_read_back(tmp_path):
    texts = ['comma, "quote"', "semi;colon", "two\nlines", "ümlaut"]
    frame = pd.DataFrame({"text": texts, "value": [1.5, math.nan, -2e-9, 3]})
    frame.to_csv(tmp_path / "pandas.csv", index=False)
    pl.from_pandas(frame).write_csv(tmp_path / "polars.csv")
    for name in ("pandas.csv", "polars.csv"):
        columns = read_columns(tmp_path / name)
        assert columns["text"].tolist() == texts
        np.testing.assert_array_equal(columns["value"], frame["value"])


def test_a_single_column_needs_no_separator(write):
    assert read_columns(write("label\ncat\ndog\n"))["label"].tolist() == ["cat", "dog"]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        ("1 2 3", [1, 2, 3]),
        ("1.5 2 -3e2 .5 inf", [1.5, 2, -300, 0.5, math.inf]),
        ("1 NA 3", [1, None, 3]),
        ("1.5 nan 3", [1.5, None, 3]),
        ("NA FR DE", ["NA", "FR", "DE"]),
        ("007 010", ["007", "010"]),
        ("1_000 2", ["1_000", "2"]),
        ("123456789012345678901 5", [123456789012345678901, 5]),
        ("true false", ["true", "false"]),
    ],
)
def test_types_of_columns(write, cells, values):
    column = read_columns(write("a,b\n" + "".join(f"{cell},0\n" for cell in cells.split())))["a"]
    read = [None if x is None or x != x else x for x in column.tolist()]
    assert read == values
    assert list(map(type, read)) == list(map(type, values)) or column.dtype == float


def test_na_is_a_class_of_text_and_missing_among_numbers(write):
    path = write("country,code,pay\nNA,1,2.5\nFR,NA,NA\n,2,1.5\n")
    columns = read_columns(path)
    assert columns["country"].tolist() == ["NA", "FR", None]
    assert columns["code"].tolist() == [1, None, 2]
    assert np.isnan(columns["pay"]).tolist() == [False, True, False]
    assert read_columns(path, missing_values=["NA"])["country"].tolist() == [None, "FR", None]
    (warning,) = encode_labels(columns["country"][:2]).warnings
    assert "'NA'" in warning


@pytest.mark.parametrize(
    ("cells", "separator", "options", "values"),
    [
        ('"1,234" 987 "-12,345.5"', ",", {"thousands": ","}, [1234, 987, -12345.5]),
        ("1.234 987", ";", {"thousands": "."}, [1234, 987]),
        ("1.234 987", ";", {"decimal": "."}, [1.234, 987]),
        ("1.234,5 987", ";", {"thousands": ".", "decimal": ","}, [1234.5, 987]),
        ("1,5 987", ";", {"decimal": ","}, [1.5, 987]),
        ("1’234 987", ";", {"thousands": "’"}, [1234, 987]),
    ],
)
def test_separated_numbers_are_refused_then_read_with_the_option(
    write, cells, separator, options, values
):
    rows = "".join(f"{cell}{separator}x\n" for cell in cells.split())
    path = write(f"pay{separator}b\n{rows}")
    message = refused(read_columns, path, ["pay"])
    for option, mark in options.items():
        assert f"--{option} {mark!r}" in message
    assert read_columns(path, ["pay"], **options)["pay"].tolist() == values
    assert read_columns(path, ["b"])["b"][0] == "x"  # other columns are not looked at


def test_plain_decimals_in_a_semicolon_file_are_read(write):
    assert read_columns(write("a;b\n1.5;2\n0.125;3\n"))["a"].tolist() == [1.5, 0.125]


def test_digits_grouped_wrongly_are_text(write):
    column = read_columns(write('a,b\n"1,23",0\n"4",0\n'), ["a"], thousands=",")["a"]
    assert "expected numbers, got '1,23'" in refused(check_observations, column, kind="numeric")


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("", ["a header and at least one record"]),
        ("a,b\n", ["got 1 lines"]),
        ("a,b\n1,2\n3\n", ["expected 2 fields", "got 1 in line 3"]),
        ("a,b\n1,2\n3,4,5\n", ["got 3 in line 3"]),
        ("a,b;c\n1,2;3\n", ["both ',' and ';'", "--separator"]),
        ("a,b\nÃ,\xe9\n".encode("latin-1"), ["0xc3", "UTF-8"]),
        ("a,a\n1,2\n", ["'a' names columns 1 and 2"]),
    ],
)
def test_unreadable_text_is_refused(write, content, parts):
    path = write(content)
    message = refused(read_columns, path)
    assert message.startswith(str(path))
    assert [part for part in parts if part not in message] == [], message


def test_separator_can_be_told(write):
    path = write("a,b;c\n1,x;3\n")
    assert read_columns(path, separator=";")["c"].tolist() == [3]
    assert read_columns(path, separator=",")["a"].tolist() == [1]
    assert read_columns(write("a\tb;c\n1\t2;3\n"), separator="tab")["a"].tolist() == [1]
    assert "separator" in refused(read_columns, path, separator="ab")


def test_wrong_names_are_met_with_the_close_one(write):
    path = write("diagnosis,age,age\nflu,3,4\n")
    assert "did you mean 'diagnosis'?" in refused(read_columns, path, ["diagnosys"])
    assert "it has diagnosis, age" in refused(read_columns, path, ["zzz"])
    assert "distinct columns" in refused(read_columns, path, ["diagnosis", "diagnosis"])
    assert "names columns 2 and 3" in refused(read_columns, path, ["age"])
    assert list(read_columns(path, ["diagnosis"])) == ["diagnosis"]


def test_blank_names_are_numbered(write):
    assert list(read_columns(write(",b,\n1,2,3\n"))) == ["column 1", "b", "column 3"]


# Parquet and npz ----------------------------------------------------------------------------


def test_parquet_columns_and_lists(tmp_path):
    frame = pd.DataFrame(
        {
            "label": pd.Categorical(["a", "b", "a"], categories=["a", "b", "c"]),
            "count": pd.array([1, None, 3], dtype="Int64"),
            "embedding": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]],
        }
    )
    frame.to_parquet(tmp_path / "data.parquet")
    columns = read_columns(tmp_path / "data.parquet")
    assert encode_labels(columns["label"]).codes.tolist() == [0, 1, 0]
    assert encode_labels(columns["count"], missing="drop").classes == (1, 3)
    assert columns["embedding"].shape == (3, 2)
    assert "did you mean 'label'" in refused(read_columns, tmp_path / "data.parquet", ["labels"])


def test_npz_arrays_and_blocks(tmp_path):
    np.savez(tmp_path / "data.npz", labels=[0, 1], features=np.eye(2), objects=np.array([{}]))
    columns = read_columns(tmp_path / "data.npz", ["labels", "features"])
    assert columns["features"].shape == (2, 2)
    assert "did you mean 'features'" in refused(read_columns, tmp_path / "data.npz", ["feature"])
    assert "allow_pickle" in refused(read_columns, tmp_path / "data.npz", ["objects"])


@pytest.mark.parametrize("suffix", ["parquet", "npz"])
@pytest.mark.parametrize("content", [b"", b"not such a file"])
def test_other_bytes_are_refused(write, suffix, content):
    path = write(content, f"data.{suffix}")
    assert str(path) in refused(read_columns, path)


def test_other_formats_are_refused(write):
    assert ".parquet or .npz" in refused(read_columns, write("", "data.xlsx"))


# Buckets and changes ------------------------------------------------------------------------

TABLE_1 = {
    "first": ([[14, 12, 8, 18], [8, 15, 18, 11], [9, 14, 16, 13], [21, 11, 10, 10]], 3504384),
    "one_month_later": (
        [[15, 12, 9, 16], [7, 16, 17, 12], [10, 13, 16, 13], [20, 11, 10, 11]],
        24920064,
    ),
    "final": ([[14, 11, 9, 18], [9, 16, 17, 10], [8, 14, 17, 13], [21, 11, 9, 11]], 33918976),
}


@pytest.mark.parametrize("vintage", TABLE_1)
def test_quartiles_of_changes_reproduce_table_1(vintage):
    columns = employment()
    assert [len(column) for column in columns.values()] == [209] * 5
    report, taxes = (
        quantile_bins(difference(columns[name]), 4).codes for name in (vintage, "tax_deposits")
    )
    counts, squared_determinant = TABLE_1[vintage]
    table = np.zeros((4, 4), int)
    np.add.at(table, (report, taxes), 1)
    assert table.tolist() == counts
    assert round(np.linalg.det(table)) ** 2 == squared_determinant


def quantile_codes(values: list[int], bins: int) -> list[int]:
    """The buckets, one value at a time in exact fractions."""
    ranked = sorted(values)

    def edge(k: int) -> Fraction:
        position = Fraction(k * (len(values) - 1), bins)
        low = ranked[math.floor(position)]
        return low + (ranked[math.ceil(position)] - low) * (position % 1)

    return [sum(value > edge(k) for k in range(1, bins)) for value in values]


@given(st.lists(st.integers(-1000, 1000), min_size=8, unique=True), st.sampled_from([2, 3, 4, 6]))
def test_bins_agree_with_exact_quantiles(values, bins):
    binned = quantile_bins(values, bins)
    assert binned.codes.tolist() == quantile_codes(values, bins)
    assert len(binned.names) == bins
    np.testing.assert_allclose(binned.edges, np.quantile(values, np.arange(1, bins) / bins))


def test_bins_that_ties_would_merge_are_refused():
    zero_inflated = [0] * 12 + list(range(1, 9))
    message = refused(quantile_bins, zero_inflated, 4, name="rain")
    assert message.startswith("rain: 4 bins asked for, 3 would hold values")
    assert "12 of 20 values being 0: use 3 bins" in message
    assert np.bincount(quantile_bins(zero_inflated, 3).codes).tolist() == [12, 1, 7]
    assert "5: use categories" in refused(quantile_bins, [5, 5, 5], 2)
    assert "at least 2 bins" in refused(quantile_bins, [1, 2], 1)
    assert "inf in row 1" in refused(quantile_bins, [1, math.inf], 2)
    assert "expected numbers" in refused(quantile_bins, ["a", "b"], 2)


def test_changes_lose_the_first_record():
    assert difference([5, 7, 4]).tolist() == [2, -3]
    assert difference(np.array([1, 3], np.uint8)[::-1]).tolist() == [-2]
    assert difference([[1, 2], [3, 5]]).tolist() == [[2, 3]]
    assert "at least 2 records" in refused(difference, [1])
    assert "missing" in refused(difference, [1, None, 2], name="pay")


# Records ------------------------------------------------------------------------------------


class Pair(NamedTuple):
    low: float
    high: float


@dataclass(frozen=True)
class Record:
    name: str
    interval: Pair
    counts: np.ndarray


class Level(enum.Enum):
    LOW = 1


def test_json_is_strict_and_gives_a_reason_for_null():
    record = {
        "log_score": jnp.float32(-jnp.inf),
        "floor": np.nan,
        "rows": [1.5, math.inf],
        "record": Record("a", Pair(-1.0, math.inf), np.array([1, 2], np.int32)),
        3: (True, None, "ü", Level.LOW),
    }
    text = to_json(record)
    assert "ü" in text

    def refuse(constant):
        raise AssertionError(constant)

    assert json.loads(text, parse_constant=refuse) == {
        "log_score": None,
        "log_score_reason": "-Infinity",
        "floor": None,
        "floor_reason": "NaN",
        "rows": [1.5, None],
        "record": {
            "name": "a",
            "interval": {"low": -1.0, "high": None, "high_reason": "Infinity"},
            "counts": [1, 2],
        },
        "3": [True, None, "ü", "Level.LOW"],
    }


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_json_keeps_every_finite_number(number):
    assert json.loads(to_json({"x": np.float64(number)}))["x"] == number
