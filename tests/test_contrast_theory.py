"""The theory of the midpoint contrast and of payoffs, in population: experiments/PAPER.md.

An experiment ``P[m, d]`` and misreport matrices ``Q[d, d]`` of (true, reported) are all that
infinitely many records show; everything here is NumPy in float64, written from the page.
"""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jgram.contrasts import payoffs
from jgram.kernels import Delta
from jgram.observed import observe
from jgram.paper.guarantees import log_population_score

seeds = st.integers(0, 2**32 - 1)


def contrast(first, second):
    """``2 tr(Qbar^-1 (Q1 - Q2))``, without the experiment."""
    return 2 * np.trace(np.linalg.solve((first + second) / 2, first - second))


def contrast_through(experiment, first, second, kernel=None):
    """``2 tr(Gbar^-1 Mbar^T K (M1 - M2))``, from what a score gets to see."""
    kernel = np.eye(len(experiment)) if kernel is None else kernel
    first, second = experiment @ first, experiment @ second
    middle = (first + second) / 2
    gram = middle.T @ kernel @ middle
    return 2 * np.trace(np.linalg.solve(gram, middle.T @ kernel @ (first - second)))


def mean_payoffs(experiment, reports, weighing=np.linalg.pinv):
    """``a_l = tr(W Mbar^T M_l)`` of centred labels, ``W`` a function of the mean report's Gram."""
    seen = [experiment @ (q - np.outer(q.sum(axis=1), q.sum(axis=0))) for q in reports]
    middle = np.mean(seen, axis=0)
    weights = weighing(middle.T @ middle)
    return np.array([np.trace(weights @ middle.T @ one) for one in seen])


def flips(prior, share, target):
    """A share of the labels replaced at random, by labels drawn from ``target``."""
    return (1 - share) * np.diag(prior) + share * np.outer(prior, target)


def setting(seed, reports=2, near=0.6):
    """A prior, an experiment with independent columns, and reports better than noise."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    prior, experiment = rng.dirichlet(5 * np.ones(d)), rng.dirichlet(np.ones(d + 2), d).T
    rows = [np.eye(d) + rng.uniform(0.05, near) * rng.dirichlet(np.ones(d), d) for _ in range(9)]
    rows = [m / m.sum(axis=1, keepdims=True) for m in rows[:reports]]
    return rng, prior, experiment, [prior[:, None] * m for m in rows]


def retained(first, second):
    """Eigenvalues of ``Q1^-1 Q2``."""
    return np.linalg.eigvals(np.linalg.solve(first, second))


@given(seeds)
def test_the_experiment_and_the_kernel_cancel(seed):
    rng, _, experiment, (first, second) = setting(seed)
    root = rng.normal(size=(len(experiment), len(experiment)))
    expected = contrast(first, second)
    assert contrast_through(experiment, first, second) == pytest.approx(expected, rel=1e-4)
    found = contrast_through(experiment, first, second, root @ root.T)
    assert found == pytest.approx(expected, rel=1e-3, abs=1e-3)


@given(seeds)
def test_the_contrast_is_a_sum_over_eigenvalues_and_changes_its_sign(seed):
    *_, (first, second) = setting(seed)
    r = retained(first, second)
    assert contrast(first, second) == pytest.approx(np.sum(4 * (1 - r) / (1 + r)).real, abs=1e-9)
    assert contrast(second, first) == pytest.approx(-contrast(first, second), abs=1e-12)


def test_the_log_score_differs_by_the_third_order():
    """Halving the distance of two reports divides the difference by eight."""
    _, _, experiment, (first, other) = setting(3)
    errors = []
    for share in (0.4, 0.2, 0.1):
        second = first + share * (other - first)
        score = log_population_score(experiment, first) - log_population_score(experiment, second)
        u = (1 - retained(first, second)) / (1 + retained(first, second))
        errors.append(score - contrast(first, second))
        assert errors[-1] == pytest.approx(np.sum(4 * (np.arctanh(u) - u)).real, abs=1e-9)
        assert errors[-1] == pytest.approx(np.sum(4 * u**3 / 3).real, rel=0.05)
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 8, rtol=0.2)


@given(seeds)
def test_blind_to_what_both_reports_have_in_common(seed):
    """Relabelling both, garbling both, other class shares, and an error before both."""
    rng, prior, _, (first, second) = setting(seed)
    d = len(prior)
    expected = contrast(first, second)
    for after in (np.eye(d)[rng.permutation(d)], np.eye(d) + 0.3 * rng.dirichlet(np.ones(d), d)):
        assert contrast(first @ after, second @ after) == pytest.approx(expected, abs=1e-8)
    before = (np.eye(d) + 0.3 * rng.dirichlet(np.ones(d), d)).T
    assert contrast(before @ first, before @ second) == pytest.approx(expected, abs=1e-8)
    shares = rng.dirichlet(np.ones(d)) / prior
    found = contrast(shares[:, None] * first, shares[:, None] * second)
    assert found == pytest.approx(expected, abs=1e-8)


def test_relabelling_one_report_is_not_invisible():
    """Unlike the score: reports are aligned before they are paid."""
    _, _, experiment, (first, second) = setting(5)
    swapped = second[:, ::-1]
    score = log_population_score(experiment, second)
    assert log_population_score(experiment, swapped) == pytest.approx(score)
    assert abs(contrast(first, swapped) - contrast(first, second)) > 0.1


@given(seeds)
def test_centred_payoffs_give_the_same_contrast(seed):
    """The direction that every report has drops out; ``d - 1`` directions remain."""
    _, prior, experiment, reports = setting(seed)
    directions = len(prior) - 1
    a = mean_payoffs(experiment, reports)
    assert a.mean() == pytest.approx(directions, rel=1e-6)
    found = 4 * directions * (a[0] - a[1]) / (a[0] + a[1])
    assert found == pytest.approx(contrast(*reports), rel=1e-3, abs=1e-4)


@given(seeds)
def test_flips_are_retained_exactly_whatever_the_scorer(seed):
    """Also where each report's wrong labels are drawn from shares of its own."""
    rng, prior, experiment, _ = setting(seed)
    d, shares = len(prior), np.array([0.1, 0.3, 0.8])
    reports = [flips(prior, share, rng.dirichlet(np.ones(d))) for share in shares]
    root = rng.normal(size=(d, d))
    for weighing in (np.linalg.pinv, np.eye(d).__mul__, lambda gram: root @ root.T):
        a = mean_payoffs(experiment, reports, weighing)
        np.testing.assert_allclose(a / a[0], (1 - shares) / (1 - shares[0]), rtol=1e-6)


