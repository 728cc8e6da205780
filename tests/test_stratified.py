"""Stratified matching and the U-statistic against the enumeration of every draw, on tiny data."""

import itertools
import math
import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jgram.kernels import RBF, Delta, Linear, RandomFeatures, delta, linear
from jgram.paper.guarantees import log_population_score
from jgram.paper.orderings import is_balanced, is_nonpermutation, misreport_matrix
from jgram.scores import plugin_score
from jgram.stratified import stratified_matching_score, unbiased_score
from tests.refusals import refused

pytestmark = pytest.mark.thorough

X_HAT = np.array([0, 1, 2, 0, 1, 2, 1, 0])
OUTCOMES = np.array([0, 1, 2, 0, 2, 2, 1, 3])
POINTS = np.random.default_rng(0).normal(size=(8, 2)) + np.eye(3, 2)[X_HAT]


def kernel_matrix(y, kernel):
    """In float64, one pair at a time."""
    with jax.enable_x64(True):
        y = jnp.asarray(y)
        return np.array([[float(kernel(a, b)) for b in y] for a in y])


def draws(x_hat, *, disjoint=True):
    """Every choice of a row and a column record for each label, all equally likely."""
    members = [np.flatnonzero(x_hat == k) for k in range(x_hat.max() + 1)]
    pairs = [
        [(row, column) for row in m for column in m if not (disjoint and row == column)]
        for m in members
    ]
    chosen = np.array(list(itertools.product(*pairs)))
    return chosen[..., 0], chosen[..., 1]


def squared_frequencies(x_hat):
    return np.prod((np.bincount(x_hat) / len(x_hat)) ** 2)


def determinants(x_hat, matrix, *, disjoint=True):
    """det[K(row_i, column_j)] prod q^2 for each draw."""
    rows, columns = draws(x_hat, disjoint=disjoint)
    values = np.linalg.det(matrix[rows[:, :, None], columns[:, None, :]])
    return values * squared_frequencies(x_hat)


def published_values(x_hat, matrix):
    """Every value of the published estimator, one for each draw and permutation."""
    values = []
    for row, column in zip(*draws(x_hat), strict=True):
        for sigma in itertools.permutations(range(len(row))):
            sign = np.linalg.det(np.eye(len(row))[list(sigma)])
            term = np.prod([matrix[row[i], column[sigma[i]]] for i in range(len(row))])
            values.append(math.factorial(len(row)) * sign * term * squared_frequencies(x_hat))
    return np.array(values)


