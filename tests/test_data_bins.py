"""Buckets and changes, against the paper's table and exact fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jgram.data import difference, employment, quantile_bins
from tests.refusals import refused

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
    np.testing.assert_allclose(
        binned.edges, np.quantile(values, np.arange(1, bins) / bins), atol=1e-9
    )


RAIN, THOUSAND = [0] * 12 + list(range(1, 9)), np.arange(1000.0)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("values", "bins", "part"),
    [
        (RAIN, 4, "rain: 4 bins asked for, 3 would hold values"),
        (RAIN, 4, "12 of 20 values being 0: use 3 bins"),
        ([5, 5, 5], 2, "5: use categories"),
        ([1, 2], 1, "at least 2 bins"),
        ([1, math.inf], 2, "inf in row 1"),
        (["a", "b"], 2, "expected numbers"),
        (np.eye(3), 2, "one column [n]"),
        (THOUSAND, 100_000, "100000 bins asked for, 1000 would hold values"),
        (THOUSAND, 10**15, "1000 would hold values"),
        (THOUSAND, 0, "at least 2 bins, got 0"),
        (THOUSAND, -3, "at least 2 bins, got -3"),
        (THOUSAND, 2.5, "whole number of bins, got 2.5"),
    ],
)
def test_bins_that_ties_would_merge_or_that_mean_nothing_are_refused(values, bins, part):
    assert part in refused(quantile_bins, values, bins, name="rain")
    assert np.bincount(quantile_bins(RAIN, 3).codes).tolist() == [12, 1, 7]


def test_changes_lose_the_first_record():
    assert difference([5, 7, 4]).tolist() == [2, -3]
    assert difference(np.array([1, 3], np.uint8)[::-1]).tolist() == [-2]
    assert difference([[1, 2], [3, 5]]).tolist() == [[2, 3]]
    assert "at least 2 records" in refused(difference, [1])
    assert "missing" in refused(difference, [1, None, 2], name="pay")
