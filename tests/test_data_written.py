"""Texts that are numbers, by column."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from jgram.data import prepare_table, read_columns
from jgram.data.columns import column
from jgram.data.written import find_written

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
    with pytest.raises(
        ValueError, match=r"pay: expected numbers such as .* got '1,234.5' in row 1"
    ):
        tables[0].points_of({"pay": ["99,00 €", "1,234.5"]})
