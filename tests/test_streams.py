"""Records that stay in files, against all records in memory."""

import jax
import numpy as np
import pytest

import jgram
from jgram import binding
from jgram.comparisons import records_needed, sign_test
from jgram.contrasts import noise_tests_of, pair_payoffs, payoffs_alone, products
from jgram.kernels import RandomFeatures
from jgram.observed import observe
from jgram.streams import Records, Stream
from jgram.uncertainty import uncertainties

pytestmark = pytest.mark.thorough

N, CLASSES = 150, 3


def records(gaps=False, n=N):
    rng = np.random.default_rng(3)
    truth = rng.integers(0, CLASSES, n)
    reports = np.stack(
        [np.where(rng.random(n) < e, rng.integers(0, CLASSES, n), truth) for e in (0.1, 0.3, 0.6)]
    )
    reports[rng.random(reports.shape) < 0.1 * gaps] = -1
    return reports, rng.normal(size=(CLASSES, 2))[truth] * 2 + rng.normal(size=(n, 2))


def streamed(kernel, reports, y, weights, drawn=None):
    labels, pattern = np.unique(reports, axis=1, return_inverse=True)
    whole = Records(pattern.ravel(), y, weights)
    cuts = [slice(0, 50), slice(50, 50), slice(50, 110), slice(110, N)]
    batches = [Records(*(part[cut] for part in whole)) for cut in cuts]
    sample = whole if drawn is None else Records(*(part[drawn] for part in whole))
    return Stream.of(kernel, labels, CLASSES, sample, lambda work: [work([b]) for b in batches])


@pytest.mark.parametrize("gaps", [False, True])
def test_streams_say_what_memory_says(gaps):
    reports, y = records(gaps)
    weights = np.arange(N) % 3 + 1.0
    with jax.enable_x64(True):
        drawn = RandomFeatures.draw(jax.random.key(0), 64, dimension=2, bandwidth=2.0)
        kernel = RandomFeatures(np.asarray(drawn.frequencies))
        found = streamed(kernel, reports, y, weights).judge()
        names = np.array([[1, 2, 0], [0, 1, 2], [0, 1, 2]])
        renamed = np.where(reports >= 0, np.argsort(names)[np.arange(3)[:, None], reports], -1)
        again = streamed(kernel, renamed, y, weights).judge(names)
        observed, options = observe(kernel, y), {"num_classes": CLASSES, "weights": weights}
        known = products(observed, reports, **options)
        pairs, alone = pair_payoffs(observed, reports, **options), payoffs_alone(known)
        published = uncertainties(dict(zip("abc", reports, strict=True)), observed, **options)
        other = uncertainties(dict(zip("abc", renamed, strict=True)), observed, **options)
        noise = noise_tests_of(known)
    for one, exact in ((found, published), (again, other)):
        for field in pairs._fields:
            same(getattr(one.pairs, field), getattr(pairs, field))
            same(getattr(one.alone, field), getattr(alone, field))
        np.testing.assert_allclose(one.noise_p_values, noise, rtol=1e-9)
        for said, score in zip(one.published, exact.values(), strict=True):
            for field in ("lengths", "inverse"):
                same(getattr(said.line, field), getattr(score.line, field))
            for field in ("log_score", "standard_error", "contributions"):
                same(getattr(said, field), getattr(score, field))
            assert said.bias == (score.bias and pytest.approx(score.bias, rel=1e-9))


def same(found, exact):
    np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-10)


def test_a_sample_has_the_moments_of_all_records():
    reports, y = records()
    drawn = np.union1d(np.arange(0, N, 2), np.unique(reports, axis=1, return_index=True)[1])
    with jax.enable_x64(True):
        kernel = RandomFeatures.draw(jax.random.key(0), 64, dimension=2, bandwidth=2.0)
        kernel = RandomFeatures(np.asarray(kernel.frequencies))
        some = streamed(kernel, reports, y, np.ones(N), drawn)
        found, known = some.judge(), streamed(kernel, reports, y, np.ones(N)).judge()
        for i in range(3):  # spreads are of the sample, and scorers take them
            one, all_of_it = (jax.tree.map(lambda x, i=i: x[i], x.pairs) for x in (found, known))
            same(one.weights.sum(), N)
            for field in ("means", "covariance"):
                np.testing.assert_allclose(
                    getattr(one, field), getattr(all_of_it, field), rtol=0.02, atol=1e-4
                )
            for test in (sign_test, records_needed):
                tested = (np.ravel(test(x.differences, x.weights))[0] for x in (one, all_of_it))
                np.testing.assert_allclose(*tested, rtol=0.03)
    assert len(drawn) < 0.8 * N
    assert some.drawn == len(drawn) / N


def test_a_binding_is_judged_as_what_it_is_made_of():
    reports, y = records(n=300)
    named = dict(zip("abc", reports, strict=True))
    for bound, known in (
        (binding.bind(named, y), jgram.rank_reports(named, y)),
        (binding.bind(named, None), jgram.rank_reports(named)),
    ):
        assert jgram.rank_reports(bound) == known
