"""Misreport matrices and the four orderings, with counterexamples to the paper's slips."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jgram.paper.orderings import (
    balance,
    blackwell_ordering,
    dist_ordering,
    exact_match_ordering,
    hamming_distance,
    is_balanced,
    is_diagonally_dominant,
    is_independent,
    is_nonpermutation,
    is_regular,
    joint_frequencies,
    misreport_matrix,
    reported_given_true,
)
from tests.refusals import refused

seeds = st.integers(0, 2**32 - 1)
# Invertible, with ties on the diagonal: its rows and those of its relabelling are both maximal.
TIED = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
PAIR = np.array([[2, 1], [0, 1]]), np.array([[2, 1], [0, 1]])
CYCLE = np.roll(np.eye(3, dtype=int), -1, axis=1)


def regular_misreports(totals, d=3):
    """Every matrix of counts in Q_reg with the given true counts."""
    options = [
        [row for row in itertools.product(range(total + 1), repeat=d) if sum(row) == total]
        for total in totals
    ]
    return [q for q in map(np.array, itertools.product(*options)) if is_regular(q)]


def relation(orders, misreports):
    return np.array([[orders(a, b).dominates for b in misreports] for a in misreports])


def random_semimetric(rng, d):
    upper = np.triu(rng.uniform(0.5, 3.0, (d, d)), 1)
    return upper + upper.T


def random_reports(seed, reports=3):
    """A random truth with every label in it, and reports on it, from faithful to arbitrary."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(2, 5)), int(rng.integers(6, 30))
    x = np.concatenate([np.arange(d), rng.integers(0, d, n)])
    rates = rng.choice([0.0, 0.1, 0.4, 1.0], reports)
    return [
        misreport_matrix(
            x, np.where(rng.random(len(x)) < p, rng.integers(0, d, len(x)), x), num_classes=d
        )
        for p in rates
    ]


