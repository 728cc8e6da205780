"""Ranks from pairs: against loops, and what must never happen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jgram.comparisons import retention, share_degrees, student_quantile
from jgram.contrasts import noise_tests, pair_payoffs
from jgram.kernels import RBF
from jgram.observed import observe
from jgram.ranks import rank_pairs

KEY = jax.random.key(0)
NARROW = RBF(1.5)


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def drawn(seed, shares, n=300):
    rng = np.random.default_rng(seed)
    x = rng.choice(3, n, p=(0.7, 0.2, 0.1))
    y = 2.5 * np.eye(3)[x] + rng.normal(size=(n, 3))
    return np.stack([np.where(rng.random(n) < e, rng.permutation(x), x) for e in shares]), y


compiled_pairs = jax.jit(
    lambda y, reports: pair_payoffs(observe(NARROW, y), reports, num_classes=3, complete=True)
)
compiled_noise = jax.jit(lambda y, reports: noise_tests(observe(NARROW, y), reports, num_classes=3))
compiled_rank = jax.jit(lambda pairs, noise: rank_pairs(KEY, pairs, noise, draws=4000))


def ranked(seed, shares):
    reports, y = drawn(seed, shares)
    pairs = compiled_pairs(y, reports)
    return pairs, compiled_rank(pairs, compiled_noise(y, reports))


@pytest.mark.thorough
def test_agrees_with_sign_flips_by_loops():
    pairs, found = ranked(1, (0.0, 0.1, 0.3, 0.5, 1.0))
    differences = np.asarray(pairs.differences)
    size = np.sqrt(np.sum(differences**2, axis=1))
    z = differences.sum(axis=1) / size
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (8000, differences.shape[1]))
    flipped = np.abs(signs @ differences.T) / size
    first, second = np.triu_indices(5, 1)
    p_value, left = 0.0, list(np.argsort(-np.abs(z)))
    better = np.zeros((5, 5), bool)
    while left:
        pair = left[0]
        p_value = max(p_value, np.mean(flipped[:, left].max(axis=1) >= abs(z[pair])))
        i, j = first[pair], second[pair]
        assert float(found.p_values[i, j]) == pytest.approx(p_value, abs=0.02)
        if p_value <= 0.05 and abs(p_value - 0.05) > 0.02:
            better[(i, j) if z[pair] > 0 else (j, i)] = True
        left = left[1:]
    assert np.all(np.asarray(found.better)[better])
    for report in range(5):
        assert found.first_rank[report] == 1 + sum(found.better[:, report])
        assert found.last_rank[report] == 5 - sum(found.better[report])
    assert np.all(np.asarray(found.first_rank) <= [1, 2, 3, 4, 5])
    assert np.all(np.asarray(found.last_rank) >= [1, 2, 3, 4, 5])


@pytest.mark.thorough
def test_values_are_least_squares():
    pairs, found = ranked(2, (0.0, 0.2, 0.4, 0.6))
    first, second = np.triu_indices(4, 1)
    signs = np.zeros((6, 4))
    signs[np.arange(6), first], signs[np.arange(6), second] = 1, -1
    gaps = np.asarray(pairs.means[:, 0] - pairs.means[:, 1])
    expected = np.linalg.lstsq(signs, gaps)[0]
    np.testing.assert_allclose(found.values, expected, atol=1e-10)
    influences = np.linalg.pinv(signs) @ np.asarray(pairs.values[:, 0] - pairs.values[:, 1])
    errors = influences.std(axis=1) / np.sqrt(influences.shape[1])
    np.testing.assert_allclose(found.standard_errors, errors, rtol=1e-9)
    assert [float(part[found.best]) for part in found.keeps] == [1.0, 1.0, 1.0, True]


@pytest.mark.thorough
def test_more_reports_never_reverse_a_pair():
    for seed in range(3):
        reports, y = drawn(seed, (0.0, 0.3, 0.45, 0.6))
        merged = np.minimum(reports[[3, 3, 3]], 1)
        few = compiled_pairs(y, reports)
        many_reports = np.concatenate([reports, merged])
        many = compiled_pairs(y, many_reports)
        one = compiled_rank(few, compiled_noise(y, reports))
        all_ = compiled_rank(many, compiled_noise(y, many_reports))
        assert not np.any(np.asarray(all_.better)[:4, :4] & np.asarray(one.better).T)
        kept = [n for n, (_, j) in enumerate(zip(*np.triu_indices(7, 1), strict=True)) if j < 4]
        np.testing.assert_allclose(many.differences[np.array(kept)], few.differences, atol=1e-9)


@pytest.mark.thorough
def test_noise_is_never_the_most_reliable():
    for seed in range(10):
        _, found = ranked(seed, (1.0, 1.0, 1.0, 1.0, 1.0))
        assert not np.any(found.noise & found.most_reliable)
        assert not np.any(found.better)
        _, found = ranked(seed, (0.2, 0.2, 1.0, 0.7, 1.0))
        assert not np.any(found.noise & found.most_reliable)
        assert np.any(found.most_reliable)


@pytest.mark.thorough
def test_shares_hold_together_for_a_best_that_the_data_chose():
    held, alone, sole = [], [], []
    for seed in range(60):
        _, found = ranked(seed, (0.3,) * 5)
        keeps = found.keeps
        held.append(np.all((keeps.lower <= 1) & (keeps.upper >= 1)))
        alone.append(float(keeps.ratio.max()))
        sole.append(np.sum(found.most_reliable) < 5)
    assert np.mean(held) > 0.88
    assert np.mean(sole) < 0.13
    assert np.median(alone) == pytest.approx(1.0, abs=0.02)


@pytest.mark.slow
def test_shares_of_ten_reports_hold_together():
    """Where the two best differ on eight records, an error that the normal law covers in 92%."""
    shares, held, alone = np.linspace(0, 0.54, 10), [], []
    first, second = np.triu_indices(10, 1)
    kept = (1 - shares[second]) / (1 - shares[first])
    for seed in range(300):
        rng = np.random.default_rng([7, seed])
        x = rng.integers(0, 3, 200)
        y = 2.0 * np.eye(3)[x] + rng.normal(size=(200, 3))
        reports = np.stack(
            [np.where(rng.random(200) < e, rng.integers(0, 3, 200), x) for e in shares]
        )
        pairs = compiled_pairs(y, reports)
        found = compiled_rank(pairs, np.zeros(10))
        true = (1 - shares) / (1 - shares[found.best])
        held.append(np.all((found.keeps.lower <= true) & (true <= found.keeps.upper)))
        degrees = share_degrees(pairs.values, pairs.means, pairs.weights)
        one = retention(pairs.means, pairs.covariance, student_quantile(1.96, degrees))
        alone.append((one.lower <= kept) & (kept <= one.upper))
    assert 0.93 < np.mean(held) < 0.99
    assert np.mean(alone, axis=0)[0] > 0.925  # the two best
    assert np.mean(alone) == pytest.approx(0.95, abs=0.015)


@pytest.mark.thorough
def test_blocks_widen_what_time_order_repeats():
    reports, y = drawn(3, (0.1, 0.4, 0.4))
    once = compiled_pairs(y, reports)
    copies = np.repeat(np.arange(300), 3)
    pairs = jax.tree.map(
        lambda leaf: jnp.repeat(leaf, 3, axis=-1) if leaf.shape[-1:] == (300,) else leaf, once
    )
    noise = jnp.zeros(3)
    blocked = rank_pairs(KEY, pairs, noise, groups=copies)
    np.testing.assert_allclose(blocked.p_values, rank_pairs(KEY, once, noise).p_values, atol=1e-9)
    assert np.all(blocked.p_values >= rank_pairs(KEY, pairs, noise).p_values - 0.02)


def test_number_of_pairs():
    reports, y = drawn(3, (0.1, 0.4, 0.4))
    with pytest.raises(ValueError, match="3 pairs of 3 reports, got 1"):
        rank_pairs(KEY, compiled_pairs(y, reports[:2]), np.zeros(3))
