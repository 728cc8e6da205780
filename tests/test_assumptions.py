"""What could turn an order: each figure by another route, and the settings that it is for."""

import numpy as np
import pytest
from scipy.optimize import brentq

from experiments import evidence
from experiments.evidence import around, flipped
from jgram import rank_reports
from jgram.arrays import float64
from jgram.assumptions import breakdown_share, disagreement_test, leaning, record_weighted, strata
from jgram.binding import bind_observations
from jgram.contrasts import pair_payoffs


def hard(seed, n=1000):
    """``a`` errs anywhere (10% wrong); ``b`` only where the observations are noisy (20% wrong)."""
    return evidence.hard(np.random.default_rng(seed), n, share=0.75)


def leak(seed, n=1000):
    """``b`` is predicted from the observations by their nearest neighbours' labels."""
    return evidence.leak(np.random.default_rng(seed), n)


def test_every_record_weighs_alike_by_hand():
    reports, y = hard(0, 400)
    with float64():
        observed = bind_observations(y)[0]
        paid = pair_payoffs(observed, np.stack([*reports.values()]), num_classes=3)
    paid = type(paid)(*(np.asarray(leaf)[0] for leaf in paid))
    found, kept = record_weighted(paid)
    place, contrast = strata(paid.sureness, paid.weights), 0.0
    for s, stratum in enumerate(kept):
        a, b = paid.values[:, place == s].mean(axis=1)
        contrast += 0.25 * (a - b) / ((a + b) / 2)
        assert stratum.means[1] / stratum.means[0] == pytest.approx(b / a)
    keeps = found.means[1] / found.means[0]
    assert keeps == pytest.approx((1 - contrast / 2) / (1 + contrast / 2))
    assert found.means.mean() == pytest.approx(paid.means.mean(), rel=1e-6)
    groups = np.arange(400)
    np.testing.assert_allclose(record_weighted(paid, groups)[0].covariance, found.covariance)


def test_bounds_by_other_routes():
    rng = np.random.default_rng(1)
    v, w = rng.normal(0.3, 1.0, 300), rng.integers(1, 3, 300).astype(float)
    by_copies = np.repeat(v, w.astype(int))

    def z(lean):
        bias = (lean - 1) / (lean + 1) * np.abs(by_copies).sum()
        spread = np.sqrt(4 * lean / (1 + lean) ** 2 * (by_copies**2).sum())
        return (by_copies.sum() - bias) / spread - 1.96

    assert leaning(v, w) == pytest.approx(brentq(z, 1, 9))
    assert leaning(v - v.mean(), np.ones(300)) == 1.0
    gains = rng.exponential(size=300)
    share = breakdown_share(v, gains, np.ones(300))
    ordered = np.sort(gains + v)[::-1]
    assert share == pytest.approx((np.argmax(np.cumsum(ordered) >= v.sum()) + 0.5) / 300, abs=2e-3)
    copies = breakdown_share(np.repeat(v, 2), np.repeat(gains, 2), np.ones(600))
    assert (
        share == pytest.approx(copies) == pytest.approx(breakdown_share(v, gains, 2 * np.ones(300)))
    )
    turned = np.argmax(np.cumsum(np.sort(gains)[::-1]) >= v.sum())
    assert breakdown_share(-v, gains, np.ones(300)) == pytest.approx((turned + 0.5) / 300, abs=2e-3)
    assert breakdown_share(v, -v, np.ones(300)) is None


def test_a_test_without_degrees_of_freedom_or_disagreement_says_nothing():
    x, y, ones = np.arange(40) % 2, np.arange(40.0)[:, None], np.ones(40)
    assert disagreement_test(x, x, y, ones).p_value == 1.0
    assert disagreement_test(x, 1 - x, y[:, :0], ones).p_value == 1.0
    merged = np.array([0, 0, 1])[np.arange(60) % 3]  # the disagreement is a function of a report
    assert disagreement_test(np.arange(60) % 3, merged, np.arange(60.0)[:, None],
                             np.ones(60)).p_value == 1.0  # fmt: skip


@pytest.mark.thorough
def test_size_of_the_test_with_weights_and_groups():
    rejected = np.zeros(3)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 3, 300)
        tools = np.c_[around(rng, x, 2.0), rng.normal(size=(300, 4))]
        a, b, w = flipped(rng, x, 0.2), flipped(rng, x, 0.3), np.ones(300)
        doubled = np.repeat(np.arange(300), 2)
        for i, part in enumerate((np.arange(300), doubled, doubled)):
            groups = part if i == 2 else None
            ones = np.ones(len(part))
            found = disagreement_test(a[part], b[part], tools[part], ones[: len(part)], groups)
            rejected[i] += found.p_value < 0.05
        weighted = disagreement_test(a, b, tools, 2 * w)
        again = disagreement_test(a[doubled], b[doubled], tools[doubled], np.ones(600))
        assert weighted.p_value == pytest.approx(again.p_value, rel=1e-6)
    assert 0.02 < rejected[0] / 300 < 0.08
    assert rejected[1] > 2 * rejected[0]  # copies on their own are no evidence
    assert rejected[2] == rejected[0]


@pytest.mark.thorough
def test_errors_where_observations_are_unsure_are_seen_through():
    right = doubted = 0
    for seed in range(20):
        found = rank_reports(*hard(seed))
        assert found.most_reliable != ("b",)
        right += found.most_reliable == ("a",)
        found = rank_reports(*leak(seed))
        doubted += found.pairs[0].doubts == ("shared errors",)
        assert set(found.most_reliable) == {"a", "b"} or not found.pairs[0].doubts
    assert right >= 17
    assert doubted >= 17


def test_a_pair_says_what_could_be_wrong_with_it():
    found = rank_reports(*hard(3))
    (pair,) = found.pairs
    assert pair.alike
    assert pair.told
    assert pair.disagreement_p_value < 0.001
    assert pair.strata[0].keeps < 0.7 < 1.0 < pair.strata[3].keeps
    assert "from the quarter of the records where the observations are least sure" in str(found)
    assert f"errors that lean {pair.leaning:.1f} to 1" in str(found)
    soft = {name: np.eye(3)[labels] * 0.9 + 0.1 / 3 for name, labels in hard(3)[0].items()}
    assert rank_reports(soft, hard(3)[1]).pairs[0].disagreement_p_value is None
