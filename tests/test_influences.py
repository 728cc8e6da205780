"""Influence: equal to the autodiff gradient; single-record changes are exact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jgram
from jgram.influences import contributions
from tests.components import KERNELS, X_HAT, D, N, double

kernels = pytest.mark.parametrize("name", KERNELS)


@pytest.mark.thorough
@kernels
def test_influence_is_the_gradient_in_soft_reports(name):
    with jax.enable_x64(True):
        kernel, y = double(name)
        soft = jnp.asarray(np.random.default_rng(0).dirichlet(np.ones(D), N))
        slope = jax.grad(jgram.plugin_log_score)(soft, y, kernel)
        h = jgram.influence(soft, y, kernel)
        # The score divides by N, the sum of all memberships: hence the constant.
        np.testing.assert_allclose(slope, 2 * h / N - 2 * D / N, atol=1e-10)
        assert float(jnp.mean(jnp.sum(soft * h, axis=1))) == pytest.approx(D)


@pytest.mark.thorough
@kernels
def test_leaving_out_and_relabelling_one_record_is_exact(name):
    with jax.enable_x64(True):
        kernel, y = double(name)
        score = jax.jit(lambda x, w: jgram.plugin_log_score(x, y, kernel, num_classes=D, weights=w))
        found = jgram.influences.linearise(X_HAT, y, kernel)
        whole = score(X_HAT, np.ones(N))
        assert found.log_score == pytest.approx(float(whole), abs=1e-12)
        left_out = jgram.influences.leave_one_out(found, X_HAT)
        gains = jgram.influences.relabelling_gains(found, X_HAT)
        for record in (0, 1, 17):
            expected = score(X_HAT, np.arange(N) != record) - whole
            assert left_out[record] == pytest.approx(float(expected), abs=1e-9)
            for label in range(D):
                changed = np.where(np.arange(N) == record, label, X_HAT)
                expected = score(changed, np.ones(N)) - whole
                assert gains[record, label] == pytest.approx(float(expected), abs=1e-9)


def test_weighted_records_leave_with_their_weight():
    kernel, y = double("rbf")
    with jax.enable_x64(True):
        weights = np.random.default_rng(0).uniform(0.5, 2.0, N)
        found = jgram.influences.linearise(X_HAT, y, kernel, weights=weights)
        change = jgram.influences.leave_one_out(found, X_HAT, weights)[3]
        without = np.where(np.arange(N) == 3, 0.0, weights)
        expected = jgram.plugin_log_score(X_HAT, y, kernel, weights=without) - found.log_score
        assert change == pytest.approx(float(expected), abs=1e-10)


@pytest.mark.parametrize("name", ["linear", "rbf"])
def test_contributions_are_the_gradient_in_weights(name):
    with jax.enable_x64(True):
        kernel, y = double(name)
        slope = jax.grad(
            lambda w: jgram.plugin_log_score(X_HAT, y, kernel, num_classes=D, weights=w)
        )
        parts = contributions(jgram.influences.linearise(X_HAT, y, kernel), X_HAT)
        np.testing.assert_allclose(parts, N * slope(jnp.ones(N)), atol=1e-9)


def test_a_class_of_one_record_cannot_lose_it():
    x_hat, y = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 2, 2])
    change = jgram.influences.leave_one_out(
        jgram.influences.linearise(x_hat, y, jgram.delta), x_hat
    )
    # Without record 5 class 2 is gone; without record 3 classes 1 and 2 have one outcome each.
    np.testing.assert_array_equal(np.isfinite(change), [1, 1, 1, 0, 1, 0])


def test_rounding_does_not_make_up_a_class_that_is_gone():
    x_hat = np.minimum(np.arange(30) // 10, np.r_[np.ones(29, int), 2])
    for seed in range(20):
        y = np.random.default_rng(seed).normal(size=(30, 4)) + 3 * np.eye(4)[x_hat]
        found = jgram.influences.linearise(x_hat, y.astype(np.float32), jgram.linear)
        assert jgram.influences.leave_one_out(found, x_hat)[29] == -np.inf


@pytest.mark.parametrize("name", ["linear", "rbf", "function"])
def test_no_score_no_influence_and_no_nan(name):
    kernel, y, _ = KERNELS[name]
    never = np.where(X_HAT == 2, 1, X_HAT)
    found = jgram.influences.linearise(never, y, kernel, num_classes=D)
    assert found.log_score == -np.inf
    np.testing.assert_array_equal(found.influence, 0.0)
    np.testing.assert_array_equal(found.inverse, 0.0)


def test_reports_under_vmap_are_reports_alone():
    kernel, y, _ = KERNELS["rbf"]
    reports = np.stack([X_HAT, np.roll(X_HAT, 3)])
    together = jax.vmap(lambda x: jgram.influence(x, y, kernel, num_classes=D))(reports)
    for x_hat, found in zip(reports, together, strict=True):
        np.testing.assert_allclose(found, jgram.influence(x_hat, y, kernel), rtol=2e-3, atol=2e-3)


def test_contributions_average_to_zero_and_planted_flips_stand_out():
    rng = np.random.default_rng(0)
    n, d = 2000, 4
    truth = rng.integers(0, d, n)
    y = (rng.normal(size=(n, 8)) + 2.0 * np.eye(d, 8)[truth]).astype(np.float32)
    flipped = rng.random(n) < 0.1
    x_hat = np.where(flipped, (truth + rng.integers(1, d, n)) % d, truth)
    found = jgram.influences.linearise(x_hat, y, jgram.RBF(4.0))
    parts = np.asarray(contributions(found, x_hat))
    assert parts.mean() == pytest.approx(0.0, abs=1e-3)
    own = np.take_along_axis(np.asarray(found.influence), x_hat[:, None], axis=1)[:, 0]
    # The probability that a flipped record has the lower influence at its own label.
    below = (own[flipped][:, None] < own[~flipped]).mean()
    assert below > 0.95
