from fractions import Fraction
from math import comb

import numpy as np
import pytest

from jgram.audit import _fewest, audit, audit_sample


def errors_in_order(n, rate, sharpness, rng):
    """Errors, and a badly scaled idea of their probability, the most suspicious first."""
    probability = 1.0 / (1.0 + np.exp(-sharpness * np.sort(rng.normal(size=n))[::-1]))
    probability = np.minimum(rate * probability / probability.mean(), 1.0)
    return rng.random(n) < probability, np.minimum(rng.choice([0.5, 1.0, 2.0]) * probability, 1.0)


@pytest.mark.parametrize("sharpness", [0.0, 3.0])
@pytest.mark.parametrize(("n", "count", "rate"), [(150, 50, 0.2), (600, 60, 0.05)])
@pytest.mark.parametrize("design", ["first", "random", "sample"])
def test_intervals_hold_the_number(n, count, rate, sharpness, design):
    rng, held, estimates = np.random.default_rng(7), [], []
    for seed in range(40):
        wrong, expected = errors_in_order(n, rate, sharpness, rng)
        places = {
            "first": np.arange(count),
            "random": rng.choice(n, count, replace=False),
            "sample": audit_sample(n, count, seed),
        }[design]
        checked = np.isin(np.arange(n), places)
        number, (low, high) = audit(checked, wrong, expected)
        assert low <= number <= high
        held.append(low <= wrong.sum() <= high)
        estimates.append(number / max(wrong.sum(), 1))
    assert np.mean(held) >= 0.875
    assert design == "first" or 0.75 < np.median(estimates) < 1.33


@pytest.mark.parametrize("size", [9, 23])
def test_exact_limit_against_fractions(size):
    def tail(errors, sample, found):
        ways = range(found, min(sample, errors) + 1)
        good = sum(comb(errors, j) * comb(size - errors, sample - j) for j in ways)
        return Fraction(good, comb(size, sample))

    for sample in (1, size // 2, size):
        for found in range(sample + 1):
            limit = _fewest(size, sample, found)
            assert tail(limit, sample, found) > Fraction(1, 40)
            assert limit == found or tail(limit - 1, sample, found) <= Fraction(1, 40)


def test_what_everybody_checked_is_known():
    wrong = np.arange(40) % 3 == 0
    assert audit(np.ones(40, bool), wrong, np.zeros(40)) == (14, (14, 14))


def test_the_first_ones_alone_bound_the_rest_by_the_last_of_them():
    # 400 of 1000 checked from the top, no error after the first 50.
    checked, wrong = np.arange(1000) < 400, np.arange(1000) < 50
    number, (low, high) = audit(checked, wrong, np.zeros(1000))
    assert (number, low) == (50, 50)
    assert 60 < high < 90  # about 3.7 / 150 of the other 600
    assert audit(checked, np.arange(1000) < 400, np.zeros(1000)).interval[1] == 1000


def test_the_last_ones_alone_bound_the_first_from_below():
    # The last half checked, a tenth of it wrong: the first half holds as many errors at least.
    checked, wrong = np.arange(1000) >= 500, np.arange(1000) % 10 == 0
    low, high = audit(checked, wrong, np.full(1000, 0.1)).interval
    assert 80 < low < 100
    assert high == 550


def test_samples_are_distinct_places_and_denser_at_the_top():
    for n, count in [(3, 10), (20, 7), (1000, 50), (1000, 1000)]:
        places = audit_sample(n, count)
        assert len(set(places.tolist())) == len(places) == min(n, count)
        assert (np.diff(places) > 0).all()
        assert places[0] >= 0
        assert places[-1] < n
    assert np.median(audit_sample(1000, 50)) < 400