def garbled_reports(seed):
    """A report in Q_dom and two successive garblings of it, all in Q_reg."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 5))
    near = [np.eye(d) + rng.uniform(0.02, 0.4) * rng.dirichlet(np.ones(d), d) for _ in range(3)]
    rows, *garblings = [m / m.sum(axis=1, keepdims=True) for m in near]
    first = rng.dirichlet(5 * np.ones(d))[:, None] * rows
    return first, first @ garblings[0], first @ garblings[0] @ garblings[1]


def test_misreport_matrix_counts_pairs():
    rng = np.random.default_rng(0)
    x, x_hat = rng.integers(0, 4, 200), rng.integers(0, 4, 200)
    expected = np.zeros((4, 4))
    for true, reported in zip(x, x_hat, strict=True):
        expected[true, reported] += 1 / 200
    np.testing.assert_allclose(misreport_matrix(x, x_hat), expected)
    counts = np.array([[5, 1, 0], [1, 6, 1], [0, 2, 7]])
    np.testing.assert_array_equal(joint_frequencies(counts), joint_frequencies(counts / 23))


@given(seeds)
def test_equation_1_conditionals_times_marginals_are_the_joint(seed):
    joint = random_reports(seed, 1)[0]
    true, reported = joint.sum(axis=1), joint.sum(axis=0)
    np.testing.assert_allclose((reported_given_true(joint) @ np.diag(true)).T, joint, atol=1e-15)
    if reported.min() > 0:
        true_given_reported = reported_given_true(joint.T)
        np.testing.assert_allclose(true_given_reported @ np.diag(reported), joint, atol=1e-15)
        np.testing.assert_allclose(true_given_reported.sum(axis=0), 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: joint_frequencies([[0.5, 0.2], [0.1, 0.1]]), "sum to 1, got 0.9"),
        (lambda: joint_frequencies([[0.5, -0.1], [0.3, 0.3]]), "entries >= 0"),
        (lambda: joint_frequencies([[0, 0], [0, 0]]), "sum to 1, got 0"),
        (lambda: joint_frequencies([[1, 2, 3]]), r"\[d, d\], got shape \[1, 3\]"),
        (lambda: misreport_matrix([0, 1], [0]), r"got \[2\] and \[1\]"),
        (lambda: misreport_matrix([0, 3], [0, 1], num_classes=3), "0..2, got 3"),
        (lambda: misreport_matrix([0, 1], [0, -1]), "got -1"),
        (lambda: reported_given_true([[2, 1], [0, 0]]), "label 1 is never the true label"),
        (lambda: is_independent([[0.5, 0.5], [0.4, 0.5]]), "sum to 1, got column sums"),
        (lambda: is_balanced([[2, 1], [0, 1]], 0.5), "L >= 1"),
        (lambda: dist_ordering(*PAIR, [[0, 1], [2, 0]]), "symmetric"),
        (lambda: dist_ordering(*PAIR, [[0, 0], [0, 0]]), "above 0"),
        (lambda: dist_ordering(*PAIR, np.ones((3, 3))), r"expected a distance \[2, 2\]"),
        (lambda: dist_ordering([[2, 1], [0, 1]], [[1, 1], [1, 1]]), "differ by 0.25"),
        (lambda: dist_ordering([[2, 1], [0, 1]], np.eye(3, dtype=int)), "one size"),
        (lambda: dist_ordering([[2, 0], [0, 1]], [[2, 0], [0, 1]], alpha=0.0), "alpha in"),
    ],
)
def test_bad_input_is_one_clear_error(call, message, unchecked):
    assert re.search(message, refused(call))


def test_membership_of_known_matrices():
    truth, swapped = np.diag([3, 2]), np.array([[0, 3], [2, 0]])
    merged, noisy = np.array([[3, 0], [2, 0]]), np.array([[2, 1], [1, 1]])
    rows = [
        # nonperm, regular, dominant, L=1.5
        (truth, True, True, True, True),
        (swapped, False, False, False, False),
        (merged, True, False, False, False),
        (noisy, True, True, True, True),
        (np.array([[1, 2], [0, 2]]), True, False, False, False),
        (np.array([[9, 0], [0, 1]]), True, True, True, False),
        (np.array([[3, 0], [0, 0]]), False, False, False, False),
        (TIED, True, True, True, True),
    ]
    for q, *expected in rows:
        found = [
            is_nonpermutation(q), is_regular(q), is_diagonally_dominant(q), is_balanced(q, 1.5)
        ]  # fmt: skip
        assert found == expected, q
    assert balance([[9, 0], [0, 1]]) == 9.0
    assert balance(np.array([[3, 0], [0, 0]])) == np.inf
    assert is_balanced(noisy, 1.5, delta=0.4)
    assert not is_balanced(noisy, 1.5, delta=0.39)


@given(seeds)
def test_sets_are_nested(seed):
    rng = np.random.default_rng(seed)
    for q in [
        *random_reports(seed),
        *rng.integers(0, 4, (5, 2, 2)),
        *rng.integers(0, 3, (5, 3, 3)),
    ]:
        if not q.any():
            continue
        assert not is_balanced(q, 3.0, 0.1) or is_balanced(q, 3.0)
        assert not is_balanced(q, 3.0) or is_diagonally_dominant(q)
        assert not is_diagonally_dominant(q) or is_regular(q)
        assert not is_regular(q) or is_nonpermutation(q)


def test_weakly_dominant_matrices_may_be_singular():
    """Against the footnote on Q_dom: rows may tie with their off-diagonal and be equal."""
    tied = np.array([[1, 1], [1, 1]])
    assert (2 * np.diag(tied) >= tied.sum(axis=1)).all()
    assert np.linalg.det(tied) == 0
    assert not is_diagonally_dominant(tied)


def test_independence_is_rank():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(5), 3).T
    assert is_independent(p)
    assert not is_independent(np.column_stack([p, p @ [0.2, 0.5, 0.3]]))
    assert not is_independent(p[:, :2].sum(axis=0, keepdims=True))  # one outcome, two labels
    assert is_independent(np.column_stack([p[:, 0], 0.999 * p[:, 0] + 0.001 * p[:, 1]]))


def test_distances_are_means_over_records_and_what_each_orders():
    rng = np.random.default_rng(2)
    x, x_hat = rng.integers(0, 4, 100), rng.integers(0, 4, 100)
    distance = random_semimetric(rng, 4)
    q = misreport_matrix(x, x_hat)
    assert dist_ordering(q, q, distance).distance == pytest.approx(distance[x, x_hat].mean())
    assert hamming_distance(q) == pytest.approx((x != x_hat).mean())
    assert hamming_distance(q) == pytest.approx(1 - np.trace(q))
    truth, close, far = np.diag([5, 5]), np.array([[5, 0], [1, 4]]), np.array([[0, 5], [5, 0]])
    orders = [exact_match_ordering(*pair).dominates for pair in
              ((truth, close), (truth, far), (close, far), (truth, truth))]  # fmt: skip
    assert orders == [True, True, False, False]
    near = np.array([[3, 2, 0], [0, 5, 0], [0, 0, 5]])
    far = np.array([[4, 0, 1], [0, 5, 0], [0, 0, 5]])
    ordinal = np.abs(np.subtract.outer(np.arange(3), np.arange(3))) ** 2
    assert dist_ordering(far, near).dominates
    assert dist_ordering(near, far, ordinal).dominates
    assert not dist_ordering(near, far, ordinal, alpha=0.5).dominates  # 2 < 4/2 fails: a tie


@given(seeds)
def test_propositions_b1_and_b3_strict_partial_orders(seed):
    rng = np.random.default_rng(seed)
    reports = random_reports(seed, 5)
    distance = random_semimetric(rng, len(reports[0]))
    for orders in (
        exact_match_ordering,
        dist_ordering,
        lambda a, b: dist_ordering(a, b, distance),
        lambda a, b: dist_ordering(a, b, distance, alpha=0.5),
    ):
        r = relation(orders, reports)
        assert not np.diag(r).any()
        assert not (r & r.T).any()
        assert not ((r @ r) & ~r).any()


@pytest.mark.parametrize("totals", [(2, 2, 2), (1, 2, 3)])
def test_proposition_b2_blackwell_is_a_strict_partial_order(totals):
    """Every pair and triple of reports in Q_reg on a small truth, ties included."""
    r = relation(blackwell_ordering, regular_misreports(totals))
    assert r.any()
    assert not np.diag(r).any()
    assert not (r & r.T).any()
    assert not ((r @ r) & ~r).any()


@given(seeds)
def test_blackwell_finds_the_garbling(seed):
    first, second, third = garbled_reports(seed)
    result = blackwell_ordering(first, second)
    assert result.dominates, result.reason
    np.testing.assert_allclose(
        result.garbling @ reported_given_true(first), reported_given_true(second), atol=1e-9
    )
    np.testing.assert_allclose(result.garbling.sum(axis=0), 1.0)
    assert blackwell_ordering(second, third).dominates
    assert blackwell_ordering(first, third).dominates
    assert not blackwell_ordering(third, first).dominates
    assert not blackwell_ordering(first, first).dominates


def test_blackwell_says_why_not():
    sharp, noisy = np.array([[9, 1], [1, 9]]), np.array([[7, 3], [3, 7]])
    assert blackwell_ordering(sharp, noisy).dominates
    backwards = blackwell_ordering(noisy, sharp)
    assert not backwards.dominates
    assert "negative" in backwards.reason
    assert backwards.garbling.min() < 0
    assert "singular" in blackwell_ordering([[5, 5], [5, 5]], noisy).reason
    assert "not diagonally maximal" in blackwell_ordering(sharp[::-1], noisy).reason
    assert "second report" in blackwell_ordering(sharp, [[5, 5], [5, 5]]).reason


def test_lemma_a3_needs_strict_maxima():
    """Two reports in Q_reg, each a relabelling of the other: T is a permutation, both ways."""
    relabelled = TIED @ CYCLE
    assert is_regular(TIED)
    assert is_regular(relabelled)
    assert not np.array_equal(TIED, relabelled)
    for first, second in [(TIED, relabelled), (relabelled, TIED)]:
        result = blackwell_ordering(first, second)
        np.testing.assert_allclose(
            result.garbling @ reported_given_true(first), reported_given_true(second), atol=1e-12
        )
        assert np.isin(result.garbling.round(12), [0, 1]).all()
        assert not result.dominates  # counted, the ordering would not be asymmetric
    assert abs(np.linalg.det(TIED)) == pytest.approx(abs(np.linalg.det(relabelled)))


@pytest.mark.parametrize("totals", [(3, 3, 3), (2, 3, 4)])
def test_proposition_2_1_1_blackwell_refines_exact_match(totals):
    for truth, other in itertools.product([np.diag(totals)], regular_misreports(totals)):
        if exact_match_ordering(truth, other).dominates:
            assert blackwell_ordering(truth, other).dominates


def is_column_maximal(q):
    return bool((q <= np.diag(q)).all())


def test_proposition_2_1_2_hamming_need_not_refine_blackwell():
    """Garbling toward the frequent class makes fewer errors: both reports are in Q_dom."""
    first, garbling = np.array([[0.5, 0.3], [0.0, 0.2]]), np.array([[1.0, 0.25], [0.0, 0.75]])
    second = first @ garbling.T
    assert is_diagonally_dominant(first)
    assert is_diagonally_dominant(second)
    assert blackwell_ordering(first, second).dominates
    assert dist_ordering(second, first).dominates
    assert np.trace(first) == pytest.approx(0.7)
    assert np.trace(second) == pytest.approx(0.725)


def test_proposition_2_1_2_needs_strict_column_maxima():
    """A balanced truth and a report in Q_dom, tied with its maxima: dominance, equal distance."""
    first = np.array([[2, 2, 0], [0, 2, 2], [2, 0, 2]]) / 12
    second = np.array([[20, 18, 2], [2, 20, 18], [18, 2, 20]]) / 120
    assert is_balanced(first, 1.0)
    assert is_column_maximal(first)
    assert blackwell_ordering(first, second).dominates
    assert not dist_ordering(first, second).dominates
    assert hamming_distance(first) == pytest.approx(hamming_distance(second))


@pytest.mark.parametrize("totals", [(2, 2, 2), (1, 2, 3)])
def test_proposition_2_1_2_holds_under_column_maxima(totals):
    """Every Blackwell-ordered pair on a small truth; strict where the maxima are strict."""
    reports, checked = regular_misreports(totals), 0
    for a, b in itertools.permutations(reports, 2):
        if is_column_maximal(a) and blackwell_ordering(a, b).dominates:
            assert np.trace(a) >= np.trace(b)
            strict = (a - np.diag(np.diag(a)) < np.diag(a)).all()
            assert not strict or dist_ordering(a, b).dominates
            checked += 1
    assert checked > 20


@given(seeds)
def test_proposition_2_1_2_holds_on_balanced_dominant_reports(seed):
    first, second, _ = garbled_reports(seed)
    d = len(first)
    rows = [q / q.sum(axis=1, keepdims=True) / d for q in (first, second)]
    assert is_balanced(rows[0], 1.0)
    assert is_column_maximal(rows[0])
    assert dist_ordering(*rows).dominates


@given(seeds, st.floats(0.1, 1.0), st.floats(0.1, 1.0))
def test_proposition_2_1_3_larger_alpha_refines(seed, one, two):
    rng = np.random.default_rng(seed)
    first, second = random_reports(seed, 2)
    distance = random_semimetric(rng, len(first))
    smaller, larger = sorted([one, two])
    if dist_ordering(first, second, distance, alpha=smaller).dominates:
        assert dist_ordering(first, second, distance, alpha=larger).dominates
