"""Texts that are numbers or dates: one reading of a column or none, from any container."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from jgram.binding import bind_observations
from jgram.data import check_observations, prepare_table, read_columns
from jgram.data.columns import column, time_keys
from jgram.data.written import Dates, find_written
from tests.refusals import refused

THOUSANDS = [f"{i},{j}" for i in range(2, 8) for j in range(101, 900, 99)]


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1.234,50 €", "99 €", "5"], [1234.5, 99, 5]),
        (["$1,200", "$950", "($3)"], [1200, 950, -3]),
        (["12,5 %", "3 %", " -0,25%"], [12.5, 3, -0.25]),
        (["1 234", "1\u202f234\u00a0567", "7"], [1234, 1234567, 7]),
        (["(1,200)", "1,300.5", "-"], [-1200, 1300.5]),
        (["1,234", "1,234,567", "7"], [1234, 1234567, 7]),
        (["1,234", "0,5"], [1.234, 0.5]),
        (["1,234", "2,345"], [1234, 2345]),  # both ways, but for a factor
        (["12,34,567", "1,23,456"], [1234567, 123456]),
        (["CHF 1'200.-", "CHF 3’400.50"], [1200, 3400.5]),
        (["5-", "3,2-", "−1"], [-5, -3.2, -1]),
        (["1.5e-3", "2.5"], [0.0015, 2.5]),
        ([*THOUSANDS, "5"], [*(float(x.replace(",", "")) for x in THOUSANDS), 5]),
    ],
)
def test_one_way_of_writing_fits_a_column(texts, values):
    given = column(texts, "pay")
    assert given.measured
    assert given.plain.values.tolist() == values


@pytest.mark.parametrize(
    "texts",
    [["1", "2"], ["007", "1"], ["10.0.0.1", "10.0.0.2"], ["31.12.2024", "1.2.2024"], ["a", "1,5"],
     ["12:30", "1:15"], ["+49 171 234", "+49 30 1"], ["250.1", "V57", "401.9"]],
)  # fmt: skip
def test_codes_dates_and_names_are_no_numbers(texts):
    assert find_written(texts) == (None, None, "")


@pytest.mark.parametrize(
    ("texts", "odd"),
    [
        ([*THOUSANDS, "5", "1234"], THOUSANDS[0]),  # large, and without a mark
        (["1,234", "5"], "1,234"),
        (["1,5 €", "2,5 €", "$3.50"], "$3.50"),
        (["1,5 %", "2,5 %", "0,3"], "0,3"),
        (["1.200,50", "1.300,50", "1,400.50"], "1,400.50"),
        (["1,5", "2,5", "k.A."], "k.A."),
    ],
)
def test_the_text_that_does_not_fit_is_named(texts, odd):
    assert find_written(texts)[:2] == (None, odd)


def test_files_frames_and_workbooks_are_read_alike_and_it_is_said(tmp_path):
    cells = ["1.234,50 €", "", "99,00 €", "(1,00 €)", "7,25 €"]
    path = tmp_path / "pay.csv"
    path.write_text("pay;b\n" + "".join(f"{cell};x\n" for cell in cells), encoding="utf-8")
    given = [cell or None for cell in cells]
    pd.DataFrame({"pay": given}).to_excel(tmp_path / "pay.xlsx", index=False)
    files = [read_columns(file, ["pay"]) for file in (path, tmp_path / "pay.xlsx")]
    frames = [*files, pd.DataFrame({"pay": given}), pl.DataFrame({"pay": given}), {"pay": given}]
    tables = [prepare_table(frame) for frame in frames]
    expected = prepare_table({"pay": [1234.5, None, 99, -1, 7.25]})
    for table in tables:
        np.testing.assert_array_equal(table.points, expected.points)
        assert "; read pay '1.234,50 €' as 1234.5; " in table.description
    later = tables[0].points_of({"pay": ["99,00 €", "7"]})
    np.testing.assert_array_equal(later, expected.points_of({"pay": [99, 7]}))
    message = refused(tables[0].points_of, {"pay": ["99,00 €", "1,234.5"]})
    assert "pay: expected numbers such as '1.234,50 €', got '1,234.5' in row 1" in message


# Dates --------------------------------------------------------------------------------------

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
