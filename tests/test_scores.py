"""The plug-in score: every kernel of the table through every route and transformation."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.test_util import check_grads

import jgram
from jgram.contrasts import payoffs
from jgram.gram_matrix import gram_state
from jgram.influences import contributions, leave_one_out, linearise, relabelling_gains
from jgram.observed import _pairs_gram, observe
from jgram.stratified import stratified_matching_score, unbiased_score
from tests import oracles
from tests.components import KERNELS, X_HAT, D, N, laplacian
from tests.refusals import refused

kernels = pytest.mark.parametrize("name", KERNELS)
implicit = pytest.mark.parametrize(
    "name", [name for name, (kernel, *_) in KERNELS.items() if not hasattr(kernel, "features")]
)


def log_score(x_hat, y, kernel, **options):
    return jgram.plugin_log_score(x_hat, y, kernel, num_classes=D, **options)


@kernels
@pytest.mark.parametrize("x64", [False, True])
def test_log_score_is_that_of_the_definition(name, x64):
    kernel, y, oracle = KERNELS[name]
    weights = np.random.default_rng(1).uniform(0.0, 2.0, N)
    weights[::7] = 0.0
    with jax.enable_x64(x64):
        y = y.astype(np.float64) if x64 and y.dtype == np.float32 else y
        tolerance = 1e-10 if x64 and name != "random_features" else 2e-4
        for w in (None, weights if x64 else weights.astype(np.float32)):
            found = jgram.plugin_log_score(X_HAT, y, kernel, weights=w)
            assert found.dtype == (jnp.float64 if x64 else jnp.float32)
            expected = oracles.log_score(X_HAT, y, oracle, D, w)
            np.testing.assert_allclose(found, expected, rtol=tolerance)


@kernels
def test_soft_reports_are_the_definition_and_agree_with_labels_at_the_corners(name):
    kernel, y, oracle = KERNELS[name]
    soft = np.random.default_rng(2).dirichlet(np.full(D, 0.3), N).astype(np.float32)
    expected = oracles.log_score(soft, y, oracle, D)
    np.testing.assert_allclose(jgram.plugin_log_score(soft, y, kernel), expected, rtol=1e-3)
    corners = np.eye(D, dtype=np.float32)[X_HAT]
    np.testing.assert_allclose(
        jgram.plugin_log_score(corners, y, kernel), log_score(X_HAT, y, kernel), rtol=1e-4
    )


@kernels
def test_jit_vmap_and_loop_agree_and_compile_once(name):
    kernel, y, _ = KERNELS[name]
    x_copy, y_copy, traces = X_HAT.copy(), y.copy(), []

    @jax.jit
    @jax.vmap
    def compiled(x_hat):
        traces.append(None)
        return log_score(x_hat, y, kernel)

    reports = np.stack([np.roll(X_HAT, shift) for shift in (0, 1, 5)])
    looped = [float(log_score(x, y, kernel)) for x in reports]
    np.testing.assert_allclose(compiled(reports), looped, rtol=1e-4)
    np.testing.assert_allclose(compiled(reports[::-1]), looped[::-1], rtol=1e-4)
    assert len(traces) == 1
    np.testing.assert_array_equal(x_copy, X_HAT)
    np.testing.assert_array_equal(y_copy, y)


@pytest.mark.thorough
@kernels
def test_gradients_are_central_differences(name):
    kernel, y, _ = KERNELS[name]
    rng = np.random.default_rng(3)
    with jax.enable_x64(True):
        soft = jnp.asarray(rng.dirichlet(np.ones(D), N))
        toward = rng.dirichlet(np.ones(D), N) - soft  # a feasible direction
        weights = jnp.asarray(rng.uniform(0.5, 1.5, N))
        y = jnp.asarray(y, None if name == "delta" else float)
        if name == "random_features":
            kernel = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), kernel)

        def score(step, weights):
            return jgram.plugin_log_score(soft + step * toward, y, kernel, weights=weights)

        check_grads(score, (0.0, weights), order=1, modes=["rev"], rtol=1e-5)
        # Observations that may move freely, and no kink of |y - y'| within a difference's reach.
        if name not in ("delta", "pseudo_posterior", "laplacian"):
            direction = rng.normal(size=y.shape)
            moved = lambda step: log_score(X_HAT, y + step * direction, kernel)  # noqa: E731
            check_grads(moved, (0.0,), order=1, modes=["rev"], rtol=1e-5)


def test_many_tiles_add_up_without_drift():
    """The plain float32 sum of these tiles is wrong in the fifth digit."""
    n = 600
    bound = jgram.observed.observe(lambda a, b: jnp.float32(0.1), np.ones((n, 1)), block_size=2)
    found = np.float64(bound.gram(np.ones((n, 1), np.float32))[0, 0])
    assert found == pytest.approx(n**2 * np.float64(np.float32(0.1)), rel=2e-7)


@pytest.mark.parametrize("name", ["rbf", "function"])
def test_eager_calls_of_one_shape_compile_once(name):
    kernel, y, _ = KERNELS[name]
    log_score(X_HAT, y, kernel)
    before = _pairs_gram._cache_size()
    log_score(np.roll(X_HAT, 1), y + 1, kernel)
    assert _pairs_gram._cache_size() == before
    with pytest.raises(ValueError, match="num_classes"):
        jax.jit(jgram.plugin_log_score)(X_HAT, y)


@pytest.mark.thorough
@kernels
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_invariances(name, seed):
    kernel, y, _ = KERNELS[name]
    rng = np.random.default_rng(seed)
    expected = float(log_score(X_HAT, y, kernel))
    order = rng.permutation(N)
    assert float(log_score(X_HAT[order], y[order], kernel)) == pytest.approx(expected, rel=1e-4)
    renamed = rng.permutation(D).astype(np.int32)[X_HAT]  # blind to a relabelling
    assert float(log_score(renamed, y, kernel)) == pytest.approx(expected, rel=1e-4)
    twice = np.r_[X_HAT, X_HAT], np.concatenate([y, y])
    assert float(log_score(*twice, kernel)) == pytest.approx(expected, rel=1e-4)
    repeats = rng.integers(0, 3, N)
    if len(np.unique(X_HAT[repeats > 0])) == D:
        weighted = float(log_score(X_HAT, y, kernel, weights=repeats.astype(np.float32)))
        repeated = float(
            log_score(np.repeat(X_HAT, repeats), np.repeat(y, repeats, axis=0), kernel)
        )
        assert weighted == pytest.approx(repeated, rel=1e-3, abs=1e-3)


@implicit
@pytest.mark.parametrize("block_size", [1, 7, N - 1, N, N + 1])
def test_tiles_are_exact_at_every_size(name, block_size):
    kernel, y, oracle = KERNELS[name]
    found = jgram.gram(X_HAT, y, kernel, block_size=block_size)  # of the definition
    np.testing.assert_allclose(found, oracles.gram(X_HAT, y, oracle, D), rtol=1e-5, atol=1e-7)
    z = np.random.default_rng(4).normal(size=(N, 2)).astype(np.float32)
    dense = np.array([[oracle(a, b) for b in y] for a in y])
    product = observe(kernel, y, block_size=block_size).product(z)
    np.testing.assert_allclose(product, dense @ z, rtol=1e-4, atol=1e-4)


def _temporaries(function, *arguments):
    return jax.jit(function).lower(*arguments).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.thorough
def test_memory_is_that_of_a_tile_forwards_and_backwards():
    n, d = 50_000, 10
    x_hat, y = np.zeros(n, np.int32), np.zeros((n, 8), np.float32)
    kernel = jgram.RBF(1.0)
    forward = lambda x, y: jgram.plugin_log_score(x, y, kernel, num_classes=d)  # noqa: E731
    assert _temporaries(forward, x_hat, y) < 100e6  # the kernel matrix would be 10 GB
    small = (x_hat[:10_000], y[:10_000])
    assert _temporaries(jax.grad(forward, argnums=1), *small) < 60e6
    soft = np.full((10_000, d), 1 / d, np.float32)
    assert _temporaries(jax.grad(forward), soft, small[1]) < 60e6


def test_reports_under_vmap_share_the_kernel():
    n, d, t = 20_000, 5, 8
    y = np.zeros((n, 4), np.float32)
    score = lambda x: jgram.plugin_log_score(x, y, jgram.RBF(1.0), num_classes=d)  # noqa: E731
    x_hat = np.zeros((t, n), np.int32)
    one = jax.jit(score).lower(x_hat[0]).compile().cost_analysis()["transcendentals"]
    many = jax.jit(jax.vmap(score)).lower(x_hat).compile().cost_analysis()["transcendentals"]
    assert many < 1.5 * one


def test_scores_far_below_the_float_range_still_rank():
    d = 100
    x = np.repeat(np.arange(d), 30)
    noisy = np.where(np.arange(len(x)) % 5 == 0, np.roll(x, 40), x)
    best, worse = (jgram.plugin_log_score(r, x, jgram.Delta(d)) for r in (x, noisy))
    assert best == pytest.approx(-2 * d * np.log(d), rel=1e-5)
    assert np.isfinite(worse)
    assert worse < best - 10
    assert float(jgram.plugin_score(x, x, jgram.Delta(d))) == 0.0  # why the log is primary


def test_offset_observations_keep_their_score():
    _, y, _ = KERNELS["rbf"]
    near, far = (log_score(X_HAT, y + offset, jgram.RBF(3.0)) for offset in (0.0, 1e4))
    assert far == pytest.approx(float(near), abs=0.02)  # float32 keeps 1e-3 of y itself at 1e4


@pytest.mark.thorough
def test_rank_deficient_scores_are_minus_infinity_with_zero_gradient():
    rng = np.random.default_rng(0)
    y8 = rng.normal(size=(200, 8)).astype(np.float32)
    x10 = np.arange(200) % 10
    assert jgram.plugin_log_score(x10, y8, jgram.linear) == -np.inf
    assert np.isfinite(jgram.plugin_log_score(x10, y8, jgram.linear, rank=8))
    assert np.isfinite(jgram.plugin_log_score(x10, y8, jgram.RBF(4.0)))
    never = jgram.plugin_log_score(np.zeros(9, int), np.arange(9.0), jgram.RBF(1.0), num_classes=2)
    assert never == -np.inf
    merged = np.array([[0.5, 0.5]] * 4, np.float32)  # both classes are the same mixture
    y = np.array([0.0, 1.0, 2.0, 3.0], np.float32)
    for kernel in (jgram.RBF(1.0), jgram.Linear(lambda v: jnp.stack([v, v**2])), laplacian):
        value, slope = jax.value_and_grad(jgram.plugin_log_score)(merged, y, kernel)
        assert value == -np.inf
        np.testing.assert_array_equal(slope, 0.0)


@pytest.mark.parametrize("name", ["linear", "rbf", "laplacian"])
def test_top_volume_and_its_gradient_at_duplicates_and_at_no_weight(name):
    kernel, y, oracle = KERNELS[name]
    values = np.linalg.eigvalsh(oracles.gram(X_HAT, y, oracle, D))[::-1]
    assert log_score(X_HAT, y, kernel, rank=2) == pytest.approx(np.log(values[:2]).sum(), rel=1e-4)
    weights = np.where(np.arange(N) < 5, 0.0, 1.0).astype(np.float32)
    twice = np.where(np.arange(N)[:, None] == 7, y[6], y)

    @jax.jit
    @jax.grad
    def slope_of(y, weights):
        whole = log_score(X_HAT, y, kernel, weights=weights)
        return whole + log_score(X_HAT, y, kernel, rank=2, weights=weights)

    slope = slope_of(jnp.asarray(twice), weights)
    assert np.isfinite(slope).all()
    np.testing.assert_array_equal(slope[:5], 0.0)
    assert np.abs(slope[5:]).min() > 0


@pytest.mark.parametrize(
    ("x_hat", "y", "options", "message"),
    [
        ([0, -1, 1], [0.0, 1.0, 2.0], {}, "got -1"),
        ([0, 5, 1], [0.0, 1.0, 2.0], {"num_classes": 3}, r"expected labels 0\.\.2, got 5"),
        ([0.0, 1.2, 1.0], [0.0, 1.0, 2.0], {}, "expected integer labels"),
        ([0, 1], [0.0, 1.0, 2.0], {}, "got 3 for 2 reports"),
        ([0, 1], [0.0, 1.0], {"weights": [1.0, -1.0]}, "weights >= 0"),
        ([0, 1], [0.0, 1.0], {"weights": [1.0]}, r"weights of shape \[2\]"),
        ([], [], {}, "at least one record"),
        ([[0.5, 0.5]], [0.0], {"num_classes": 3}, r"expected soft reports \[n, 3\]"),
        ([0, 1], [0.0, 1.0], {"rank": 3}, r"rank in 1\.\.2"),
    ],
)
def test_bad_input_is_refused_in_one_line(x_hat, y, options, message, unchecked):
    options = {k: np.asarray(v) if k == "weights" else v for k, v in options.items()}
    with pytest.raises(ValueError, match=message) as error:
        jgram.plugin_log_score(
            np.asarray(x_hat, None if x_hat else int), np.asarray(y), jgram.RBF(1.0), **options
        )
    assert "\n" not in str(error.value)


EAGER = {
    "plugin_score": jgram.plugin_score,
    "gram": jgram.gram,
    "linearise": linearise,
    "bootstrap": partial(jgram.bootstrap, jax.random.key(0), draws=2),
    "matching": partial(stratified_matching_score, jax.random.key(0)),
    "unbiased": unbiased_score,
    "payoffs": lambda x_hat, y, kernel, **options: payoffs(
        observe(kernel, y), x_hat[None], **options
    ),
    "state": lambda x_hat, y, kernel, **options: gram_state(
        x_hat, y, "linear" if kernel == "rbf" else kernel, **options
    ),
}


@pytest.mark.parametrize("name", EAGER)
def test_numbers_that_cannot_be_right_are_refused_before_memory_is_asked_for(name, unchecked):
    """Labels of 2^31 ended the process, 20,000 classes took 32 GB, a NaN was a score of 0."""
    codes, numbers = np.arange(12) % 3, np.arange(12.0)
    far, gap = codes.astype(np.int64), numbers.copy()
    far[4], gap[4] = 2**31, np.nan
    call = EAGER[name]
    assert "at most 4,096 classes, got 2,147,483,649" in refused(call, far, numbers, "rbf")
    assert "got 20,000" in refused(call, codes, numbers, "rbf", num_classes=20_000)
    assert "below 16,777,216, got 2147483648" in refused(call, codes, far, "delta")
    assert "expected finite observations, got nan at [4]" in refused(call, codes, gap, "rbf")
    if name not in ("matching", "unbiased"):
        soft = np.eye(3)[codes]
        soft[4, 1] = np.inf
        assert "finite soft reports, got inf at [" in refused(call, soft, numbers, "rbf")
    if name in ("plugin_score", "gram", "state"):
        many = np.full(12, 4000)
        assert "cells of outcomes and classes" in refused(call, many, 100 * many, "delta")


@pytest.mark.parametrize("call", [contributions, leave_one_out, relabelling_gains])
def test_reports_of_other_records_or_classes_are_refused(call, unchecked):
    labels = np.arange(12) % 3
    found = linearise(labels, np.arange(12.0))
    assert "got 12 for 5 reports" in refused(call, found, labels[:5])
    assert "expected labels 0..2, got 3" in refused(call, found, labels + 1)