CASES = {
    "delta": (OUTCOMES, delta),
    "rbf": (POINTS, RBF(1.3)),
    "linear": (POINTS, linear),  # two features, three labels: zero
    "wide": (POINTS, Linear(lambda y: jnp.concatenate([jnp.sin(k * y) for k in range(1, 6)]))),
    "callable": (POINTS, lambda a, b: (1.0 + jnp.vdot(a, b)) ** 2),
    "random_features": (
        POINTS,
        RandomFeatures.draw(jax.random.key(0), 6, dimension=2, bandwidth=1.0),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_u_statistic_is_the_average_over_all_draws(case):
    y, kernel = CASES[case]
    if case == "random_features":  # its features centre y by the mean of what they are given
        with jax.enable_x64(True):
            features = np.asarray(kernel.features(y))
        matrix = features @ features.T
    else:
        matrix = kernel_matrix(y, kernel)
    expected = determinants(X_HAT, matrix).mean()
    assert unbiased_score(X_HAT, y, kernel) == pytest.approx(expected, rel=1e-8, abs=1e-16)
    assert (abs(expected) < 1e-15) == (case == "linear")


@pytest.mark.parametrize("case", ["delta", "rbf"])
def test_published_estimator_takes_the_enumerated_values_as_often_as_it_should(case):
    """Its whole distribution, not its mean alone: draws=1 and one permutation."""
    y, kernel = CASES[case]
    values = published_values(X_HAT, kernel_matrix(y, kernel))
    assert values.mean() == pytest.approx(determinants(X_HAT, kernel_matrix(y, kernel)).mean())
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(0), 20_000)
        score = jax.vmap(lambda key: stratified_matching_score(key, X_HAT, y, kernel))
        found = jax.jit(score)(keys)
    found, support = np.asarray(found), np.unique(values.round(12))
    nearest = np.abs(found[:, None] - support).argmin(axis=1)
    np.testing.assert_allclose(found, support[nearest], atol=1e-11)
    expected = (np.abs(values[:, None] - support) < 1e-11).mean(axis=0)
    shares = np.bincount(nearest, minlength=len(support)) / len(found)
    errors = np.sqrt(expected * (1 - expected) / len(found))
    assert (np.abs(shares - expected) < 5 * errors + 1e-12).all()


@pytest.mark.parametrize("permutations", ["sample", "all"])
@pytest.mark.parametrize("case", ["delta", "rbf"])
def test_mean_over_draws_approaches_the_u_statistic(case, permutations):
    """With the spread of independent draws, which averaging over permutations reduces."""
    y, kernel = CASES[case]
    matrix = kernel_matrix(y, kernel)
    spreads = {
        "sample": published_values(X_HAT, matrix).std(),
        "all": determinants(X_HAT, matrix).std(),
    }
    assert spreads["all"] < spreads["sample"] / 1.3

    def score(key):
        return stratified_matching_score(
            key, X_HAT, y, kernel, draws=100, permutations=permutations
        )

    keys = jax.random.split(jax.random.key(1), 400)
    means = np.asarray(jax.jit(jax.vmap(score))(keys), float)
    assert means.std() == pytest.approx(spreads[permutations] / 10, rel=0.2)
    error = means.std() / 20
    assert means.mean() == pytest.approx(unbiased_score(X_HAT, y, kernel), abs=5 * error)


@pytest.mark.parametrize("case", ["delta", "rbf", "wide", "callable"])
def test_independent_draws_average_to_the_plugin_score(case):
    y, kernel = CASES[case]
    matrix = kernel_matrix(y, kernel)
    expected = determinants(X_HAT, matrix, disjoint=False).mean()
    with jax.enable_x64(True):
        assert float(plugin_score(X_HAT, y, kernel)) == pytest.approx(expected, rel=1e-6)


def expected_score(x_hat, x, experiment, kernel, outcomes):
    """The expectation of the U-statistic over all observations, enumerated."""
    matrix, total = kernel_matrix(outcomes, kernel), 0.0
    for y in itertools.product(range(len(outcomes)), repeat=len(x)):
        y = np.array(y)
        total += np.prod(experiment[y, x]) * determinants(x_hat, matrix[np.ix_(y, y)]).mean()
    return total


TRUTH = np.array([0, 0, 0, 1, 1])
EXPERIMENT = np.array([[0.5, 0.1], [0.3, 0.2], [0.2, 0.7]])
OUTCOME_POINTS = np.array([0.0, 0.7, 2.0])


def disjoint_determinants(x_hat, x):
    """det of (true label of row or column record of label j == i), for every draw."""
    d = x_hat.max() + 1
    return [
        np.linalg.det((x[chosen][:, None, :] == np.arange(d)[:, None]).astype(float))
        for chosen in draws(x_hat)
    ]


def expected_coefficient(x_hat, x):
    """E[score] / det(G), whatever the experiment and kernel; 0 for a label reported once."""
    if np.bincount(x_hat, minlength=x.max() + 1).min() < 2:
        return 0.0
    rows, columns = disjoint_determinants(x_hat, x)
    return float((rows * columns).mean() * squared_frequencies(x_hat))


@pytest.mark.parametrize(
    ("kernel", "outcomes"), [(delta, np.arange(3)), (RBF(1.0), OUTCOME_POINTS)]
)
def test_theorem_4_14(kernel, outcomes):
    """Expectation = det(G_K) times a coefficient in which the kernel does not occur.

    The truth's is the population score: no bias.
    """
    matrix = kernel_matrix(outcomes, kernel)
    labels = EXPERIMENT.T @ matrix @ EXPERIMENT
    truthful = expected_score(TRUTH, TRUTH, EXPERIMENT, kernel, outcomes)
    joint = misreport_matrix(TRUTH, TRUTH)
    population = log_population_score(EXPERIMENT, joint, kernel=matrix)
    assert truthful == pytest.approx(math.exp(population))
    for x_hat in ([0, 0, 1, 1, 1], [0, 1, 0, 1, 1], [0, 1, 0, 0, 1]):
        x_hat = np.array(x_hat)
        found = expected_score(x_hat, TRUTH, EXPERIMENT, kernel, outcomes)
        expected = np.linalg.det(labels) * expected_coefficient(x_hat, TRUTH)
        assert found == pytest.approx(expected, abs=1e-15)
        assert found < truthful


@pytest.mark.parametrize("counts", [(2, 2), (3, 4), (2, 2, 2), (2, 3, 2)])
def test_proposition_4_7_truth_beats_every_report(counts):
    """Every one of the d^N reports on a truth, except relabellings, which tie."""
    d, x = len(counts), np.repeat(np.arange(len(counts)), counts)
    truth, ties = expected_coefficient(x, x), 0
    assert truth == pytest.approx(squared_frequencies(x))
    for x_hat in map(np.array, itertools.product(range(d), repeat=len(x))):
        q = misreport_matrix(x, x_hat, num_classes=d)
        score = expected_coefficient(x_hat, x)
        if np.array_equal(x_hat, x) or not is_nonpermutation(q):
            assert score == pytest.approx(truth)
            ties += 1
        else:
            assert score < truth
    assert ties == math.factorial(d)


def test_proposition_4_7_by_simulation():
    """Random experiments, truths and reports in Q_L: the mean over observations and draws."""
    rng = np.random.default_rng(0)
    x = np.repeat(np.arange(3), 5)

    @jax.jit
    @jax.vmap
    def score(key, x_hat, y):
        return stratified_matching_score(
            key, x_hat, y, Delta(4), num_classes=3, draws=20, permutations="all"
        )

    trials = 2000
    for trial in range(5):
        experiment = rng.dirichlet(0.5 * np.ones(4), 3).T
        x_hat = x.copy()
        x_hat[rng.choice(15, 4, replace=False)] = rng.integers(0, 3, 4)
        if not is_balanced(misreport_matrix(x, x_hat), 1.0) or np.array_equal(x, x_hat):
            continue
        y = np.stack([rng.choice(4, trials, p=experiment[:, label]) for label in x], axis=1)
        keys = jax.random.split(jax.random.key(trial), trials)
        means = []
        for report in (x, x_hat):
            found = np.asarray(score(keys, np.tile(report, (trials, 1)), y), float)
            error = found.std() / math.sqrt(trials)
            coefficient = determinants(report, np.equal.outer(x, x).astype(float)).mean()
            expected = np.linalg.det(experiment.T @ experiment) * coefficient
            assert found.mean() == pytest.approx(expected, abs=5 * error)
            means.append(found.mean())
        assert means[0] > means[1]


def test_step_of_the_proof_fails_for_disjoint_draws():
    x, x_hat = np.array([0, 1, 0, 2, 1, 2]), np.array([0, 0, 1, 1, 2, 2])
    rows, columns = disjoint_determinants(x_hat, x)
    assert (rows * columns).mean() == pytest.approx(1 / 4)
    assert rows.mean() * columns.mean() == pytest.approx(1 / 16)
    assert expected_coefficient(x_hat, x) < expected_coefficient(x, x)


@pytest.mark.parametrize("permutations", ["sample", "all"])
def test_zero_where_a_label_occurs_once_and_the_same_key_is_the_same_score(permutations):
    def score(key, x_hat):
        return stratified_matching_score(
            key, x_hat, np.array([0, 0, 1, 1]), Delta(2), num_classes=2, draws=50,
            permutations=permutations,
        )  # fmt: skip

    reports = np.array([[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 1]])
    keys = jax.random.split(jax.random.key(4), 4)
    found = np.asarray(jax.jit(jax.vmap(score))(keys, reports))
    assert found[0] > 0
    np.testing.assert_array_equal(found[1:3], 0.0)
    for _ in range(2):
        assert float(score(keys[3], reports[3])) == pytest.approx(found[3], rel=1e-5)
    once, never = np.array([0, 0, 1]), np.array([0, 0, 1, 1])
    assert unbiased_score(once, once, delta) == 0.0
    assert unbiased_score(never, never, delta, num_classes=3) == 0.0


def test_gradient_in_observations_and_bandwidth():
    key = jax.random.key(3)

    @jax.jit
    def score(y, bandwidth):
        return stratified_matching_score(
            key, X_HAT, y, RBF(bandwidth), num_classes=3, draws=10, permutations="all"
        )

    with jax.enable_x64(True):
        y, step = jnp.asarray(POINTS), 1e-5
        slope_y, slope_b = jax.jit(jax.grad(score, argnums=(0, 1)))(y, 1.3)
        numeric = (score(y, 1.3 + step) - score(y, 1.3 - step)) / (2 * step)
        assert float(slope_b) == pytest.approx(float(numeric), rel=1e-6)
        moved = y.at[2, 0].add(step)
        numeric = (score(moved, 1.3) - score(2 * y - moved, 1.3)) / (2 * step)
        assert float(slope_y[2, 0]) == pytest.approx(float(numeric), rel=1e-6)


matching = partial(stratified_matching_score, jax.random.key(0))


@pytest.mark.parametrize(
    ("score", "arguments", "options", "message"),
    [
        (matching, (X_HAT, OUTCOMES, delta), {"draws": 0}, "draws >= 1"),
        (matching, (X_HAT, OUTCOMES, delta), {"permutations": "none"}, "'sample' or 'all', got"),
        (matching, (X_HAT, OUTCOMES[:3], delta), {}, "3 for 8"),
        (matching, (np.eye(8), OUTCOMES, delta), {}, "hard labels"),
        (matching, (X_HAT, OUTCOMES, delta), {"num_classes": 2}, "0..1, got 2"),
        (unbiased_score, (X_HAT, POINTS, delta), {}, "delta kernel"),
        (unbiased_score, (X_HAT, OUTCOMES[:2], delta), {}, "2 for 8"),
        (unbiased_score, (X_HAT, OUTCOMES, delta), {"num_classes": 17}, "at most 16"),
        (unbiased_score, (X_HAT, POINTS, lambda a, b: -jnp.sum((a - b) ** 2)), {}, "semi-def"),
    ],
)
def test_bad_input_is_one_clear_error(score, arguments, options, message, unchecked):
    assert re.search(message, refused(score, *arguments, **options))
