"""Exact binomial and multinomial counts against SciPy's distributions."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jgram.simulate import sampling
from jgram.simulate.sampling import multinomial

pytestmark = pytest.mark.thorough

RARE = 1e-4  # of a fixed key's p-value: a wrong sampler is far below


def binomial(key, n, p):
    return multinomial(key, n, jnp.stack([p, 1 - p], axis=-1))[..., 0]


def chi_square_p_value(sample, distribution):
    """Goodness of fit over classes of expected size at least 10."""
    edges, mass = [], 0.0
    support = np.arange(sample.min() - 1, sample.max() + 2)
    for k, p in zip(support, distribution.pmf(support), strict=True):
        mass += p
        if mass * len(sample) >= 10:
            edges.append(k)
            mass = 0.0
    below = np.array([np.sum(sample <= edge) for edge in edges[:-1]] + [len(sample)])
    probability = np.append(distribution.cdf(edges[:-1]), 1.0)
    observed, expected = np.diff(below, prepend=0), np.diff(probability, prepend=0) * len(sample)
    return stats.chisquare(observed, expected).pvalue


# Means of 400 and below go through inversion, those above through rejection.
@pytest.mark.parametrize(
    ("n", "p"),
    [(1, 0.3), (7, 0.5), (40, 0.02), (160, 0.9), (799, 0.5), (801, 0.5), (5000, 0.3), (10**6, 1e-3),
     (10**9, 0.7)],
)  # fmt: skip
def test_binomial_distribution(n, p):
    draws = np.asarray(binomial(jax.random.key(n), jnp.full(20_000, n), jnp.float32(p)))
    exact = float(jnp.float32(p))
    assert draws.dtype == np.int32
    assert chi_square_p_value(draws, stats.binom(n, exact)) > RARE


@pytest.mark.parametrize(("n", "p"), [(61, 0.5), (799, 0.04), (10**6, 1e-4)])
def test_rejection_from_where_a_tpu_takes_it(monkeypatch, n, p):
    monkeypatch.setattr(sampling, "_INVERSION_MEAN", sampling._TPU_INVERSION_MEAN)
    draws = np.asarray(binomial(jax.random.key(n), jnp.full(20_001, n), jnp.float32(p)))
    assert chi_square_p_value(draws, stats.binom(n, float(jnp.float32(p)))) > RARE


def test_certain_and_impossible():
    n = jnp.array([0, 1, 2**24 + 1, 2**31 - 1])
    assert (binomial(jax.random.key(0), n, jnp.zeros(4)) == 0).all()
    assert (binomial(jax.random.key(0), n, jnp.ones(4)) == n).all()


@pytest.mark.parametrize("probabilities", [(0.2, 0.3, 0.5), (0.7, 0.1, 0.2), (0.1, 0.8, 0.1)])
def test_multinomial_distribution_of_small_counts(probabilities):
    n, draws = 3, 30_000
    found = np.asarray(multinomial(jax.random.key(1), jnp.full(draws, n), jnp.array(probabilities)))
    outcomes = [k for k in itertools.product(range(n + 1), repeat=3) if sum(k) == n]
    observed = np.array([np.sum((found == k).all(axis=1)) for k in outcomes])
    expected = draws * stats.multinomial(n, probabilities).pmf(outcomes)
    assert observed.sum() == draws
    assert stats.chisquare(observed, expected * draws / expected.sum()).pvalue > RARE


def test_multinomial_moments_when_counts_are_large():
    n, draws, p = 10**8, 4000, np.array([0.05, 0.5, 0.15, 0.3])
    found = np.asarray(multinomial(jax.random.key(2), jnp.full(draws, n), jnp.array(p)), float)
    covariance = n * (np.diag(p) - np.outer(p, p))
    error = (found.mean(axis=0) - n * p) / np.sqrt(np.diag(covariance) / draws)
    assert np.abs(error).max() < 4.5
    # A correlation of N normal pairs has a standard error of at most 1/sqrt(N).
    deviation = np.corrcoef(found.T) - covariance / np.sqrt(
        np.outer(np.diag(covariance), np.diag(covariance))
    )
    assert np.abs(deviation).max() < 4.5 / np.sqrt(draws)
    assert np.abs(found.std(axis=0) / np.sqrt(np.diag(covariance)) - 1).max() < 0.06


def test_no_record_is_lost_beyond_2_to_24():
    n = jnp.array([2**24 + 1, 2**31 - 1, 10**9 + 7])
    counts = multinomial(jax.random.key(0), n, jnp.array([0.1, 0.0, 0.6, 0.3]))
    assert (counts.sum(axis=1) == n).all()
    assert (counts[:, 1] == 0).all()
    assert (counts >= 0).all()


def test_same_counts_by_every_route():
    p = jnp.array([[0.2, 0.3, 0.5], [0.9, 0.05, 0.05]])
    n = jnp.array([[50], [10**6]])  # by inversion and by rejection
    keys = jax.random.split(jax.random.key(3), 4)
    eager = jnp.stack([multinomial(k, n, p) for k in keys])
    assert eager.shape == (4, 2, 2, 3)
    assert (jax.vmap(multinomial, (0, None, None))(keys, n, p) == eager).all()
    assert (jax.jit(jax.vmap(multinomial, (0, None, None)))(keys, n, p) == eager).all()
    with jax.enable_x64(True):
        assert (jnp.stack([multinomial(k, n, p) for k in keys]) == eager).all()


def test_an_eager_call_compiles_once():
    before = sampling._draw_all_but_last._cache_size()
    for seed in range(3):
        multinomial(jax.random.key(seed), jnp.full(11, 5), jnp.ones(3))
    assert sampling._draw_all_but_last._cache_size() == before + 1
