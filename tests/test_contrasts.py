"""Payoffs: equal to deletion, weights to repetition, pairs to their own records; order and size."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import gamma, kendalltau

from jgram.alignment import align
from jgram.comparisons import records_needed, retention, sign_test
from jgram.contrasts import (
    _permutation_moments,
    noise_tests,
    noise_tests_of,
    pair_payoffs,
    payoffs,
    payoffs_alone,
    products,
)
from jgram.kernels import RBF, Delta, rbf
from jgram.observed import observe
from jgram.scores import plugin_log_score
from jgram.table_kernel import TableKernel


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def redrawn(rng, x, share):
    return np.where(rng.random(len(x)) < share, rng.permutation(x), x)


def mixture(rng, n, dim, shares, distance):
    x = rng.choice(len(shares), n, p=shares)
    centres = rng.normal(size=(len(shares), dim))
    centres *= distance / np.linalg.norm(centres, axis=1, keepdims=True)
    return x, centres[x] + rng.normal(size=(n, dim))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x, y = mixture(rng, 150, 4, (0.5, 0.3, 0.2), 3.0)
    return np.stack([redrawn(rng, x, share) for share in (0.1, 0.3, 0.7)]), y


def matrix(observed):
    return np.asarray(observed.product(jnp.eye(observed.size)))


close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-12)


def deleted(kernel, z, groups):
    """Payoffs ``[k, n]`` and ``h`` with every group truly deleted, by loops."""
    n, (middle, _) = len(kernel), (z.mean(axis=0), None)
    same = groups[:, None] == groups
    centring = np.eye(n) - 1 / n
    centred = centring @ kernel @ centring
    own, shares = np.diag(centred), middle.mean(axis=0)
    off = centred - np.diag(own)
    directions = np.sum(shares > 0) - 1
    tau = 2 * np.sqrt(directions * np.sum(off**2) / (n * (n - 1))) / (own.sum() / (n - 1))
    noise = np.maximum(shares, 0.5 / n) * np.sum(centred * same) / (n * (n - 1))
    h = np.zeros_like(middle)
    for group in np.unique(groups):
        rest = np.flatnonzero(groups != group)
        others = middle[rest] - middle[rest].mean(axis=0)
        part = kernel[np.ix_(rest, rest)]
        centre = np.eye(len(rest)) - 1 / len(rest)
        between = (centre @ part @ centre) * ~same[np.ix_(rest, rest)]
        gram = others.T @ between @ others / len(rest) ** 2
        scorer = np.linalg.inv(gram + 1j * tau * np.diag(noise)).real
        for i in np.flatnonzero(groups == group):
            h[i] = scorer @ others.T @ (kernel[rest, i] - part.mean(axis=1)) / len(rest)
    return np.einsum("nd,knd->kn", h, z - z.mean(axis=1)[:, None]), h


@pytest.mark.thorough
@pytest.mark.parametrize("soft", [False, True])
def test_a_record_is_left_out_as_if_deleted(data, soft):
    reports, y = data
    z = np.eye(3)[reports]
    z = 0.8 * z + 0.2 * np.random.default_rng(1).dirichlet(np.ones(3), z.shape[:2]) if soft else z
    observed = observe(rbf, y)
    found = payoffs(observed, z if soft else reports)
    expected, h = deleted(matrix(observed), z, np.arange(len(y)))
    np.testing.assert_allclose(found.values, expected, atol=2e-3 * np.abs(expected).max())
    differences = np.sum(h * (z[0] - z[1]), axis=1)
    np.testing.assert_allclose(
        found.differences, differences, atol=4e-3 * np.abs(differences).max()
    )
    np.testing.assert_allclose(found.means, found.values.mean(axis=1))
    # A group of one record each is the same number by the other branch.
    grouped = payoffs(observed, z, groups=np.arange(len(y)))
    np.testing.assert_allclose(grouped.values, found.values, atol=1e-10)
    np.testing.assert_allclose(grouped.covariance, found.covariance, rtol=1e-9)


@pytest.mark.thorough
def test_a_group_is_left_out_as_if_deleted(data):
    reports, y = data
    groups = np.random.default_rng(2).permutation(np.arange(len(y)) // 4)
    observed = observe(rbf, y)
    found = payoffs(observed, reports, groups=groups)
    expected, _ = deleted(matrix(observed), np.eye(3)[reports], groups)
    assert np.abs(found.values - expected).max() < 0.05 * np.abs(expected).max()
    assert np.corrcoef(found.values.ravel(), expected.ravel())[0, 1] > 0.999


@pytest.mark.thorough
def test_duplicates_in_a_group_do_not_vouch_for_each_other():
    rng = np.random.default_rng(3)
    x, y = mixture(rng, 200, 200, (0.6, 0.4), 4.0)
    reports = np.stack([x, redrawn(rng, x, 0.5)])
    once = payoffs(observe(rbf, y), reports)
    copies = np.tile(np.arange(200), 3)
    observed = observe(rbf, y[copies])
    ignored = payoffs(observed, reports[:, copies])
    grouped = payoffs(observed, reports[:, copies], groups=copies)
    ratio = [float(found.means[1] / found.means[0]) for found in (once, ignored, grouped)]
    assert ratio[2] == pytest.approx(ratio[0], abs=0.02)
    assert ratio[1] > ratio[2] + 0.05
    np.testing.assert_allclose(grouped.covariance, once.covariance, rtol=0.3)


@pytest.mark.thorough
def test_weights_are_repetitions():
    rng = np.random.default_rng(4)
    counts = rng.integers(0, 5, 40)
    reports, codes = rng.integers(-1, 3, (3, 40)), rng.integers(0, 6, 40)
    repeat = partial(np.repeat, repeats=counts, axis=-1)
    few, many = observe(Delta(6), codes), observe(Delta(6), repeat(codes))
    one = pair_payoffs(few, reports, num_classes=3, weights=counts)
    all_ = pair_payoffs(many, repeat(reports), num_classes=3)
    for field in ("means", "covariance", "seen"):
        close(getattr(one, field), getattr(all_, field))
    close(repeat(one.values), all_.values)
    one = noise_tests(few, reports, num_classes=3, weights=counts)
    close(one, noise_tests(many, repeat(reports), num_classes=3))
    difference = rng.normal(size=40)
    close(sign_test(difference, counts), sign_test(repeat(difference)))
    close(records_needed(difference, counts), records_needed(repeat(difference)))


def test_labels_are_memberships_and_kernels_agree(data):
    reports, y = data
    hard, soft = (pair_payoffs(observe(rbf, y), z) for z in (reports, np.eye(3)[reports]))
    jax.tree.map(np.testing.assert_array_equal, hard, soft)
    codes = (y[:, 0] > 0) + 2 * (y[:, 1] > 1)
    counted = pair_payoffs(observe(Delta(4), codes), reports)
    equal = observe(lambda a, b: (a == b).astype(float), codes.astype(float))
    paired = pair_payoffs(equal, reports)
    jax.tree.map(partial(np.testing.assert_allclose, atol=1e-9), counted, paired)


@pytest.mark.thorough
def test_pairs_are_judged_on_the_records_that_both_label(data):
    reports, y = data
    partial_reports = np.where(np.random.default_rng(5).random(reports.shape) < 0.2, -1, reports)
    observed = observe(rbf, y)
    found = pair_payoffs(observed, partial_reports, num_classes=3)
    for number, (i, j) in enumerate(zip(*np.triu_indices(3, 1), strict=True)):
        both = (partial_reports[i] >= 0) & (partial_reports[j] >= 0)
        if number == 0:  # every number of records compiles its own
            alone = payoffs(observe(observed.kernel, y[both]), partial_reports[[i, j]][:, both])
            close(found.means[number], alone.means)
            close(found.covariance[number], alone.covariance)
        assert np.all(np.asarray(found.differences[number])[~both] == 0)
    whole = pair_payoffs(observed, reports)
    each = pair_payoffs(observed, reports, num_classes=3, complete=False)
    jax.tree.map(close, whole, each)


@pytest.mark.thorough
def test_a_report_alone_is_judged_on_the_records_that_it_labels(data):
    (x, z, _), y = data
    z = np.where(np.arange(len(z)) % 3 == 0, -1, z)
    observed = observe(rbf, y)
    alone = payoffs_alone(products(observed, np.stack([x, z]), num_classes=3))
    expected = payoffs(observed, x[None], num_classes=3)
    np.testing.assert_allclose(alone.values[0, 0], expected.values[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(alone.covariance[0, 0, 0], expected.covariance[0, 0], rtol=1e-9)
    np.testing.assert_array_equal(alone.weights[1], z >= 0)
    kept = payoffs(observe(observed.kernel, y[z >= 0]), z[z >= 0][None], num_classes=3)
    np.testing.assert_allclose(alone.means[1, 0], kept.means[0], rtol=0.02)
    np.testing.assert_allclose(alone.covariance[1, 0, 0], kept.covariance[0, 0], rtol=0.05)


def test_swapping_two_labels_turns_one_sign(data):
    reports, y = data
    observed = observe(rbf, y)
    swap = np.random.default_rng(6).random(len(y)) < 0.3
    swapped = np.where(swap, reports[1::-1], reports[:2])
    before, after = (payoffs(observed, two).differences for two in (reports[:2], swapped))
    close(after, np.where(swap, -before, before))


@pytest.mark.thorough
def test_transformations(data):
    reports, y = data
    observed = observe(rbf, y)
    plain = payoffs(observed, reports)
    jax.tree.map(close, jax.jit(partial(payoffs, num_classes=3))(observed, reports), plain)
    twice = jax.vmap(lambda each: payoffs(observed, each, num_classes=3).means)
    close(twice(jnp.stack([reports[::-1], reports]))[1], plain.means)
    z = jnp.asarray(0.9 * np.eye(3)[reports] + 0.1 / 3)

    @jax.jit
    def contrast(z):
        found = payoffs(observed, z)
        return found.means[0] - found.means[1]

    slope = jax.jit(jax.grad(contrast))(z)
    direction = np.random.default_rng(7).normal(size=z.shape)
    numeric = (contrast(z + 1e-5 * direction) - contrast(z - 1e-5 * direction)) / 2e-5
    assert float(jnp.sum(slope * direction)) == pytest.approx(float(numeric), rel=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("dim", "shares", "narrower"), [(512, (0.7, 0.15, 0.1, 0.05), 1), (10, (0.8, 0.15, 0.05), 3)]
)
def test_skewed_reports_are_ordered_right_where_the_published_score_is_not(dim, shares, narrower):
    orders = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x, y = mixture(rng, 600, dim, shares, 3.0)
        reports = np.stack([redrawn_uniformly(rng, x, e, len(shares)) for e in (0, 0.1, 0.2, 0.4)])
        observed = observe(RBF(observe(rbf, y).kernel.bandwidth / narrower), y)
        found = payoffs(observed, reports)
        published = [plugin_log_score(report, observed) for report in reports]
        orders.append([kendalltau([4, 3, 2, 1], list(s))[0] for s in (found.means, published)])
    ours, paper = np.mean(orders, axis=0)
    assert ours > 0.95
    assert paper < 0.3


def redrawn_uniformly(rng, x, share, d):
    return np.where(rng.random(len(x)) < share, rng.integers(0, d, len(x)), x)


@pytest.mark.thorough
def test_sizes_and_coverage():
    """Equal reports are told apart in 5%, and the interval of a planted share holds it in 95%."""
    kernel = RBF(3.0)
    compiled = jax.jit(
        lambda y, z: pair_payoffs(observe(kernel, y), z, num_classes=3, complete=True)
    )
    tests = jax.jit(lambda y, z: noise_tests(observe(kernel, y), z, num_classes=3))
    apart, covered, noise = [], [], []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        x, y = mixture(rng, 200, 6, (0.7, 0.2, 0.1), 3.0)
        reports = np.stack([x, *(redrawn(rng, x, e) for e in (0.4, 0.4, 1.0))])
        pairs = compiled(y, reports)
        apart.append(float(sign_test(pairs.differences[3])[1]) < 0.05)
        found = retention(pairs.means[0], pairs.covariance[0], 1.96)
        # redrawing by a permutation: what is kept is the share that was not redrawn
        covered.append(bool(found.lower <= 0.6 <= found.upper))
        noise.append(np.asarray(tests(y, reports)) < 0.05)
    assert np.mean(apart) < 0.11
    assert np.mean(covered) > 0.88
    assert np.mean(noise, axis=0)[3] < 0.11
    assert np.mean(noise, axis=0)[:3].min() > 0.9


def test_noise_test_agrees_with_permutations(data):
    reports, y = data
    rng = np.random.default_rng(8)
    observed = observe(rbf, y)
    weak = redrawn(rng, reports[0], 0.93)
    compiled = jax.jit(lambda z: noise_tests(observed, z[None], num_classes=3)[0])
    permuted = [float(compiled(rng.permutation(weak))) for _ in range(400)]
    assert np.mean(np.array(permuted) < 0.05) == pytest.approx(0.05, abs=0.035)
    assert np.mean(np.array(permuted) < 0.5) == pytest.approx(0.5, abs=0.08)


def test_moments_over_all_permutations():
    rng = np.random.default_rng(13)
    n, centre = 6, np.eye(6) - 1 / 6
    first, second = (centre @ a @ a.T @ centre for a in rng.normal(size=(2, n, 3)))
    values = [
        np.sum(first * second[np.ix_(order, order)])
        for order in map(list, itertools.permutations(range(n)))
    ]
    parts = [(np.trace(m), np.sum(m**2), np.sum(np.diag(m) ** 2)) for m in (first, second)]
    np.testing.assert_allclose(
        _permutation_moments(n, *parts), (np.mean(values), np.var(values)), rtol=1e-10
    )


def test_noise_test_of_a_report_alone_has_the_moments_of_all_permutations():
    rng = np.random.default_rng(14)
    y, labels = rng.normal(size=(7, 3)), np.array([0, 0, 0, 1, 1, 2, 2])
    observed = observe(TableKernel.of(y), y)
    centring = np.eye(7) - 1 / 7
    entries = centring @ matrix(observed) @ centring
    z = np.eye(3)[labels] / np.sqrt(labels.size * np.bincount(labels)[labels] / 49)[:, None]
    alike = z @ z.T
    orders = np.array(list(itertools.permutations(range(7))))
    drawn = np.sum(entries * alike[orders[:, :, None], orders[:, None]], axis=(1, 2))
    mean, variance = drawn.mean(), drawn.var()
    expected = gamma.sf(drawn[0], mean**2 / variance, scale=variance / mean)
    assert float(noise_tests(observed, labels[None])[0]) == pytest.approx(expected)


def test_alignment():
    rng = np.random.default_rng(12)
    x = rng.choice(4, 300, p=(0.6, 0.2, 0.1, 0.1))
    other = redrawn(rng, x, 0.5)
    names = np.array([2, 0, 3, 1])
    noise = np.stack([x, *(rng.permutation(x) for _ in range(30))])
    assert np.all(align(noise, 4).names == np.arange(4))
    missing = np.where(rng.random(300) < 0.2, -1, names[other])
    # A report of noise comes first: it must not stand between the others.
    reports = np.stack([noise[1], x, names[other], missing, other])
    found = align(reports, 4)
    aligned = found.reports
    np.testing.assert_array_equal(aligned[2], other)
    np.testing.assert_array_equal(aligned[3], np.where(missing < 0, -1, other))
    np.testing.assert_array_equal(found.names[[0, 1, 4]], np.tile(np.arange(4), (3, 1)))
    assert found.nearest[2] == found.nearest[3] == 4
    assert (align(reports[[2, 3, 1, 4, 0]], 4).names == np.arange(4)).all(axis=1).tolist() == [
        True, True, False, False, True]  # fmt: skip


def check_defined(found):
    for leaf in jax.tree.leaves(found):
        assert np.all(np.isfinite(leaf))


@pytest.mark.thorough
def test_degenerate_reports_have_defined_values(data):
    reports, y = data
    observed = observe(rbf, y)
    constant, same = np.zeros_like(reports[0]), reports[0]
    rare = np.where(np.arange(len(y)) == 3, 3, reports[1])  # a class used once, by one report
    found = pair_payoffs(observed, np.stack([same, same, constant, rare, constant]), num_classes=5)
    check_defined(found)
    z, p = jax.vmap(sign_test)(found.differences)
    assert (z[0], p[0]) == (0, 1)  # identical
    np.testing.assert_allclose(found.means[1, 1], 0, atol=1e-12)  # a constant report
    np.testing.assert_allclose(found.means[8], 0, atol=1e-12)  # two of them
    assert z[1] > 0
    assert z[2] > 0
    check_defined(noise_tests(observed, np.stack([same, constant]), num_classes=3))
    check_defined(payoffs(observe(rbf, y[:2]), reports[:, :2], num_classes=3))
    check_defined(payoffs(observe(Delta(1), np.zeros(20, int)), reports[:, :20]))  # nothing seen
    check_defined(noise_tests(observe(Delta(1), np.zeros(20, int)), reports[:, :20]))
    check_defined(payoffs(observe(Delta(20), np.arange(20)), reports[:, :20]))
    check_defined(payoffs(observed, reports[:1]))
    check_defined(payoffs(observed, reports, groups=(np.arange(len(y)) > 0).astype(int)))
    missing = np.stack([same, np.full_like(same, -1)])
    check_defined(pair_payoffs(observed, missing, num_classes=3))
    check_defined(noise_tests(observed, missing, num_classes=3))


def test_bad_input(data):
    reports, y = data
    observed = observe(rbf, y)
    for function, given, message in (
        (payoffs, np.zeros((2, 5), int), "one label a record"),
        (payoffs, np.zeros((2, 150), int), "two records and two classes"),
        (pair_payoffs, reports[:1], "at least two reports"),
        (partial(payoffs, groups=np.zeros(len(y), int)), reports, "at least two groups"),
    ):
        with pytest.raises(ValueError, match=message):
            function(observed, given)


@pytest.mark.thorough
def test_single_precision(data):
    reports, y = data
    exact = payoffs(observe(rbf, y), reports)
    with jax.enable_x64(False):
        found = payoffs(observe(rbf, y.astype(np.float32)), reports)
        assert found.values.dtype == np.float32
    np.testing.assert_allclose(found.means, exact.means, rtol=1e-3)
    np.testing.assert_allclose(found.covariance, exact.covariance, rtol=1e-2)


@pytest.mark.thorough
def test_copies_of_noise_are_no_better_than_noise():
    rng, n = np.random.default_rng(0), 120

    @jax.jit
    def tests(observed, reports):
        return noise_tests_of(products(observed, reports, num_classes=3))

    copied = rng.integers(0, 3, n)
    nearly = np.where(rng.random(n) < 0.1, 0, copied)
    nothing = observe("delta", np.arange(n))  # no two records are alike
    assert (np.asarray(tests(nothing, np.stack([copied, nearly]))) > 0.5).all()
    below = np.zeros(2)
    for _ in range(250):
        labels = rng.choice(3, n, p=[0.7, 0.2, 0.1])
        copy = np.where(rng.random(n) < 0.2, rng.choice(3, n, p=[0.7, 0.2, 0.1]), labels)
        observed = observe(RBF(2.0), rng.normal(size=(n, 3)))
        below += np.asarray(tests(observed, np.stack([labels, copy]))) < 0.05
    assert (below <= 24).all()  # 12.5 expected; without the pairs that score each other 30
