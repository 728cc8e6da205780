"""Dates: one reading or none, times in order, in any column and from any container."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from jgram.binding import bind_observations
from jgram.data import check_observations, prepare_table
from jgram.data.columns import column, time_keys
from jgram.data.written import Dates
from tests.refusals import refused

DAYS = np.random.default_rng(0).permutation(np.arange("2008-01-01", "2010-01-01", 5, "datetime64"))
FORMS = {
    "ISO": "%Y-%m-%d",
    "ISO with time": "%Y-%m-%dT%H:%M:%S",
    "in UTC": "%Y-%m-%d %H:%MZ",
    "slashes, year first": "%Y/%m/%d",
    "day first": "%d.%m.%Y",
    "day first with time": "%d.%m.%Y %H:%M",
    "month first": "%m/%d/%Y",
    "month first with time": "%m/%d/%Y %I:%M %p",
    "day first, slashes": "%d/%m/%Y",
    "day first, hyphens": "%d-%m-%Y %H:%M:%S.%f",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_dates_are_read_the_one_way_they_can_be(form):
    texts = pd.Series(DAYS).dt.strftime(form)
    np.testing.assert_array_equal(column(texts, "day").plain.values, DAYS)
    np.testing.assert_array_equal(
        np.argsort(time_keys(column(list(texts), "day"))), np.argsort(DAYS)
    )
    points = prepare_table({"day": texts}).points
    np.testing.assert_array_equal(points, prepare_table({"day": DAYS}).points)


@pytest.mark.parametrize(
    "container", [list, np.array, pd.Series, pl.Series, pa.array, lambda x: pd.to_datetime(x)]
)
def test_a_date_alone_is_a_number(container):
    given = container([str(day) for day in DAYS])
    checked = check_observations(given)
    assert checked.kind == "numeric"
    np.testing.assert_allclose(np.argsort(checked.values), np.argsort(DAYS))
    assert "1 column (1 number), by rank" in bind_observations({"day": given})[2]
    assert bind_observations({"day": given}, "delta")[1] is None  # where it is asked for


def test_words_for_a_missing_value_are_missing_among_dates():
    read = column(["2009-05-01", "NA", None, "2009-05-03", " - "], "day").plain
    assert read.present.tolist() == [True, False, False, True, False]


@pytest.mark.parametrize(
    "texts", [["1.2", "3.4"], ["127.0.0.1", "10.1.1.2001"], ["12-34-5678", "44-55-1234"], ["a"], []]
)
def test_what_is_no_date_stays_text(texts):
    assert not isinstance(column(texts, "code").writing[0], Dates)


@pytest.mark.parametrize(
    ("texts", "parts"),
    [
        (["01/05/2009", "03/04/2009"], ["'01/05/2009' and '03/04/2009'", "2009-05-31"]),
        (["01-05-2009", "03-03-2009"], ["'01-05-2009' and '01-05-2009'"]),
        (["13/05/2009", "05/13/2009"], ["one kind such as '13/05/2009', got '05/13/2009' in row"]),
        (["2009-05-01", "1.5.2009"], ["one kind", "got '1.5.2009' in row 1"]),
        ([f"{d}.3.2009" for d in range(1, 33)], ["got '32.3.2009' in row 31"]),
        ([f"{d}.3.2009" for d in range(1, 31)] + ["later"], ["got 'later' in row 30"]),
        (["2009-05-01T10:00Z", "2009-05-01"], ["time zone, got both"]),
    ],
)
def test_dates_that_could_be_read_in_two_ways_are_refused(texts, parts):
    for door in (prepare_table, check_observations, lambda y: time_keys(column(y["day"], "day"))):
        message = refused(door, {"day": texts})
        assert [part for part in parts if part not in message] == [], message


def test_records_are_never_put_in_the_order_of_texts():
    assert time_keys(column(["2009Q2", "2008Q4", "2009Q1"], "t")).tolist() == [2, 0, 1]
    assert time_keys(column(["t10", "t09"], "t")).tolist() == [1, 0]
    for texts in (["t9", "t10"], ["01.05.09", "02.04.09"], ["Jan 2009", "May 2009"]):
        assert "numbers or dates" in refused(time_keys, column(texts, "t"))
    assert "1 of 2 values missing" in refused(time_keys, column(["2009-05-01", None], "t"))
