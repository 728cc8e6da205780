"""Measured coverage of the 95% intervals: minutes, so ``-m slow``."""

import jax
import numpy as np
import pytest

from experiments import coverage


@pytest.mark.slow
@pytest.mark.parametrize("pair", coverage.PAIRS)
@pytest.mark.parametrize(("kernel", "n"), [("delta", 1000), ("delta", 4000), ("rbf", 1000)])
@pytest.mark.parametrize("d", [4, 5])
def test_intervals_cover_as_often_as_they_say(d, kernel, n, pair):
    repetitions = 600 if kernel == "delta" else 300
    with jax.enable_x64(True):
        row = coverage.cell(jax.random.key(0), d, n, kernel, pair, 0.5, repetitions)
    slack = 3 * np.sqrt(0.95 * 0.05 / repetitions)  # of the simulation
    for what in ("coverage_score", "coverage_ratio"):
        assert 0.92 - slack < row[what] < 0.98 + slack
    assert row["standard_error"] == pytest.approx(row["true_spread"], rel=0.2)


@pytest.mark.slow
def test_where_the_linearisation_fails_the_findings_say_so_beforehand():
    with jax.enable_x64(True):
        row = coverage.cell(jax.random.key(0), 5, 500, "delta", "truth, uniform .3", 0.1, 300)
    assert row["standard_error"] > 1.5 * row["true_spread"]
    assert row["warned"] > 0.5
