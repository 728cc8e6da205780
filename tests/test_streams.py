"""Two passes over batches, against all records in memory."""

import jax
import numpy as np
import pytest
from scipy.stats import norm

import jgram
from jgram.comparisons import records_needed, retention, sign_test
from jgram.contrasts import pair_payoffs, payoffs
from jgram.kernels import RandomFeatures
from jgram.observed import observe
from jgram.ranks import rank_pairs
from jgram.streams import stream_payoffs
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


@pytest.mark.parametrize("kernel", [pytest.param("delta", marks=pytest.mark.thorough), "features"])
def test_streams_say_what_memory_says(kernel):
    reports, y, kernel = records(kernel)
    weights = np.arange(N) % 3 + 1.0 if isinstance(kernel, jgram.Delta) else None
    cuts = [slice(0, 50), slice(50, 100), slice(100, N)]
    batches = [
        (reports[:, cut], y[cut], *(() if weights is None else (weights[cut],))) for cut in cuts
    ]
    found = stream_payoffs(batches, kernel, num_classes=CLASSES)
    with jax.enable_x64(True):
        observed = observe(kernel, y)
        exact = pair_payoffs(observed, reports, num_classes=CLASSES, weights=weights)
        alone = payoffs(observed, reports[2:], num_classes=CLASSES, weights=weights)
        names = dict(zip("abc", reports, strict=True))
        published = uncertainties(names, observed, num_classes=CLASSES, weights=weights)
        for field in ("means", "covariance", "seen"):
            np.testing.assert_allclose(
                getattr(found.pairs, field), getattr(exact, field), rtol=1e-9, atol=1e-14
            )
        for said, known in zip(
            (_judge(found.pairs, i) for i in range(3)),
            (_judge(exact, i) for i in range(3)),
            strict=True,
        ):
            np.testing.assert_allclose(said, known, rtol=1e-8)
        ranked = [
            rank_pairs(jax.random.key(0), pairs, found.noise_p_values)
            for pairs in (found.pairs, exact)
        ]
        np.testing.assert_allclose(ranked[0].values, ranked[1].values, rtol=1e-9)
        np.testing.assert_allclose(ranked[0].standard_errors, ranked[1].standard_errors, rtol=1e-8)
        np.testing.assert_allclose(ranked[0].keeps.lower, ranked[1].keeps.lower, atol=0.02)
    assert found.num_records == (N if weights is None else weights.sum())
    np.testing.assert_allclose(found.log_scores, [x.log_score for x in published.values()])
    errors = [x.standard_error for x in published.values()]
    np.testing.assert_allclose(found.standard_errors, errors, rtol=1e-9)
    sure = norm.sf(float(alone.means[0]) / float(alone.covariance[0, 0]) ** 0.5)
    assert float(found.noise_p_values[2]) == pytest.approx(float(sure))


def _judge(pairs, i):
    each = (pairs.differences[i], pairs.weights[i])
    keeps = retention(pairs.means[i], pairs.covariance[i], 1.96)
    return np.array([*sign_test(*each), records_needed(*each), *keeps[:3]], float)


def test_what_cannot_be_streamed_is_refused(unchecked):
    reports, y, kernel = records("delta")
    whole = [(reports, y)]
    with pytest.raises(ValueError, match="can be read twice"):
        stream_payoffs(iter(whole), kernel, num_classes=CLASSES)
    with pytest.raises(ValueError, match="a kernel with features"):
        stream_payoffs(whole, jgram.RBF(1.0), num_classes=CLASSES)
    with pytest.raises(ValueError, match="at least one batch"):
        stream_payoffs([], kernel, num_classes=CLASSES)
    with pytest.raises(ValueError, match=r"labels 0\.\.1"):
        stream_payoffs(whole, kernel, num_classes=2)
    with pytest.raises(ValueError, match="weights"):
        stream_payoffs([(reports, y[:-1])], kernel, num_classes=CLASSES)
