"""Kernels: the paper's constants, the median heuristic, explicit features."""

import itertools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from sklearn.metrics.pairwise import rbf_kernel

import jgram
from jgram.kernels import describe
from jgram.observed import _Held, observe
from tests.components import KERNELS, NUMBERS, Laplacian, N


@pytest.mark.parametrize("name", KERNELS)
def test_one_pair_is_the_definition_and_features_agree(name):
    kernel, y, oracle = KERNELS[name]
    for i, j in ((0, 0), (0, 1), (3, 17)):
        assert float(kernel(y[i], y[j])) == pytest.approx(oracle(y[i], y[j]), rel=1e-4, abs=1e-5)
    if hasattr(kernel, "features"):
        features = np.asarray(kernel.features(y), np.float64)
        dense = [[oracle(a, b) for b in y] for a in y]
        np.testing.assert_allclose(features @ features.T, dense, rtol=1e-4, atol=1e-4)


def test_the_paper_s_gaussian_has_no_factor_two():
    expected = rbf_kernel(NUMBERS, gamma=1 / 1.7**2)
    found = jax.vmap(jax.vmap(jgram.RBF(1.7), (None, 0)), (0, None))(NUMBERS, NUMBERS)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_median_bandwidth_is_the_median_distance_and_survives_duplicates():
    median = jgram.kernels.median_bandwidth
    pairs = [np.linalg.norm(a - b) for i, a in enumerate(NUMBERS) for b in NUMBERS[:i]]
    inflated = np.where(np.arange(100) < 5, 3.0, 0.0)  # the plain median is 0
    for found in (median, jax.jit(median)):
        assert found(NUMBERS) == pytest.approx(np.median(pairs), rel=1e-5)
        assert [found(y) for y in (inflated, np.zeros(10), NUMBERS[:1])] == [3.0, 1.0, 1.0]
    many = np.random.default_rng(0).normal(size=(5000, 2)).astype(np.float32)
    other = median(many, seed=1)
    assert other != median(many) == median(many)
    assert other == pytest.approx(float(median(many)), rel=0.05)
    with jax.enable_x64(True):
        assert median(NUMBERS.astype(float)).dtype == jnp.float64


def test_random_features_approach_the_gaussian():
    dense = rbf_kernel(NUMBERS.astype(float), gamma=1 / 9)
    errors = []
    for size in (64, 4096):
        kernel = jgram.RandomFeatures.draw(jax.random.key(0), size, dimension=4, bandwidth=3.0)
        features = np.asarray(kernel.features(NUMBERS))
        assert features.shape == (N, size)
        errors.append(np.abs(features @ features.T - dense).max())
    assert errors[1] < 0.08 < errors[0]
    with pytest.raises(ValueError, match="even number"):
        jgram.RandomFeatures.draw(jax.random.key(0), 3, dimension=4, bandwidth=1.0)


def test_kernel_parameters_are_pytrees():
    x_hat = np.arange(N) % 3
    widths = jnp.array([1.0, 2.0, 4.0])
    score = lambda width: jgram.plugin_log_score(x_hat, NUMBERS, jgram.RBF(width))  # noqa: E731
    np.testing.assert_allclose(jax.vmap(score)(widths), [score(w) for w in widths], rtol=1e-4)
    with jax.enable_x64(True):
        y = NUMBERS.astype(float)
        score = lambda width: jgram.plugin_log_score(x_hat, y, jgram.RBF(width))  # noqa: E731
        check_grads(score, (2.0,), order=1, modes=["rev"], rtol=1e-6)


def test_resolve_freezes_what_is_read_from_the_data():
    assert jgram.kernels.resolve(jgram.delta, np.array([0, 4])) == jgram.Delta(5)
    frozen = jgram.kernels.resolve(jgram.rbf, NUMBERS)
    assert frozen.bandwidth == jgram.kernels.median_bandwidth(NUMBERS)
    assert jgram.kernels.resolve(frozen, NUMBERS + 1) is frozen
    assert describe(frozen) == f"rbf(bandwidth={float(frozen.bandwidth):.6g})"
    assert describe(jgram.linear) == "linear"
    assert describe(max) == "max"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jgram.kernels.resolve(jgram.delta, NUMBERS), "integer outcomes"),
        (lambda: jgram.kernels.resolve(jgram.delta, np.array([-1, 0])), "got -1"),
        (lambda: jgram.kernels.resolve(jgram.Delta(2), np.array([0, 2])), "below num_outcomes=2"),
        (lambda: jgram.rbf(0.0, 1.0), "bandwidth"),
        (lambda: jgram.PseudoPosterior().features(np.full((3, 2), 0.3)), "summing to 1"),
        (lambda: jgram.PseudoPosterior().features(np.array([[2.0, -1.0]])), "probabilities"),
        (lambda: jgram.PseudoPosterior().features(np.full((3, 2), np.nan)), "probabilities"),
    ],
)
def test_bad_input_is_refused(call, message, unchecked):
    with pytest.raises(ValueError, match=message):
        call()


def test_kernels_of_as_many_fields_are_never_taken_for_each_other():
    """Not even those that were registered with JAX's own ``register_dataclass``."""
    held = [observe(kernel, NUMBERS) for kernel in (jgram.RBF(2.0), Laplacian(2.0), Other(2.0))]
    structures = [jax.tree.structure(one) for one in held]
    assert len({*structures}) == len(held)
    assert all(a != b for a, b in itertools.combinations(structures, 2))
    inside = [jax.tree.structure(_Held(one.kernel)) for one in held]
    assert all(a != b for a, b in itertools.combinations(inside, 2))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Other:
    scale: float

    def __call__(self, y1, y2):
        return jnp.exp(-jnp.max(jnp.abs(y1 - y2)) / self.scale)