@given(seeds)
def test_noise_is_paid_nothing_and_the_contrast_stays_finite(seed):
    rng, prior, experiment, (first, _) = setting(seed)
    noise = flips(prior, 1.0, rng.dirichlet(np.ones(len(prior))))
    assert mean_payoffs(experiment, [first, noise])[1] == pytest.approx(0, abs=1e-6)
    assert contrast(first, noise) == pytest.approx(4 * (len(prior) - 1), rel=1e-9)
    assert log_population_score(experiment, noise) == -np.inf


@given(seeds)
def test_garblings_and_the_truth_are_ordered(seed):
    """Eigenvalues of a garbling lie in the unit disc, real or not."""
    rng, prior, _, (first, _) = setting(seed)
    garbling = rng.dirichlet(rng.choice([0.1, 1.0]) * np.ones(len(prior)), len(prior))
    assert contrast(first, first @ garbling) > 0
    assert contrast(np.diag(prior), first) > 0
    assert contrast(np.diag(prior), prior[:, None] * garbling) > 0


@given(seeds, st.floats(0.05, 0.95))
def test_a_far_determinant_is_bounded_and_recovered_for_flips(seed, share):
    """``4 (d-1) artanh(c / 4(d-1))`` is the log ratio for flips and a lower bound in general."""
    rng, prior, _, (first, second) = setting(seed)
    directions = len(prior) - 1

    def both(one, two):
        u = contrast(one, two) / (4 * directions)
        return 4 * directions * np.arctanh(u), 2 * np.log(np.linalg.det(one) / np.linalg.det(two))

    truth = np.diag(prior)
    lower, exact = both(truth, flips(prior, share, rng.dirichlet(np.ones(len(prior)))))
    assert lower == pytest.approx(exact, rel=1e-6)
    garbled = first @ (second / second.sum(axis=1, keepdims=True))
    if np.all(np.abs(retained(first, garbled).imag) < 1e-12):
        lower, exact = both(first, garbled)
        assert lower <= exact + 1e-9


def test_three_reports_can_beat_each_other_in_a_circle():
    """What it costs: equal determinants, each better than the next in most directions."""
    signs = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]])
    kept = 0.5 * np.array([1.0, 0.1, 0.01])
    reports = [signs.T @ np.diag([1.0, *np.roll(kept, shift)]) @ signs / 16 for shift in range(3)]
    assert min(q.min() for q in reports) >= 0
    determinants = [np.linalg.det(q) for q in reports]
    np.testing.assert_allclose(determinants, determinants[0])
    circle = [contrast(reports[i], reports[(i + 1) % 3]) for i in range(3)]
    assert np.ptp(circle) < 1e-9
    assert abs(circle[0]) > 1


@pytest.mark.parametrize("d", [2, 3])
def test_the_code_gives_it_at_the_frequencies_of_a_population(d):
    """Cells of (observation, first, second) weighed by their probabilities: independent errors."""
    rng = np.random.default_rng(d)
    prior, experiment = rng.dirichlet(5 * np.ones(d)), rng.dirichlet(np.ones(d + 1), d).T
    rows = [0.7 * np.eye(d) + 0.3 * rng.dirichlet(np.ones(d), d) for _ in range(2)]
    cells = np.einsum("x,yx,xa,xb->yab", prior, experiment, *rows)
    y, first, second = (values.ravel() for values in np.indices(cells.shape))
    with jax.enable_x64(True):
        observed = observe(Delta(d + 1), y)
        found = payoffs(
            observed, np.stack([first, second]), num_classes=d, weights=1e7 * cells.ravel()
        )
        one, two = np.asarray(found.means)
    assert float(found.seen) == pytest.approx(d - 1, abs=1e-2)
    expected = contrast(*(prior[:, None] * matrix for matrix in rows))
    assert 4 * (d - 1) * (one - two) / (one + two) == pytest.approx(expected, abs=5e-3)
