"""Comparisons: sign tests, Fieller's interval and lengths of blocks, each by its definition."""

import math
from statistics import NormalDist

import jax
import numpy as np
import pytest
from scipy.stats import norm, t

from jgram.comparisons import (
    ESTIMABLE,
    blocks,
    records_needed,
    retention,
    share_degrees,
    sign_test,
    student_quantile,
    suggested_block_length,
)


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


DIFFERENCES = np.random.default_rng(0).normal(0.15, 1.0, 60)
GROUPS = np.arange(60) // 7


def by_hand(differences, groups):
    sums = np.array([differences[groups == group].sum() for group in np.unique(groups)])
    z = sums.sum() / np.sqrt((sums**2).sum())
    return z, 2 * NormalDist().cdf(-abs(z))


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_signs_of_groups_and_copies(groups):
    alone = np.arange(60) if groups is None else groups
    found = sign_test(DIFFERENCES, None, groups)
    assert [float(value) for value in found] == pytest.approx(by_hand(DIFFERENCES, alone))
    weights = np.arange(60) % 3
    copies = np.repeat(np.arange(60), weights)
    each = np.arange(len(copies)) if groups is None else groups[copies]
    found = sign_test(-DIFFERENCES, weights, groups)
    assert [float(value) for value in found] == pytest.approx(by_hand(-DIFFERENCES[copies], each))
    assert [float(value) for value in sign_test(0 * DIFFERENCES, None, groups)] == [0.0, 1.0]


def test_fieller_bounds_are_where_the_test_of_a_share_is_at_its_quantile():
    means, covariance = np.array([2.0, 1.2]), np.array([[0.09, 0.03], [0.03, 0.16]])
    found = retention(means, covariance, 1.7)
    assert bool(found.estimable)
    assert float(found.ratio) == pytest.approx(0.6)
    for share in (float(found.lower), float(found.upper)):
        change = np.array([-share, 1.0])
        assert abs(change @ means) == pytest.approx(1.7 * np.sqrt(change @ covariance @ change))
    assert found.lower < found.ratio < found.upper


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_a_share_has_the_degrees_of_its_influences(groups):
    weights = np.arange(60) % 3
    copies = np.repeat(np.arange(60), weights)
    values = np.stack([1.0 + DIFFERENCES, np.where(np.arange(60) % 7, DIFFERENCES, 0.3)])
    means = values @ weights / weights.sum()
    ratio = means[1] / means[0]
    influences = ((values[1] - means[1] - ratio * (values[0] - means[0])) / means[0])[copies]
    if groups is not None:
        influences = np.array([influences[groups[copies] == group].sum() for group in range(9)])
    n, square = len(influences), np.mean(influences**2)
    expected = 2 * n / (np.mean(influences**4) / square**2 - 1)
    assert float(share_degrees(values, means, weights, groups)) == pytest.approx(expected)
    equal = share_degrees(np.stack([DIFFERENCES, DIFFERENCES]), np.ones(2), np.ones(60))
    assert equal > 1e6  # nothing varies, nothing is widened


def test_students_quantile_is_near_its_table():
    for degrees, level in ((8, 0.95), (15, 0.99), (100, 0.999)):
        normal, exact = norm.ppf(0.5 + level / 2), t.ppf(0.5 + level / 2, degrees)
        assert float(student_quantile(normal, degrees)) == pytest.approx(exact, rel=0.01)


def test_what_is_not_estimable_is_said():
    sure, wide = np.diag([1.0, 1.0]), np.diag([1.0, 1e-6])
    mean = ESTIMABLE * (1 + 1e-9)
    assert bool(retention(np.array([mean, 1.0]), sure, 0.0).estimable)
    unknown = [0.0, 0.0, np.inf, False]
    for means, covariance, quantile in (
        ((ESTIMABLE, 1.0), sure, 1.0),
        ((-10.0, 1.0), sure, 1.0),
        ((0.0, 0.0), np.zeros((2, 2)), 1.0),
        ((mean, 1.0), wide, mean),  # an unbounded set
    ):
        found = retention(np.array(means), covariance, quantile)
        assert [float(value) for value in found] == unknown


def test_as_many_records_as_reach_the_power():
    z, _ = by_hand(DIFFERENCES, np.arange(60))
    quantile = NormalDist().inv_cdf
    for power, level in ((0.8, 0.95), (0.6, 0.9)):
        expected = 60 * ((quantile((1 + level) / 2) + quantile(power)) / z) ** 2
        found = records_needed(DIFFERENCES, power=power, confidence=level)
        assert float(found) == pytest.approx(expected)
    assert float(records_needed(DIFFERENCES)) == pytest.approx(
        float(records_needed(DIFFERENCES, np.full(60, 2)))
    )
    grouped, _ = by_hand(DIFFERENCES, GROUPS)
    found = float(records_needed(DIFFERENCES, None, GROUPS) / records_needed(DIFFERENCES))
    assert found == pytest.approx((z / grouped) ** 2)
    assert float(records_needed(0 * DIFFERENCES)) == np.inf


def automatic_length(series):
    """Politis and White, lag by lag."""
    n, centred = len(series), series - np.mean(series)
    correlation = [
        float(centred[lag:] @ centred[: n - lag] / (centred @ centred)) for lag in range(n)
    ]
    limit, quiet = int(3 * np.sqrt(n)), max(5, int(np.sqrt(np.log10(n))))
    last, lag = 0, 1
    while lag <= limit and lag - last <= quiet:
        if abs(correlation[lag]) > 2 * np.sqrt(np.log10(n) / n):
            last = lag
        lag += 1
    total, weighted = 1.0, 0.0
    for lag in range(1, min(2 * last, limit) + 1):
        taper = min(1.0, 2 - lag / last)
        total += 2 * taper * correlation[lag]
        weighted += 2 * taper * lag * correlation[lag]
    return (1.5 * n * (weighted / max(total, 0.1)) ** 2) ** (1 / 3)


def autoregressive(seed, n, memory):
    values = np.random.default_rng(seed).normal(size=n)
    for i in range(1, n):
        values[i] += memory * values[i - 1]
    return values


def test_block_length_is_twice_the_automatic_one_within_bounds():
    series = [autoregressive(seed, 800, memory) for seed, memory in enumerate((0.3, 0.6, -0.5))]
    lengths = [automatic_length(values) for values in series]
    for values, length in zip(series, lengths, strict=True):
        assert suggested_block_length(values) == math.ceil(2 * max(length, np.cbrt(800)))
    assert max(lengths) > np.cbrt(800)
    assert suggested_block_length(np.stack(series)) == math.ceil(2 * max(lengths))
    assert suggested_block_length(autoregressive(0, 200, 0.95)) == 20  # a tenth of the records
    assert suggested_block_length(autoregressive(0, 1000, 0.0)) == 20  # twice their cube root
    assert suggested_block_length(np.ones(1000)) == 20
    assert suggested_block_length(np.array([1.0, 1.0, 2.0])) == 1


def test_blocks_are_consecutive():
    np.testing.assert_array_equal(blocks(7, 3), [0, 0, 0, 1, 1, 1, 2])
