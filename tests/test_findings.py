"""Findings: the statistic of conditional independence against the jackknife of plain tables."""

import numpy as np
import pytest

import jgram
from jgram.findings import conditional_independence


def log_ratio(first, second, y, d):
    scores = [
        np.linalg.slogdet(np.histogram2d(y, x, bins=[np.arange(d + 1)] * 2)[0] / len(y))[1]
        for x in (first, second)
    ]
    return 2 * (scores[0] - scores[1])


@pytest.mark.parametrize("sources", [2, 3])
def test_statistic_is_that_of_the_jackknife(sources):
    rng = np.random.default_rng(sources)
    n, d = 300, 2
    truth = rng.integers(0, d, n)
    first, second, *observed = (
        np.where(rng.random(n) < share, rng.integers(0, d, n), truth)
        for share in (0.1, 0.4, 0.1, 0.2, 0.3)[: 2 + sources]
    )
    whole = np.array([log_ratio(first, second, y, d) for y in observed])
    left = np.array(
        [
            [log_ratio(*(np.delete(x, i) for x in (first, second, y)), d) for y in observed]
            for i in range(n)
        ]
    )
    covariance = (n - 1) ** 2 / n * np.cov(left.T)
    contrast = np.diff(np.eye(sources), axis=0)
    gaps = contrast @ whole
    expected = gaps @ np.linalg.solve(contrast @ covariance @ contrast.T, gaps)
    found = conditional_independence(
        first, second, {str(k): (y, jgram.Delta(d)) for k, y in enumerate(observed)}
    )
    assert list(found.log_ratios.values()) == pytest.approx(list(whole), abs=1e-9)
    errors = np.sqrt(np.diagonal(covariance))
    assert list(found.standard_errors.values()) == pytest.approx(list(errors), rel=0.03)
    assert found.statistic == pytest.approx(expected, rel=0.05)
    assert found.degrees_of_freedom == sources - 1
    if sources == 3:  # the chi-square with two degrees of freedom is exponential
        assert found.p_value == pytest.approx(np.exp(-found.statistic / 2), rel=1e-4)
