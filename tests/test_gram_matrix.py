"""Gram states: batches, shards and streams are sums; counts stay exact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jgram
from jgram import gram_matrix, linear
from jgram.gram_matrix import gram_state
from tests import oracles
from tests.components import KERNELS, X_HAT, D, N

explicit = pytest.mark.parametrize(
    "name", [name for name, (kernel, *_) in KERNELS.items() if hasattr(kernel, "features")]
)


@explicit
@pytest.mark.parametrize("shards", [1, 3, N])
def test_a_state_is_the_sum_of_its_shards(name, shards):
    kernel, y, oracle = KERNELS[name]
    whole = gram_state(X_HAT, y, kernel)
    state = gram_matrix.init(kernel, D, whole.sums.shape[1])
    for x_part, y_part in zip(
        np.array_split(X_HAT, shards), np.array_split(y, shards), strict=True
    ):
        state = gram_matrix.update(state, x_part, y_part, kernel)
    np.testing.assert_allclose(state.sums, whole.sums, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(state.counts, np.bincount(X_HAT))
    expected = oracles.gram(X_HAT, y, oracle, D)
    means = np.asarray(state.sums) / N
    np.testing.assert_allclose(means @ means.T, expected, rtol=1e-4, atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=8, max_size=8), st.data())
def test_merge_is_concatenation_and_init_is_neutral(records, data):
    cut = data.draw(st.sampled_from([1, 4, 7]))
    x_hat, y = np.array(records).T
    kernel = jgram.Delta(4)
    empty = gram_matrix.init(kernel, 3, 4)
    first, second, whole = (
        gram_matrix.update(empty, x_hat[part], y[part], kernel)
        for part in (slice(cut), slice(cut, None), slice(None))
    )
    for merged in (
        gram_matrix.merge(first, second),
        gram_matrix.merge(second, first),
        gram_matrix.merge(whole, empty),
    ):
        jax.tree.map(np.testing.assert_array_equal, merged, whole)
    assert whole.sums.dtype == whole.counts.dtype == jnp.int32


def test_counts_stay_exact_where_float32_stops():
    n = 2**24 + 1001
    x_hat, y = np.zeros(n, np.int32), np.zeros(n, np.int32)
    x_hat[-1] = 1
    table = gram_matrix.joint_table(x_hat, y, num_outcomes=2)
    np.testing.assert_array_equal(table, [[n - 1, 1], [0, 0]])
    big = gram_matrix.GramState(np.array([[2**40, 0], [0, 7]]), np.array([2**40, 7]))
    merged = gram_matrix.merge(big, big)  # on the host, in int64
    assert merged.sums.dtype == np.int64
    assert merged.sums[0, 0] == 2**41


def test_joint_table_counts_cells():
    rng = np.random.default_rng(0)
    x_hat, y, w = rng.integers(0, 3, 50), rng.integers(0, 4, 50), rng.random(50).astype(np.float32)
    expected = np.zeros((4, 3))
    for x, outcome, weight in zip(x_hat, y, w, strict=True):
        expected[outcome, x] += weight
    np.testing.assert_allclose(gram_matrix.joint_table(x_hat, y, weights=w), expected, rtol=1e-5)
    counted = gram_matrix.joint_table(x_hat, y)
    assert counted.dtype == jnp.int32
    assert int(counted.sum()) == 50
    soft = np.eye(3, dtype=np.float32)[x_hat]
    np.testing.assert_allclose(gram_matrix.joint_table(soft, y, weights=w), expected, rtol=1e-5)
    jitted = jax.jit(lambda x, y: gram_matrix.joint_table(x, y, num_classes=3, num_outcomes=4))
    np.testing.assert_array_equal(jitted(x_hat, y), counted)


ONE, INIT = np.array([0, 1]), gram_matrix.init


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gram_matrix.joint_table(ONE, np.array([0, -1])), "got -1"),
        (lambda: gram_matrix.joint_table(ONE, np.array([0.5, 1.0])), "integer outcomes"),
        (lambda: gram_matrix.joint_table(ONE, np.array([0, 3]), num_outcomes=2), "got 3"),
        (lambda: gram_state(ONE, np.zeros(2), jgram.RBF(1.0)), "RandomFeatures"),
        (lambda: gram_matrix.merge(INIT(linear, 2, 3), INIT(linear, 2, 4)), "one shape"),
        (lambda: gram_matrix.update(INIT(linear, 2, 3), ONE[:1], np.zeros((1, 4)), linear),
         r"got sums \(2, 3\) and \(2, 4\): give the delta"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(call, message, unchecked):
    with pytest.raises(ValueError, match=message):
        call()
