"""Each theorem on random instances, each bound on simulated data, each impossibility executed."""

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments import impossibility, volume
from experiments.impossibility import (
    dependence_impossibility,
    distance_impossibility,
    relabelling_impossibility,
    uninformative_impossibility,
)
from jgram.dependence import mutual_information
from jgram.paper.guarantees import (
    concentration_bound,
    dist_guarantee,
    log_population_score,
    relative_error_bound,
    sample_size,
)
from jgram.paper.orderings import (
    blackwell_ordering,
    dist_ordering,
    exact_match_ordering,
    is_balanced,
    is_diagonally_dominant,
    is_independent,
    is_nonpermutation,
    is_regular,
    misreport_matrix,
    reported_given_true,
)
from tests.refusals import refused
from tests.test_orderings import random_semimetric

seeds = st.integers(0, 2**32 - 1)


def random_experiment(rng, m, d):
    return rng.dirichlet(np.ones(m), d).T


def random_misreport(rng, d, noise):
    """A truth of random frequencies, reported with up to the given rate of errors per label."""
    true = rng.dirichlet(4 * np.ones(d))
    rows = (1 - noise) * np.eye(d) + noise * rng.dirichlet(np.ones(d), d)
    return true[:, None] * rows


def observed_tables(rng, experiment, counts, trials):
    """Tables [trials, m, d] of (outcome, report), given counts [d, d] of (true, reported)."""
    d = len(counts)
    tables = np.zeros((trials, len(experiment), d))
    for true, reported in itertools.product(range(d), range(d)):
        draws = rng.multinomial(counts[true, reported], experiment[:, true], trials)
        tables[:, :, reported] += draws
    return tables / counts.sum()


def gram_matrices(tables, kernel=None):
    kernel = np.eye(tables.shape[-2]) if kernel is None else kernel
    return np.swapaxes(tables, -1, -2) @ kernel @ tables


def rbf_matrix(points):
    return np.exp(-np.square(np.subtract.outer(points, points)))


def test_equation_2_gram_of_reports():
    """The definition over pairs of records, the double loop, is Q^T G Q."""
    rng = np.random.default_rng(0)
    n, d = 30, 3
    x, x_hat = rng.integers(0, d, n), rng.integers(0, d, n)
    p, kernel = random_experiment(rng, 4, d), rbf_matrix(rng.normal(size=4))
    labels = p.T @ kernel @ p
    q = misreport_matrix(x, x_hat)
    expected = np.zeros((d, d))
    for i, j in itertools.product(range(n), repeat=2):
        expected[x_hat[i], x_hat[j]] += labels[x[i], x[j]] / n**2
    np.testing.assert_allclose(expected, q.T @ labels @ q)
    score = log_population_score(p, q, kernel=kernel)
    assert score == pytest.approx(math.log(np.linalg.det(expected)))


def test_population_score_of_dependent_columns_and_of_many_rare_classes():
    rng = np.random.default_rng(1)
    p, q = random_experiment(rng, 4, 3), random_misreport(rng, 3, 0.2)
    assert math.isfinite(log_population_score(p, q))
    dependent = np.column_stack([p[:, :2], p[:, :2] @ [0.5, 0.5]])
    rank_two = rng.normal(size=(4, 2))  # features that differ, fewer than classes
    assert is_independent(p)
    for experiment, report, kernel in (
        (dependent, q, None),
        (p, [[3, 0, 0], [2, 0, 0], [0, 0, 5]], None),
        (p[:1] * 0 + 1, q, None),
        (p, q, rank_two @ rank_two.T),
    ):
        assert log_population_score(experiment, report, kernel=kernel) == -math.inf
    shares = np.geomspace(1, 1e-6, 60)
    q = np.diag(shares / shares.sum())
    assert log_population_score(np.eye(60), q) == pytest.approx(2 * np.log(np.diag(q)).sum())


