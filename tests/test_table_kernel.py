"""The kernel of tables against double loops, brute-force medians and scikit-learn's shrinkage."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf as reference

from jgram.kernels import MultiscaleRBF, median_distance
from jgram.table_kernel import TableKernel, ledoit_wolf


def points(n=40, k=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, k)) @ np.diag(1 + np.arange(k))


def four(square):
    return np.mean([np.exp(-square * 4**j) for j in range(4)])


def brute_median(y):
    y = np.asarray(y, float)
    return np.median([np.linalg.norm(a - b) for i, a in enumerate(y) for b in y[:i]])


def test_multiscale_is_the_mean_of_four_gaussians_of_halved_bandwidths():
    y = points()
    kernel = MultiscaleRBF().resolve(y)
    width = brute_median(y)
    expected = [[four(np.sum((a - b) ** 2) / width**2) for b in y] for a in y]
    prepared = kernel.prepare(y)
    np.testing.assert_allclose(kernel.block(prepared, prepared), expected, atol=2e-5)
    np.testing.assert_allclose(kernel(y[0], y[5]), expected[0][5], rtol=1e-5)
    assert kernel.bandwidth == pytest.approx(width)
    assert kernel.resolve(2 * y) is kernel
    with pytest.raises(ValueError, match="resolve"):
        MultiscaleRBF()(y[0], y[1])


@pytest.mark.parametrize(("offset", "unit"), [(1e7, 1), (1.7e9, 1), (0, 1e-20), (0, 1e20)])
def test_offsets_and_units_change_nothing(offset, unit):
    y = np.round(points() * 1024) / 1024  # exact at the offset
    for of in (MultiscaleRBF().resolve, TableKernel.of):
        here, there = ((of(x), of(x).prepare(x)) for x in (y, y * unit + offset))
        expected, found = (kernel.block(prepared, prepared) for kernel, prepared in (here, there))
        np.testing.assert_allclose(found, expected, atol=2e-5)


@pytest.mark.parametrize(
    ("values", "median"),
    [([[0.0], [0], [0], [0], [3]], 3), ([[2.0], [2]], 1), ([[5.0]], 1), ([[0.0], [1], [3]], 2)],
)
def test_the_median_distance_of_duplicates(values, median):
    assert median_distance(np.array(values)) == pytest.approx(median)


@pytest.mark.parametrize("k", [1, 3, 20])
def test_the_median_distance_is_the_median_of_all_distances(k):
    y = points(k=k)
    assert median_distance(y) == pytest.approx(brute_median(y), rel=1e-9)
    assert median_distance(y.astype(np.float32) + 1e3) == pytest.approx(brute_median(y), rel=1e-3)
    many = points(5000, k)  # frozen on a thousand
    assert median_distance(many) == pytest.approx(median_distance(many[:2000]), rel=0.05)


@pytest.mark.parametrize("n", [20, 200])
def test_shrinkage_agrees_with_scikit_learn(n):
    y = points(n, 6)
    shrunk, share = ledoit_wolf(y)
    expected, expected_share = reference(y)
    np.testing.assert_allclose(shrunk, expected)
    assert share == pytest.approx(expected_share)


def table_oracle(y, maps, spreads):
    """Each view's kernel over its spread, by loops."""
    total, scale = np.zeros((len(y), len(y))), 0.0
    for view, part in zip(maps, spreads, strict=True):
        seen = y @ view
        width = brute_median(seen)
        kernel = np.array([[four(np.sum((a - b) ** 2) / width**2) for b in seen] for a in seen])
        centring = np.eye(len(y)) - 1 / len(y)
        off = (centring @ kernel @ centring)[~np.eye(len(y), dtype=bool)]
        total += part * kernel / off.std()
        scale += part / off.std()
    return total / scale


def inverse_root(y):
    values, vectors = np.linalg.eigh(reference(y)[0])
    return vectors @ np.diag(values**-0.5) @ vectors.T


def test_columns_block_and_everything_weigh_a_third_each():
    y = points(k=5)
    table, block = y[:, :3], y[:, 3:]
    kernel = TableKernel.of(y, 3)
    scale = np.sqrt(table.var(axis=0).sum() / block.var(axis=0).sum())
    none = np.zeros((2, 3))
    maps = [
        np.vstack([np.eye(3), none]),
        np.vstack([inverse_root(table), none]),
        np.eye(5)[:, 3:],
        np.diag([1, 1, 1, scale, scale]),
    ]
    prepared = kernel.prepare(y)
    expected = table_oracle(y, maps, [0.5, 0.5, 1, 1])
    np.testing.assert_allclose(kernel.block(prepared, prepared), expected, atol=2e-5)
    only = TableKernel.of(block, 0)
    plain = MultiscaleRBF().resolve(block)
    np.testing.assert_allclose(
        only.block(only.prepare(block), only.prepare(block)),
        plain.block(plain.prepare(block), plain.prepare(block)),
        atol=2e-5,
    )


@pytest.mark.parametrize("kernel", [TableKernel.of(points()), MultiscaleRBF().resolve(points())])
def test_kernels_pass_through_jit_and_differentiate_at_duplicates(kernel):
    y = jnp.asarray(points()[:6].repeat(2, axis=0))

    def total(kernel, y):
        prepared = kernel.prepare(y)
        return jnp.sum(kernel.block(prepared, prepared) * jnp.arange(12.0))

    np.testing.assert_allclose(jax.jit(total)(kernel, y), total(kernel, y), rtol=1e-5)
    assert np.isfinite(jax.grad(total, argnums=1)(kernel, y)).all()
    pairs = jax.vmap(lambda a: jax.vmap(lambda b: kernel(a, b))(y))(y)
    prepared = kernel.prepare(y)
    np.testing.assert_allclose(kernel.block(prepared, prepared), pairs, atol=2e-5)


def test_degenerate_tables_have_a_kernel():
    for y in (np.zeros((5, 2)), np.ones((1, 3)), np.array([[0.0], [1]])):
        kernel = TableKernel.of(y)
        prepared = kernel.prepare(y)
        assert np.isfinite(kernel.block(prepared, prepared)).all()
    constant = np.column_stack([np.arange(8.0), np.zeros(8)])
    kernel = TableKernel.of(constant)
    assert np.isfinite(kernel.block(kernel.prepare(constant), kernel.prepare(constant))).all()
