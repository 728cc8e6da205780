"""Log-determinants: accuracy where Cholesky of the Gram matrix fails, rank, gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jgram.arrays import float64
from jgram.determinant import (
    determinant,
    eliminate_gram,
    eliminate_sums,
    inverse_cholesky,
    log_determinant_of_sums,
    log_top_determinant,
    log_top_determinant_of_sums,
    solve,
)


def log_determinant(gram):
    return eliminate_gram(gram).log_determinant


def sums_with_ratio(ratio, d=5, m=12, seed=0):
    """Float32 sums whose singular values span ``ratio``."""
    rng = np.random.default_rng(seed)
    left = np.linalg.qr(rng.normal(size=(d, d)))[0]
    right = np.linalg.qr(rng.normal(size=(m, d)))[0]
    return (left * np.geomspace(1.0, 1.0 / ratio, d) @ right.T).astype(np.float32)


def exact(sums):
    return 2.0 * np.log(np.linalg.svd(np.asarray(sums, np.float64), compute_uv=False)).sum()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("ratio", "error"), [(1e1, 1e-5), (1e3, 1e-4), (1e4, 1e-3)])
def test_float32_is_right_to_the_condition_of_the_sums(ratio, error, seed):
    sums = sums_with_ratio(ratio, seed=seed)
    assert log_determinant_of_sums(sums) == pytest.approx(exact(sums), abs=error)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([1, 2, 5]), st.sampled_from([0, 3]), st.integers(0, 2**31))
def test_multiplicative_in_the_misreport_matrix(d, extra, seed):
    rng = np.random.default_rng(seed)
    sums, q = rng.normal(size=(d, d + extra)), rng.normal(size=(d, d))
    with jax.enable_x64(True):
        change = log_determinant_of_sums(q.T @ sums) - log_determinant_of_sums(sums)
        assert change == pytest.approx(2 * np.linalg.slogdet(q)[1], abs=1e-6)
        assert log_determinant(sums @ sums.T) == pytest.approx(exact(sums), abs=1e-6)
        scaled = log_determinant_of_sums(1e-3 * sums) - log_determinant_of_sums(sums)
        assert scaled == pytest.approx(2 * d * np.log(1e-3), abs=1e-6)


def test_rank_and_the_last_pivot_show_what_is_missing():
    wide = np.random.default_rng(0).normal(size=(4, 9)).astype(np.float32)
    dependent = wide.copy()
    dependent[3] = 0.3 * wide[0] + 0.7 * wide[1]
    rare = (
        wide * np.array([1e-6, 1, 1, 1], np.float32)[:, None]
    )  # a rare class is not a dependent one
    for sums, rank in ((wide, 4), (dependent, 3), (rare, 4), (wide[:, :2], 2), (0 * wide, 0)):
        sums_found, gram_found = eliminate_sums(sums), eliminate_gram(sums @ sums.T)
        assert sums_found.rank == gram_found.rank == rank
        assert (sums_found.log_determinant == -np.inf) == (rank < 4)
        assert (gram_found.log_determinant == -np.inf) == (rank < 4)
        products = np.prod(sums_found.pivots), np.prod(gram_found.pivots)
        np.testing.assert_allclose(*products, atol=3e-3)
        assert np.all((sums_found.pivots >= 0) & (sums_found.pivots <= 1 + 1e-6))


def test_a_matrix_that_is_not_positive_has_no_log_determinant():
    assert log_determinant(np.array([[1.0, 2.0], [2.0, 1.0]], np.float32)) == -np.inf
    assert log_determinant(np.array([[-1.0, 0.0], [0.0, -1.0]], np.float32)) == -np.inf


@pytest.mark.thorough
def test_gradient_is_twice_the_pseudo_inverse():
    sums = np.random.default_rng(0).normal(size=(4, 6))
    with jax.enable_x64(True):
        slope = jax.grad(log_determinant_of_sums)(jnp.asarray(sums))
        np.testing.assert_allclose(slope, 2 * np.linalg.pinv(sums).T, rtol=1e-9)
        gram = sums @ sums.T
        slope = jax.grad(log_determinant)(jnp.asarray(gram))
        np.testing.assert_allclose((slope + slope.T) / 2, np.linalg.inv(gram), rtol=1e-8)
        curvature = jax.hessian(log_determinant_of_sums)(jnp.asarray(sums))
        assert np.isfinite(curvature).all()


@pytest.mark.parametrize(
    "matrix", [np.eye(3), np.ones((3, 3)), np.zeros((3, 3)), np.diag([1, 1, 0])]
)
def test_gradients_are_finite_at_equal_and_zero_singular_values(matrix):
    matrix = jnp.asarray(matrix, jnp.float32)
    for function in (log_determinant, log_determinant_of_sums):
        assert np.isfinite(jax.grad(function)(matrix)).all()
    for function in (log_top_determinant, log_top_determinant_of_sums):
        assert np.isfinite(jax.grad(lambda a, f=function: f(a, 2))(matrix)).all()


def test_both_estimates_of_a_batch_agree_with_numpy():
    batch = np.random.default_rng(0).normal(size=(50, 5, 8)).astype(np.float32)
    expected = [exact(sums) for sums in batch]
    np.testing.assert_allclose(jax.vmap(log_determinant_of_sums)(batch), expected, atol=1e-4)
    np.testing.assert_allclose(
        jax.vmap(log_determinant)(batch @ batch.swapaxes(1, 2)), expected, atol=1e-3
    )


@pytest.mark.parametrize("shape", [(3,), (2, 3, 3), (0, 3)])
def test_other_shapes_are_refused(shape, unchecked):
    with pytest.raises(ValueError, match="expected a matrix"):
        eliminate_sums(jnp.zeros(shape))
    with pytest.raises(ValueError, match="square"):
        eliminate_gram(jnp.zeros((2, 3)))


@pytest.mark.parametrize(
    "d", [1, 3, *[pytest.param(d, marks=pytest.mark.thorough) for d in (2, 10, 40)]]
)
def test_small_systems_are_those_of_lapack(d):
    rng = np.random.default_rng(d)
    real, right = rng.normal(size=(5, d, d)), rng.normal(size=(5, d, 2))
    real[0, 0, 0] *= d == 1  # takes a pivot from another row
    close = dict(rtol=1e-9, atol=1e-11)
    with float64():
        for matrix in (real, real + 1j * rng.normal(size=real.shape)):
            given = right.astype(matrix.dtype)
            np.testing.assert_allclose(
                jax.vmap(solve)(matrix, given), np.linalg.solve(matrix, given), **close
            )
            np.testing.assert_allclose(
                jax.jit(jax.vmap(determinant))(matrix), np.linalg.det(matrix), **close
            )
        positive = real @ real.swapaxes(1, 2) + np.eye(d)
        expected = np.linalg.inv(np.linalg.cholesky(positive))
        np.testing.assert_allclose(jax.vmap(inverse_cholesky)(positive), expected, **close)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda a: solve(a, a[:, :2] ** 2), lambda a: jnp.linalg.solve(a, a[:, :2] ** 2)),
        (determinant, jnp.linalg.det),
        (
            lambda a: inverse_cholesky(a @ a.T),
            lambda a: jnp.linalg.inv(jnp.linalg.cholesky(a @ a.T)),
        ),
    ],
)
def test_gradients_of_small_systems(ours, theirs):
    with float64():
        matrix = jnp.asarray(np.random.default_rng(0).normal(size=(4, 4)))
        found, expected = (
            jax.grad(lambda a, f=f: jnp.sum(jnp.sin(f(a))))(matrix) for f in (ours, theirs)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def test_singular_systems():
    singular = jnp.ones((3, 3))
    assert determinant(singular) == 0 == determinant(jnp.zeros((3, 3)))
    assert not jnp.isfinite(solve(singular, jnp.eye(3))).all()
    assert not jnp.isfinite(inverse_cholesky(-jnp.eye(3))).all()