@pytest.mark.parametrize("noise", [0.0, 0.2, 0.4])
def test_appendix_d_example(noise):
    """With frequencies that sum to one: (p1 - p2)^2 (1 - 2 delta)^2 / 16, not / 256."""
    p1, p2 = 0.3, 0.8
    p = [[1 - p1, 1 - p2], [p1, p2]]
    q = np.array([[1 - noise, noise], [noise, 1 - noise]])
    expected = (p1 - p2) ** 2 * (1 - 2 * noise) ** 2 / 16
    assert math.exp(log_population_score(p, q / 2)) == pytest.approx(expected)
    printed = np.array(p) @ (q / 4)
    assert np.linalg.det(printed.T @ printed) == pytest.approx(expected / 16)
    with pytest.raises(ValueError, match=r"sum to 1, got 0\.5"):
        log_population_score(p, q / 4)


@given(seeds)
def test_theorem_4_2_1_exact_match_is_preserved(seed):
    """Lemma D.1 and the theorem: the truth scores above every report in Q_nonperm."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    p = random_experiment(rng, d + 1, d)
    other = random_misreport(rng, d, rng.uniform(0.01, 1.0))
    truth = np.diag(other.sum(axis=1))
    assert exact_match_ordering(truth, other).dominates
    assert is_nonpermutation(other)
    assert np.linalg.det(truth) ** 2 > np.linalg.det(other) ** 2
    assert log_population_score(p, truth) > log_population_score(p, other)


@given(seeds)
def test_theorem_4_2_2_blackwell_is_preserved(seed):
    """Lemma D.2 and the theorem."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    p, kernel = random_experiment(rng, d + 1, d), rbf_matrix(rng.normal(size=d + 1))
    first = random_misreport(rng, d, 0.3)
    garbling = 0.8 * np.eye(d) + 0.2 * rng.dirichlet(np.ones(d), d)
    second = first @ garbling
    result = blackwell_ordering(first, second)
    assert result.dominates or not (is_regular(first) and is_regular(second))
    if result.dominates:
        assert log_population_score(p, first) > log_population_score(p, second)
        assert log_population_score(p, first, kernel=kernel) > log_population_score(
            p, second, kernel=kernel
        )


def test_theorem_4_2_3_dist_is_preserved_and_with_room():
    """Where the guarantee applies the score agrees; it agrees far beyond, too."""
    rng = np.random.default_rng(2)
    applied = beyond = 0
    for _ in range(500):
        d = int(rng.integers(2, 5))
        true = rng.dirichlet(50 * np.ones(d))
        ratio = true.max() / true.min()
        scale = rng.choice([1 / (64 * ratio**2 * d**2), 0.3])
        noise, rows = (
            [0.1 * scale * rng.random(), scale * rng.random()],
            rng.dirichlet(np.ones(d), 2),
        )
        first, second = (
            true[:, None] * ((1 - e) * np.eye(d) + e * r) for e, r in zip(noise, rows, strict=True)
        )
        distance = random_semimetric(rng, d)
        p = random_experiment(rng, d, d)
        guarantee = dist_guarantee(first, second, distance)
        aspect = distance.max() / distance[distance > 0].min()
        assert guarantee.alpha == pytest.approx(1 / (4 * guarantee.balance * aspect))
        if guarantee.applies:
            applied += 1
            assert is_balanced(first, guarantee.balance, guarantee.largest_share)
            assert is_balanced(second, guarantee.balance, guarantee.largest_share)
        elif dist_ordering(first, second, distance, alpha=guarantee.alpha).dominates:
            beyond += 1
            assert "misreported" in guarantee.reason
        else:
            assert "not closer" in guarantee.reason or "misreported" in guarantee.reason
            continue
        assert log_population_score(p, first) > log_population_score(p, second)
    assert applied > 30
    assert beyond > 30


