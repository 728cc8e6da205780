"""Passes over batches, against all records in memory."""

from functools import partial

import jax
import numpy as np
import pytest

import jgram
from jgram.comparisons import records_needed, retention, sign_test
from jgram.contrasts import noise_tests_of, payoffs_alone, payoffs_of_pairs, products
from jgram.kernels import RandomFeatures
from jgram.observed import observe
from jgram.ranks import rank_pairs
from jgram.streams import Stream
from jgram.uncertainty import uncertainties

N, CLASSES = 150, 3


def records(kernel):
    rng = np.random.default_rng(3)
    truth = rng.integers(0, CLASSES, N)
    reports = np.stack(
        [np.where(rng.random(N) < e, rng.integers(0, CLASSES, N), truth) for e in (0.1, 0.3, 0.6)]
    )
    if kernel == "delta":
        return reports, np.where(rng.random(N) < 0.3, rng.integers(0, 4, N), truth), jgram.Delta(4)
    drawn = RandomFeatures.draw(jax.random.key(0), 64, dimension=2, bandwidth=2.0)
    return reports, rng.normal(size=(CLASSES, 2))[truth] * 2 + rng.normal(size=(N, 2)), drawn


@pytest.mark.thorough
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("kernel", ["delta", pytest.param("features", marks=pytest.mark.thorough)])
def test_streams_say_what_memory_says(kernel, soft):
    reports, y, kernel = records(kernel)
    reports = np.eye(CLASSES)[reports] * 0.7 + 0.1 if soft else reports
    weights = np.arange(N) % 3 + 1.0 if isinstance(kernel, jgram.Delta) else np.ones(N)
    cuts = [slice(0, 50), slice(50, 50), slice(50, 110), slice(110, N)]
    stream = Stream(
        [(reports[:, cut], y[cut], weights[cut]) for cut in cuts], kernel, num_classes=CLASSES
    )
    found = stream.judge()
    with jax.enable_x64(True):
        observed = observe(kernel, y)
        known = products(observed, reports, num_classes=CLASSES, weights=weights)
        pairs = payoffs_of_pairs(known, np.stack(np.triu_indices(3, 1), axis=1))
        names = dict(zip("abc", reports, strict=True))
        published = uncertainties(names, observed, num_classes=CLASSES, weights=weights)
        same = partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-17)
        for said, exact in ((found.pairs, pairs), (found.alone, payoffs_alone(known))):
            for field in ("means", "covariance", "seen"):
                same(getattr(said, field), getattr(exact, field))
        np.testing.assert_allclose(found.noise_p_values, noise_tests_of(known), rtol=1e-9)
        for i in range(3):
            same(_judge(found.pairs, i), _judge(pairs, i), rtol=1e-8)
        ranked = [
            rank_pairs(jax.random.key(0), each, found.noise_p_values)
            for each in (found.pairs, pairs)
        ]
        same(ranked[0].values, ranked[1].values, rtol=1e-9)
        same(ranked[0].standard_errors, ranked[1].standard_errors, rtol=1e-8)
        same(ranked[0].keeps.lower, ranked[1].keeps.lower, atol=0.02)
    assert stream.num_records == weights.sum()
    for said, exact in zip(found.published, published.values(), strict=True):
        for field in ("log_score", "standard_error", "lengths", "inverse", "rank"):
            same(getattr(said, field), getattr(exact, field), rtol=1e-10)
        assert (said.bias is None) == (exact.bias is None)
        assert said.bias is None or said.bias == pytest.approx(exact.bias, rel=1e-9)


@pytest.mark.thorough
def test_one_report_is_paired_with_itself():
    reports, y, kernel = records("delta")
    found = Stream([(reports[:1], y)], kernel, num_classes=CLASSES).judge()
    assert found.pairs.means.shape == (1, 2)
    assert float(found.noise_p_values[0]) < 1e-6


def _judge(pairs, i):
    each = (pairs.differences[i], pairs.weights[i])
    keeps = retention(pairs.means[i], pairs.covariance[i], 1.96)
    return np.array([*sign_test(*each), records_needed(*each), *keeps[:3]], float)


def test_what_cannot_be_streamed_is_refused(unchecked):
    reports, y, kernel = records("delta")
    whole = [(reports, y)]
    with pytest.raises(ValueError, match="can be read twice"):
        Stream(iter(whole), kernel, num_classes=CLASSES)
    with pytest.raises(ValueError, match="a kernel with features"):
        Stream(whole, jgram.RBF(1.0), num_classes=CLASSES)
    with pytest.raises(ValueError, match="at least one batch"):
        Stream([], kernel, num_classes=CLASSES)
    with pytest.raises(ValueError, match=r"labels 0\.\.1"):
        Stream(whole, kernel, num_classes=2)
    with pytest.raises(ValueError, match="weights"):
        Stream([(reports, y[:-1])], kernel, num_classes=CLASSES)
