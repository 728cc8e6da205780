"""Policies against the paper's wording, and records against contingency tables."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jgram import simulate
from jgram.simulate import policies

RARE = 1e-4
D = 5
EXPERIMENT = simulate.random_experiment(jax.random.key(7), D)


def most_similar(x):
    """The label, other than x, whose observation distribution has the largest cosine."""
    columns = np.asarray(EXPERIMENT, float).T
    cosines = columns @ columns[x] / np.linalg.norm(columns, axis=1)
    return int(np.argmax(np.where(np.arange(D) == x, -1.0, cosines)))


def said(rng, x, n):
    """Reports drawn as the text says, one policy after the other, 1-based as there."""
    x = x + 1
    others = np.array([label for label in range(1, D + 1) if label != x])
    coin = rng.random(n)
    return {
        "uniform": rng.integers(1, D + 1, n),
        "asymmetric_neighbour": np.where(coin < 0.85, min(x + 1, D), rng.choice(others, n)),
        "row_similar": np.full(n, most_similar(x - 1) + 1),
        "merge": np.full(n, 1 if x in (1, 2) else x),
        "group_up_down": np.where(coin < 0.5, min(x + 1, D), max(x - 1, 1)),
        "normal": np.clip(np.round(rng.normal(x, 0.7, n)), 1, D).astype(int),
    }


MATRICES = {
    "uniform": policies.uniform(D),
    "asymmetric_neighbour": policies.asymmetric_neighbour(D),
    "row_similar": policies.row_similar(EXPERIMENT),
    "merge": policies.merge_classes(D),
    "group_up_down": policies.group_up_down(D),
    "normal": policies.normal(D, 0.7),
}


@pytest.mark.parametrize("name", MATRICES)
def test_policy_is_what_the_text_says(name):
    rng, n = np.random.default_rng(0), 40_000
    matrix = np.asarray(MATRICES[name], float)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-6)
    for x in range(D):
        frequency = np.bincount(said(rng, x, n)[name] - 1, minlength=D) / n
        error = np.sqrt(matrix[x] * (1 - matrix[x]) / n) + 1e-6
        assert (np.abs(frequency - matrix[x]) < 4.5 * error).all(), (x, frequency, matrix[x])


@pytest.mark.parametrize(
    "weights", [{}, dict(off=1.2, diagonal=25.0, local=5.0, up=1.0, default=0.2)]
)
def test_mixed_rows_have_the_dirichlet_mean_and_spread(weights):
    w = dict(off=0.2, diagonal=6.0, local=1.0, up=0.4, growth=0.5, default=0.6) | dict(weights)
    i, j = np.indices((D, D))
    alpha = w["off"] + w["diagonal"] * (i == j) + w["default"] * (j == 0)
    alpha += w["local"] * np.exp(-np.minimum(abs(i - j), D - abs(i - j)))
    alpha += w["up"] * np.exp(w["growth"] * (j - i))
    keys = jax.random.split(jax.random.key(0), 4000)
    draws = np.asarray(jax.vmap(lambda key: policies.mixed(key, D, **weights))(keys), float)
    total = alpha.sum(axis=1, keepdims=True)
    mean = alpha / total
    deviation = np.sqrt(mean * (1 - mean) / (total + 1))
    assert np.abs((draws.mean(axis=0) - mean) / deviation).max() * np.sqrt(4000) < 4.5
    assert np.abs(draws.std(axis=0) / deviation - 1).max() < 0.1


def test_no_error_is_the_identity_and_sigma_zero_too():
    np.testing.assert_array_equal(policies.mix(policies.uniform(D), 0.0), np.eye(D))
    np.testing.assert_array_equal(policies.normal(D, 0.0), np.eye(D))


def test_corrupt_follows_its_transition():
    n, transition = 100_000, policies.mix(policies.mixed(jax.random.key(0), D), 0.4)
    x = jnp.arange(n) % D
    x_hat = policies.corrupt(jax.random.key(1), x, transition)
    assert x_hat.dtype == jnp.int32
    for label in range(D):
        observed = np.bincount(np.asarray(x_hat)[np.asarray(x) == label], minlength=D)
        expected = np.asarray(transition[label], float)
        assert stats.chisquare(observed, n / D * expected / expected.sum()).pvalue > RARE


def test_an_impossible_last_label_is_never_reported():
    # 0.1 + 0.2 + ... leaves a rounding gap below one, which must not fall to the last label.
    transition = jnp.tile(jnp.array([0.1, 0.2, 0.3, 0.4, 0.0]) / 1.00001, (5, 1))
    x_hat = policies.corrupt(jax.random.key(0), jnp.zeros(2_000_000, jnp.int32), transition)
    assert int(x_hat.max()) == 3


@pytest.mark.thorough
def test_tables_and_records_have_the_same_distribution():
    transition = jnp.array([[0.6, 0.3, 0.1], [0.2, 0.8, 0.0], [0.25, 0.25, 0.5]])
    x, draws = jnp.array([0, 0, 1, 2]), 20_000
    keys = jax.random.split(jax.random.key(0), draws)
    counts = jnp.bincount(x, length=3)
    tables = jax.jit(jax.vmap(lambda k: policies.corrupt_counts(k, counts, transition)))(keys)
    records = jax.jit(jax.vmap(lambda k: policies.corrupt(k, x, transition)))(keys)
    of_records = jax.vmap(lambda x_hat: jnp.zeros((3, 3), jnp.int32).at[x, x_hat].add(1))(records)
    # Exact probability of every table, by enumeration of the reports.
    exact: dict[bytes, float] = {}
    for reports in itertools.product(range(3), repeat=4):
        table = np.zeros((3, 3), np.int32)
        np.add.at(table, (np.asarray(x), list(reports)), 1)
        probability = float(np.prod(np.asarray(transition, float)[np.asarray(x), list(reports)]))
        exact[table.tobytes()] = exact.get(table.tobytes(), 0.0) + probability
    exact = {table: p for table, p in exact.items() if p > 0}
    for sample in (tables, of_records):
        seen = [np.ascontiguousarray(table).tobytes() for table in np.asarray(sample)]
        observed = np.array([seen.count(table) for table in exact])
        expected = draws * np.array(list(exact.values()))
        assert observed.sum() == draws
        assert stats.chisquare(observed, expected * draws / expected.sum()).pvalue > RARE


@pytest.mark.thorough
def test_counts_keep_their_other_axes():
    counts = jnp.arange(2 * 3 * 4).reshape(2, 3, 4) * 2**20
    sample = policies.corrupt_counts(jax.random.key(0), counts, policies.uniform(2))
    assert sample.shape == (2, 3, 4, 2)
    assert (sample.sum(axis=-1) == counts).all()


@pytest.mark.parametrize(
    ("counts", "transition", "message"),
    [
        ([1, 2, 3], np.eye(2), "expected counts [2, ...]"),
        ([1.0, 2.0], np.eye(2), "expected integer counts"),
        ([1, -2], np.eye(2), "expected counts >= 0, got -2"),
        ([1, 2], np.ones((2, 3)), "expected a transition [d, d]"),
        ([1, 2], np.ones((2, 2)), "row-stochastic"),
        ([1, 2], np.array([[1.5, -0.5], [0.0, 1.0]]), "row-stochastic"),
        ([1, 2], np.full((2, 2), np.nan), "row-stochastic"),
    ],
)
def test_bad_input_is_refused(unchecked, counts, transition, message):
    with pytest.raises(ValueError, match=r"expected") as error:
        policies.corrupt_counts(jax.random.key(0), jnp.array(counts), jnp.array(transition))
    assert message in str(error.value)