@given(seeds)
def test_proposition_4_3_experiment_agnostic(seed):
    """Gamma(P Q) = det(P^T P) Gamma(Q), so that no experiment changes an order."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    p = random_experiment(rng, d + 2, d)
    first, second = random_misreport(rng, d, 0.4), random_misreport(rng, d, 0.4)
    identity = np.eye(d)
    scale = np.linalg.slogdet(p.T @ p)[1]
    for q in (first, second):
        expected = scale + log_population_score(identity, q)
        assert log_population_score(p, q) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    gap = log_population_score(identity, first) - log_population_score(identity, second)
    assert log_population_score(p, first) - log_population_score(p, second) == pytest.approx(
        gap, rel=1e-6, abs=1e-6
    )


def test_proposition_4_3_is_not_shared_by_mutual_information():
    """Some experiment turns the order of two reports round under KL, under the score none does."""
    rng = np.random.default_rng(3)
    flips = {"kl": 0, "chi2": 0, "score": 0}
    for _ in range(200):
        p = random_experiment(rng, 3, 3)
        first, second = (rng.dirichlet(np.ones(9)).reshape(3, 3) for _ in range(2))
        for kind in ("kl", "chi2"):
            before = mutual_information(first, kind) - mutual_information(second, kind)
            after = mutual_information(p @ first, kind) - mutual_information(p @ second, kind)
            flips[kind] += int(before * after < 0)
        before, after = (
            log_population_score(e, first) - log_population_score(e, second) for e in (np.eye(3), p)
        )
        flips["score"] += int(before * after < 0)
    assert flips["score"] == 0
    assert flips["kl"] > 10
    assert flips["chi2"] > 10


@pytest.mark.parametrize("points", [None, [0.0, 0.5, 1.5, 3.0]], ids=["4.5", "4.11"])
def test_proposition_4_5_and_theorem_4_11(points):
    """The mean plug-in score of garbled reports falls, and approaches the population score."""
    kernel = None if points is None else rbf_matrix(np.array(points))
    rng = np.random.default_rng(4)
    p = random_experiment(rng, 4, 3)
    garbling = np.array([[8, 1, 1], [1, 8, 1], [1, 1, 8]])
    first = np.diag([300, 300, 300]) @ garbling
    second = first @ garbling // 10
    assert blackwell_ordering(first, second).dominates
    errors = []
    for size in (1, 20):
        means = []
        for counts in (size * first // 100, size * second // 100):
            grams = gram_matrices(observed_tables(rng, p, counts, 2000), kernel)
            means.append(np.linalg.det(grams).mean())
            population = math.exp(log_population_score(p, counts, kernel=kernel))
            errors.append(abs(means[-1] / population - 1))
        assert means[0] > means[1]
    assert max(errors[2:]) < min(errors[:2])
    assert max(errors[2:]) < 0.3


def positive_definite(matrix):
    return np.linalg.eigvalsh(matrix).min() > 1e-10


@given(seeds)
def test_theorem_4_9_gram_matrix_of_labels_is_positive_definite(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 5))
    m = d + 1
    p = random_experiment(rng, m, d)
    if np.linalg.svd(p, compute_uv=False).min() < 0.05:
        return
    assert positive_definite(p.T @ rbf_matrix(np.arange(m)) @ p)  # 1
    injective = np.eye(m) + 0.1 * rng.normal(size=(m, m))
    assert positive_definite(p.T @ injective @ injective.T @ p)  # 2
    prior = rng.dirichlet(5 * np.ones(d))
    posterior = p * prior
    posterior /= posterior.sum(axis=1, keepdims=True)
    assert positive_definite(p.T @ posterior @ posterior.T @ p)  # 3


@pytest.mark.parametrize("kernel", [None, rbf_matrix(np.array([0.0, 0.3, 0.9, 2.0]))])
@pytest.mark.parametrize("counts", [1, 25, 400])
def test_lemmas_e1_and_4_12_concentration(kernel, counts):
    """Never violated beyond its probability; more than twenty times too wide."""
    rng = np.random.default_rng(6)
    failure, trials = 0.3, 400
    p = random_experiment(rng, 4, 4)
    reports = counts * np.array([[4, 1, 0, 0], [0, 5, 0, 0], [1, 0, 3, 1], [0, 0, 1, 4]])
    n = int(reports.sum())
    labels = gram_matrices(p, kernel)
    expected = (reports.T / n) @ labels @ (reports / n)
    grams = gram_matrices(observed_tables(rng, p, reports, trials), kernel)
    distances = np.linalg.norm(grams - expected, ord=2, axis=(1, 2))
    bound = concentration_bound(n, 4, failure)
    assert (distances > bound).mean() <= failure
    assert bound > 20 * np.quantile(distances, 1 - failure)


def test_theorem_a1():
    rng = np.random.default_rng(7)
    for _ in range(500):
        d = int(rng.integers(2, 6))
        diagonal = np.diag(rng.uniform(0.5, 2, d))
        off = rng.normal(size=(d, d)) * rng.uniform(0, 0.5) / d
        np.fill_diagonal(off, 0)
        radius = np.abs(np.linalg.eigvals(np.linalg.solve(diagonal, off))).max()
        if radius >= 1:
            continue
        c = -d * math.log1p(-radius)
        error = abs(np.linalg.det(diagonal + off) / np.linalg.det(diagonal) - 1)
        assert error <= c * radius * math.exp(c * radius) + 1e-12
        assert c * radius >= 1 or error <= 7 / 4 * c * radius + 1e-12


@given(seeds)
def test_theorem_a2_relative_error(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    root, noise = rng.normal(size=(2, d, d))
    gram, noise = root @ root.T + 0.01 * np.eye(d), (noise + noise.T) * rng.choice([1e-4, 0.1, 3])
    error = abs(np.linalg.det(gram + noise) / np.linalg.det(gram) - 1)
    assert error <= relative_error_bound(gram, np.linalg.norm(noise, 2)) * (1 + 1e-9) + 1e-9
    assert relative_error_bound(np.eye(d), 0.1) == pytest.approx(1.1**d - 1)
    assert relative_error_bound(np.ones((2, 2)), 0.1) == math.inf


@pytest.mark.parametrize("d", [1, 2, 4, 10, 100])
@pytest.mark.parametrize("share", [1.0, 0.2])
@pytest.mark.parametrize("epsilon", [0.5, 0.01])
def test_proposition_e2_sample_sizes_suffice(d, share, epsilon):
    """At the promised size the concentration bound gives the promised error, at the edge, too."""
    failure = share * min(1.0, d / 4)
    n = sample_size(d, failure, epsilon)
    assert n == math.ceil(100 * d**2 * math.log(d / failure) / epsilon**2)
    assert d * concentration_bound(n, d, failure) <= epsilon
    for eigenvalue in (1 / d, 0.01 / d):
        n = sample_size(d, failure, epsilon, eigenvalue)
        deviation = concentration_bound(n, d, failure)
        assert relative_error_bound(eigenvalue * np.eye(d), deviation) <= epsilon


def test_proposition_e2_is_far_from_tight():
    """A hundredth of the records already keeps the error, in all of 200 trials."""
    rng = np.random.default_rng(8)
    p = np.array([[0.9, 0.2], [0.1, 0.8]])
    q = np.array([[5, 0], [1, 4]])
    expected = gram_matrices(p @ q / 10)
    smallest = np.linalg.eigvalsh(expected).min()
    n = sample_size(2, 0.05, 0.1, smallest) // 100
    grams = gram_matrices(observed_tables(rng, p, q * (n // 10), 200))
    errors = np.abs(np.linalg.det(grams) / np.linalg.det(expected) - 1)
    assert (errors <= 0.1).all()


def determinant_bounds(q):
    """Lemma D.4: bounds on det(Q) / prod_i q(i), where fewer than min(q) / 4 are misreported."""
    true, delta = q.sum(axis=1), 1 - np.trace(q)
    square = 8 * len(q) * (delta / true.min()) ** 2
    return (1 - square) * (1 - delta / true.min()), (1 + square) * (1 - delta / (2 * true.max()))


@given(seeds)
@settings(max_examples=300)
def test_lemma_d4_determinant_bounds(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 12))
    true = rng.dirichlet(rng.choice([1, 5, 100]) * np.ones(d)) + 1e-3
    true /= true.sum()
    delta = 0.2499 * true.min() * rng.random() ** 0.3
    spread = delta * rng.dirichlet(rng.choice([0.05, 1]) * np.ones(d))
    spread = np.minimum(spread, true)
    off = np.zeros((d, d))
    for i in range(d):
        off[i, np.arange(d) != i] = spread[i] * rng.dirichlet(
            rng.choice([0.05, 1]) * np.ones(d - 1)
        )
    q = off + np.diag(true - off.sum(axis=1))
    assert is_diagonally_dominant(q)
    lower, upper = determinant_bounds(q)
    assert lower <= np.linalg.det(q) / true.prod() <= upper
    assert determinant_bounds(np.diag(true)) == pytest.approx((1.0, 1.0))


@given(seeds, st.floats(1.0, 20.0))
def test_lemma_d5_bounded_ratio(seed, ratio):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 10))
    q = rng.uniform(1.0, ratio, d)
    q /= q.sum()
    lower, upper = 1 / (ratio * (d - 1) + 1), ratio / (ratio + d - 1)
    assert lower - 1e-12 <= q.min()
    assert q.max() <= upper + 1e-12
    rare, frequent = np.array([1.0] + [ratio] * (d - 1)), np.array([ratio] + [1.0] * (d - 1))
    assert (rare / rare.sum())[0] == pytest.approx(lower)
    assert (frequent / frequent.sum())[0] == pytest.approx(upper)


@pytest.mark.parametrize("ratio", [1.0, 1.5, 3.0])
@pytest.mark.parametrize("d", [2, 3])
def test_proposition_4_7_every_label_occurs_twice(ratio, d):
    """Every split of the promised number of records that is balanced enough."""
    n, balanced = math.ceil(2 * ratio * d), 0
    for counts in itertools.product(range(1, n), repeat=d):
        if sum(counts) == n and max(counts) <= ratio * min(counts):
            assert min(counts) >= 2
            balanced += 1
    assert balanced


def test_proposition_3_1_1_uninformative():
    setting = uninformative_impossibility([0.2, 0.5, 0.3], 4, mixing=0.3)
    assert exact_match_ordering(setting.better, setting.worse).dominates
    assert is_nonpermutation(setting.worse)
    np.testing.assert_allclose(*setting.joints)
    np.testing.assert_allclose(setting.joints[0].sum(axis=1), [0.2, 0.5, 0.3])
    assert not is_independent(setting.experiment)


def test_proposition_3_1_1_relabelling():
    rng = np.random.default_rng(9)
    settings_ = relabelling_impossibility(random_experiment(rng, 5, 4), [2, 0, 1, 3])
    for setting in settings_:
        assert is_independent(setting.experiment)
        assert exact_match_ordering(setting.better, setting.worse).dominates
        assert not is_nonpermutation(setting.worse)
    one, two = (setting.joints for setting in settings_)
    np.testing.assert_allclose(one, two[::-1])
    assert not np.allclose(*one)


@pytest.mark.parametrize("trial", range(10))
def test_proposition_3_1_2_dependence(trial):
    """A random experiment with a random integer null vector."""
    rng = np.random.default_rng(trial)
    d = int(rng.integers(2, 6))
    v = rng.integers(-3, 4, d).astype(float)
    v[0], v[1] = 2.0, -1.0
    # An experiment with P v = 0: mix the two sides' columns until they agree.
    plus, minus = np.maximum(v, 0), np.maximum(-v, 0)
    v = plus / plus.sum() - minus / minus.sum()
    p = random_experiment(rng, d + 1, d)
    common = p @ (np.maximum(v, 0) + np.maximum(-v, 0)) / 2
    for side in (np.maximum(v, 0), np.maximum(-v, 0)):
        used = side > 0
        p[:, used] = 0.2 * p[:, used] + (common - 0.2 * p @ side)[:, None]
    assert (p >= 0).all()
    setting = dependence_impossibility(p, v, mixing=0.1)
    assert is_regular(setting.better)
    assert is_regular(setting.worse)
    assert blackwell_ordering(setting.better, setting.worse).dominates
    np.testing.assert_allclose(*setting.joints, atol=1e-15)
    assert log_population_score(p, setting.better) == -math.inf


@pytest.mark.parametrize("d", [3, 5])
def test_proposition_3_1_3_distance(d):
    one, two = distance_impossibility(d)
    if d == 3:  # the paper's matrices
        p, better, worse = one
        np.testing.assert_allclose(p, [[0.74, 0, 0.26], [0.26, 0.74, 0], [0, 0.26, 0.74]])
        np.testing.assert_allclose(3 * better, [[0.8, 0, 0.2], [0.2, 0.8, 0], [0, 0.2, 0.8]])
        np.testing.assert_allclose(3 * worse, [[0.7, 0.3, 0], [0, 0.7, 0.3], [0.3, 0, 0.7]])
        np.testing.assert_allclose(3 * two.worse[0], [0.592, 0.052, 0.356])
        np.testing.assert_allclose(3 * two.better[0], [0.596, 0.222, 0.182])
    for setting in (one, two):
        assert is_independent(setting.experiment)
        assert is_diagonally_dominant(setting.better)
        assert is_diagonally_dominant(setting.worse)
        assert dist_ordering(setting.better, setting.worse).dominates
    np.testing.assert_allclose(one.joints, two.joints[::-1])
    assert not np.allclose(*one.joints)
    rng = np.random.default_rng(10)
    for _ in range(20):
        distance = random_semimetric(rng, d)
        assert dist_ordering(one.better, one.worse, distance).dominates
        assert dist_ordering(two.better, two.worse, distance).dominates


def test_figure_1(capsys):
    """The printed matrices fit each other; the report drawn is far from the truth."""
    results = volume.run(smoke=True, as_published=False, seed=0)
    assert results["volumes"] == pytest.approx({"truth": 0.01728, "report": 0.0082944})
    for name, area in results["volumes"].items():
        assert results["log_scores"][name] == pytest.approx(2 * math.log(area))
    np.testing.assert_allclose(volume.MISREPORT.sum(axis=1), [0.3, 0.3, 0.4])
    np.testing.assert_allclose(reported_given_true(volume.MISREPORT), volume.EXPERIMENT)
    assert not results["diagonally_maximal"]
    results = impossibility.run(smoke=True, as_published=False, seed=0)
    for name in impossibility.CLAIMS:
        assert results[name]["gap"] < 1e-15
        assert all(setting["better_dominates"] for setting in results[name]["settings"])
    assert results["semimetrics_contradicted"] == results["semimetrics"] == 100
    assert capsys.readouterr().out.count("there is none") == 4


EVEN = np.eye(2) / 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: log_population_score(np.eye(3), EVEN), r"got \[3, 3\] and \[2, 2\]"),
        (lambda: log_population_score([[1, 2], [3, 4]], EVEN), "sum to 1, got column"),
        (lambda: log_population_score(np.eye(2), EVEN, kernel=np.diag([1, -1])), "value of -1"),
        (lambda: log_population_score(np.eye(2), EVEN, kernel=np.eye(3)), r"matrix \[2, 2\]"),
        (lambda: concentration_bound(0, 4), "num_records >= 1"),
        (lambda: concentration_bound(10, 4, 0.0), "failure_probability in"),
        (lambda: sample_size(2, 0.6, 0.1), r"failure_probability in \(0, 0.5\]"),
        (lambda: sample_size(2, 0.1, 0.7), r"error in \(0, 0.5\]"),
        (lambda: sample_size(4, 0.1, 0.1, 0.3), r"smallest_eigenvalue in \(0, 0.25"),
        (lambda: sample_size(0, 0.1, 0.1, 0.3), "num_classes >= 1"),
        (lambda: relative_error_bound(np.ones((2, 3)), 0.1), r"\[d, d\], got shape \[2, 3\]"),
        (lambda: relative_error_bound(np.eye(2), -0.1), "deviation >= 0"),
        (lambda: dist_guarantee([[2, 0], [0, 0]], [[1, 1], [0, 0]], 1 - np.eye(2)),
         "every label to occur"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_error(call, message, unchecked):
    assert re.search(message, refused(call))
