"""What the paper proves, as functions whose conditions are checked, and what it proves impossible.

Small float64 computations on the host. ``P[m, d]`` is an experiment (column ``x`` the distribution
of the observation given label ``x``), ``Q[d, d]`` a misreport matrix (true, reported).

Where each statement of *Data Reliability Scoring* is in this package, and which of them do not hold
as written, is one page: ``experiments/PAPER.md``.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jgram.paper.orderings import (
    aspect_ratio,
    balance,
    check_experiment,
    dist_ordering,
    hamming_distance,
    is_balanced,
    joint_frequencies,
)

__all__ = [
    "Bounds",
    "DistGuarantee",
    "Setting",
    "additive_sample_size",
    "bounded_ratio",
    "concentration_bound",
    "dependence_impossibility",
    "determinant_bounds",
    "dist_guarantee",
    "distance_impossibility",
    "log_population_score",
    "multiplicative_sample_size",
    "relabelling_impossibility",
    "relative_error_bound",
    "stratified_sample_size",
    "uninformative_impossibility",
]

SINGULAR = 1e-12


class Bounds(NamedTuple):
    """A lower and an upper bound."""

    lower: float
    upper: float


class DistGuarantee(NamedTuple):
    """Whether Theorem 4.2(3) promises that the score orders two reports rightly.

    Attributes:
        applies: Whether it does.
        alpha: ``1 / (4 L Delta)``, how much closer the first report has to be.
        balance: ``L`` of the truth.
        largest_share: ``1 / (64 L^2 d^2)``, the share of misreported records allowed.
        reason: Why, in words.
    """

    applies: bool
    alpha: float
    balance: float
    largest_share: float
    reason: str


class Setting(NamedTuple):
    """An experiment and two reports, the first better than the second by the ordering at hand.

    Attributes:
        experiment: ``P[m, d]``.
        better: Misreport matrix ``[d, d]`` of the better report.
        worse: That of the worse one.
    """

    experiment: np.ndarray
    better: np.ndarray
    worse: np.ndarray

    @property
    def joints(self) -> tuple[np.ndarray, np.ndarray]:
        """All that a score gets to see of the better and the worse report: ``P Q`` and ``P Q'``."""
        return self.experiment @ self.better, self.experiment @ self.worse


def log_population_score(
    experiment: ArrayLike, misreport: ArrayLike, *, kernel: ArrayLike | None = None
) -> float:
    """The score of infinitely many records, ``log Gamma = log det (P Q)^T K (P Q)``.

    Args:
        experiment: ``P[m, d]``, columns that sum to one.
        misreport: ``Q[d, d]``, counts or frequencies of (true, reported).
        kernel: ``K[m, m]``, the kernel between outcomes, positive semi-definite; the delta kernel
            by default.

    Returns:
        Natural logarithm, ``-inf`` where the columns of ``P Q`` are linearly dependent (under
        ``K``): relative to unit columns, a singular value of at most 1e-12.

    Raises:
        ValueError: No experiment, no misreport matrix, shapes that do not fit.

    Example:
        >>> score = log_population_score([[0.9, 0.2], [0.1, 0.8]], [[1, 0], [0, 1]])
        >>> print(f"{score:.4f}")  # 2 log(.7 / 4)
        -3.4859

    Reference: Definitions 4.1 and 4.8 of *Data Reliability Scoring*.
    """
    p, q = check_experiment(experiment), joint_frequencies(misreport)
    if p.shape[1] != len(q):
        raise ValueError(f"expected P[m, d] and Q[d, d], got {list(p.shape)} and {list(q.shape)}")
    columns = p @ q
    if kernel is not None:
        columns = _square_root(kernel, len(p)) @ columns
    lengths = np.linalg.norm(columns, axis=0)
    if columns.shape[0] < columns.shape[1] or not lengths.all():
        return -math.inf
    values = np.linalg.svd(columns / lengths, compute_uv=False)
    if values.min() <= SINGULAR:
        return -math.inf
    return 2.0 * float(np.log(values).sum() + np.log(lengths).sum())


def concentration_bound(
    num_records: int, num_classes: int, failure_probability: float = 0.05
) -> float:
    """How far the plug-in Gram matrix is from its expectation, in spectral norm, at most.

    ``4 sqrt(log(2d/delta) / N) + 2 log(2d/delta) / N`` with probability ``1 - delta``, for fixed
    reports and any kernel with ``|K| <= 1``. Loose: 65 to 90 times the true 95% quantile at
    ``d = 4`` and N from 500 to 32,000, above the norm of the matrix itself up to N = 16,000.

    Args:
        num_records: ``N``.
        num_classes: ``d``.
        failure_probability: ``delta`` in (0, 1).

    Raises:
        ValueError: Arguments out of range.

    Example:
        >>> print(f"{concentration_bound(10_000, 4):.4f}")
        0.0911

    Reference: Lemmas E.1 (delta kernel) and 4.12 of *Data Reliability Scoring*.
    """
    _check_counts(num_records=num_records, num_classes=num_classes)
    _check_between("failure_probability", failure_probability, 0.0, 1.0)
    rate = math.log(2 * num_classes / failure_probability) / num_records
    return 4.0 * math.sqrt(rate) + 2.0 * rate


def relative_error_bound(gram: ArrayLike, deviation: float) -> float:
    """The relative error of a determinant: ``(1 + deviation / lambda_min)^d - 1`` at most.

    Args:
        gram: ``[d, d]``, symmetric positive semi-definite: the expected Gram matrix.
        deviation: Spectral norm of the difference, e.g. :func:`concentration_bound`.

    Returns:
        Bound on ``|det(G + E) - det(G)| / det(G)``; infinite for a singular ``gram``.

    Raises:
        ValueError: No square matrix, a negative deviation.

    Example:
        >>> print(f"{relative_error_bound([[0.2, 0.0], [0.0, 0.1]], 0.01):.2f}")
        0.21

    Reference: Theorem A.2 of *Data Reliability Scoring*.
    """
    matrix = np.asarray(gram, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"expected a Gram matrix [d, d], got shape {list(matrix.shape)}")
    if not deviation >= 0:
        raise ValueError(f"expected a deviation >= 0, got {deviation}")
    smallest, largest = np.linalg.eigvalsh(matrix)[[0, -1]]
    if smallest <= SINGULAR * largest:
        return math.inf
    return float((1.0 + deviation / smallest) ** len(matrix) - 1.0)


def multiplicative_sample_size(
    num_classes: int, failure_probability: float, relative_error: float, smallest_eigenvalue: float
) -> int:
    """Records that suffice for ``|score - Gamma| <= epsilon Gamma`` with probability ``1 - delta``.

    ``N >= 100 d^2 ln(d/delta) / (lambda^2 epsilon^2)``.

    Args:
        num_classes: ``d``.
        failure_probability: ``delta`` in (0, d/4].
        relative_error: ``epsilon`` in (0, 1/2].
        smallest_eigenvalue: ``lambda`` in (0, 1/d], of the expected Gram matrix (whose trace is at
            most 1 for ``|K| <= 1``).

    Raises:
        ValueError: Arguments out of range; the limits are those under which the bound was checked
            (``experiments/PAPER.md``).

    Example:
        >>> multiplicative_sample_size(4, 0.05, 0.5, 0.01)
        280449705

    Reference: Proposition E.2 of *Data Reliability Scoring*.
    """
    _check_counts(num_classes=num_classes)
    _check_between("smallest_eigenvalue", smallest_eigenvalue, 0.0, 1.0 / num_classes)
    return _sample_size(num_classes, failure_probability, relative_error, smallest_eigenvalue)


def additive_sample_size(
    num_classes: int, failure_probability: float, absolute_error: float
) -> int:
    """Records that suffice for ``|score - Gamma| <= epsilon`` with probability ``1 - delta``.

    ``N >= 100 d^2 ln(d/delta) / epsilon^2``. A score is at most ``d^(-2d)``: an error that says
    anything is far smaller.

    Args:
        num_classes: ``d``.
        failure_probability: ``delta`` in (0, d/4].
        absolute_error: ``epsilon`` in (0, 1/2].

    Raises:
        ValueError: Arguments out of range.

    Example:
        >>> additive_sample_size(2, 0.05, 0.01)
        14755518

    Reference: Proposition E.2 of *Data Reliability Scoring*.
    """
    return _sample_size(num_classes, failure_probability, absolute_error, 1.0)


def stratified_sample_size(largest_ratio: float, num_classes: int) -> int:
    """Records from which the stratified score orders exact matches rightly: ``N >= 2 L d``.

    Then every label of an ``L``-balanced truth occurs at least twice.

    Args:
        largest_ratio: ``L``, at least 1.
        num_classes: ``d``.

    Raises:
        ValueError: Arguments out of range.

    Example:
        >>> stratified_sample_size(1.5, 5)
        15

    Reference: Proposition 4.7 and Theorem 4.14 of *Data Reliability Scoring*.
    """
    _check_ratio(largest_ratio)
    _check_counts(num_classes=num_classes)
    return math.ceil(2.0 * largest_ratio * num_classes)


def bounded_ratio(largest_ratio: float, num_classes: int) -> Bounds:
    """How rare and how frequent a label of an ``L``-balanced truth can be.

    ``1 / (L d - L + 1) <= q(i) <= L / (L + d - 1)``; both are attained.

    Args:
        largest_ratio: ``L``, at least 1.
        num_classes: ``d``.

    Raises:
        ValueError: Arguments out of range.

    Example:
        >>> bounded_ratio(2.0, 3)
        Bounds(lower=0.2, upper=0.5)

    Reference: Lemma D.5 of *Data Reliability Scoring*.
    """
    _check_ratio(largest_ratio)
    _check_counts(num_classes=num_classes)
    rarest = largest_ratio * (num_classes - 1) + 1
    return Bounds(1.0 / rarest, largest_ratio / (largest_ratio + num_classes - 1))


def determinant_bounds(misreport: ArrayLike) -> Bounds:
    """Bounds on ``det(Q) / prod_i q(i)`` by the share of misreported records ``delta``.

    With ``q`` the true frequencies and ``u = 8 d delta^2 / min(q)^2``, the bounds are
    ``(1 - u) (1 - delta / min(q))`` and ``(1 + u) (1 - delta / (2 max(q)))``. The ratio is the
    determinant of the row-stochastic ``Pr[reported | true]``, 1 for the truth.

    Args:
        misreport: ``Q[d, d]``, counts or frequencies of (true, reported).

    Raises:
        ValueError: ``delta`` is not below ``min(q) / 4``. Below it ``Q`` is diagonally dominant.

    Example:
        >>> bounds = determinant_bounds([[49, 1], [0, 50]])  # the ratio is .98
        >>> print(f"{bounds.lower:.4f} {bounds.upper:.4f}")
        0.9737 0.9963

    Reference: Lemma D.4 of *Data Reliability Scoring*.
    """
    joint = joint_frequencies(misreport)
    true, delta = joint.sum(axis=1), hamming_distance(joint)
    if not delta < true.min() / 4:
        raise ValueError(
            "expected fewer misreported records than a quarter of the rarest true label, got "
            f"a share of {delta:.4g} against {true.min():.4g} / 4"
        )
    square = 8.0 * len(joint) * (delta / true.min()) ** 2
    return Bounds(
        float((1.0 - square) * (1.0 - delta / true.min())),
        float((1.0 + square) * (1.0 - delta / (2.0 * true.max()))),
    )


def dist_guarantee(misreport: ArrayLike, other: ArrayLike, distance: ArrayLike) -> DistGuarantee:
    """Whether the first report is proven to score higher, under every independent experiment.

    Both reports have to be in ``Q_{L, 1/(64 L^2 d^2)}`` and the first ahead in the
    ``1/(4 L Delta)``-dist ordering, with ``L`` the balance of the truth and ``Delta`` the aspect
    ratio of the distance. At ``d = 4`` that is one misreported record in a thousand at most. The
    conclusion holds much farther out: in none of 6,714 random pairs from all of ``Q_dom``, ordered
    by ``1/(4L)``-Hamming, did the determinants disagree.

    Args:
        misreport: ``Q[d, d]``, counts or frequencies of (true, reported), first report.
        other: That of the second report, on the same truth.
        distance: Semimetric ``[d, d]``.

    Returns:
        :class:`DistGuarantee`.

    Raises:
        ValueError: A label that is never true, matrices of different truths, no semimetric.

    Example:
        >>> first, second = [[500, 0], [0, 500]], [[500, 0], [1, 499]]
        >>> dist_guarantee(first, second, [[0, 1], [1, 0]]).applies
        True

    Reference: Theorem 4.2(3) and Lemma D.3 of *Data Reliability Scoring*.
    """
    ratio, d = balance(misreport), len(joint_frequencies(misreport))
    if not math.isfinite(ratio):
        raise ValueError("expected every label to occur in the truth, got a label without records")
    alpha = 1.0 / (4.0 * ratio * aspect_ratio(distance))
    share = 1.0 / (64.0 * ratio**2 * d**2)
    closer = dist_ordering(misreport, other, distance, alpha=alpha).dominates
    worst = max(hamming_distance(misreport), hamming_distance(other))
    if not (is_balanced(misreport, ratio, share) and is_balanced(other, ratio, share)):
        reason = f"a share of {worst:.3g} is misreported, above {share:.3g}"
    elif not closer:
        reason = f"the first report is not closer by the factor {alpha:.3g}"
    else:
        reason = "the first report scores higher under every independent experiment"
        return DistGuarantee(True, alpha, ratio, share, reason)
    return DistGuarantee(False, alpha, ratio, share, reason)


def uninformative_impossibility(
    distribution: ArrayLike, num_classes: int, *, mixing: float = 0.5
) -> Setting:
    """No score orders exact matches where labels cannot be told apart by their observations.

    Every column of the experiment is ``distribution``; the worse report replaces a share
    ``mixing`` of a balanced truth by uniform noise. Both joint tables are the same.

    Args:
        distribution: ``[m]``, sums to one.
        num_classes: ``d``, at least 2.
        mixing: In (0, 1].

    Returns:
        One :class:`Setting` whose two joint tables are equal.

    Raises:
        ValueError: No distribution, ``mixing`` out of range.

    Example:
        >>> better, worse = uninformative_impossibility([0.3, 0.7], 3).joints
        >>> bool(np.allclose(better, worse))
        True

    Reference: Proposition 3.1(1), first part, of *Data Reliability Scoring*.
    """
    if num_classes < 2:
        raise ValueError(f"expected at least 2 classes, got {num_classes}")
    _check_between("mixing", mixing, 0.0, 1.0)
    column = np.asarray(distribution, np.float64)[:, None]
    experiment = check_experiment(np.repeat(column, num_classes, axis=1))
    truth = np.eye(num_classes) / num_classes
    return Setting(experiment, truth, (1.0 - mixing) * truth + mixing / num_classes**2)


def relabelling_impossibility(
    experiment: ArrayLike, permutation: Sequence[int]
) -> tuple[Setting, Setting]:
    """No score tells the truth from a relabelling of it: two settings, each the other's mirror.

    In the first the truth is reported and its relabelling is worse; in the second, with the
    experiment's columns permuted, it is the other way round. The joint tables are the same two.

    Args:
        experiment: ``P[m, d]`` with independent columns.
        permutation: ``[d]``: what label ``i`` is relabelled to; not the identity.

    Returns:
        Two settings with ``first.joints == second.joints[::-1]``.

    Raises:
        ValueError: No experiment, no permutation of its labels, or the identity.

    Example:
        >>> one, two = relabelling_impossibility([[0.9, 0.2], [0.1, 0.8]], [1, 0])
        >>> bool(np.allclose(one.joints, two.joints[::-1]))
        True

    Reference: Proposition 3.1(1), second part, of *Data Reliability Scoring*.
    """
    p = check_experiment(experiment)
    d = p.shape[1]
    if sorted(permutation) != list(range(d)) or list(permutation) == list(range(d)):
        raise ValueError(f"expected a permutation of 0..{d - 1} other than the identity")
    relabel, truth = np.eye(d)[list(permutation)], np.eye(d) / d
    return Setting(p, truth, relabel / d), Setting(p @ relabel, truth, relabel.T / d)


def dependence_impossibility(
    experiment: ArrayLike, null_vector: ArrayLike, *, mixing: float = 0.25
) -> Setting:
    """No score keeps the Blackwell ordering under an experiment with dependent columns.

    From ``P v = 0`` a report in ``Q_reg`` is built two of whose reported labels have one and the
    same distribution of observations; mixing the two is a garbling that nobody can see.

    Args:
        experiment: ``P[m, d]`` with dependent columns.
        null_vector: ``v[d]``, not zero, with ``P v = 0``.
        mixing: Share of the two labels that is swapped, in (0, 1/2).

    Returns:
        One :class:`Setting` whose two joint tables are equal.

    Raises:
        ValueError: No experiment, no null vector of it, ``mixing`` out of range.

    Example:
        >>> p = [[0.8, 0.2, 0.5], [0.2, 0.8, 0.5]]
        >>> better, worse = dependence_impossibility(p, [1, 1, -2]).joints
        >>> bool(np.allclose(better, worse))
        True

    Reference: Proposition 3.1(2) and appendix C of *Data Reliability Scoring*.
    """
    p, v = check_experiment(experiment), np.asarray(null_vector, np.float64)
    if not 0.0 < mixing < 0.5:
        raise ValueError(f"expected mixing in (0, 1/2), got {mixing}")
    if v.shape != (p.shape[1],) or not v.any():
        raise ValueError(f"expected a null vector [{p.shape[1]}] other than 0, got {v}")
    v = v / (2.0 * np.abs(v).max())  # below 1, so that the other labels' diagonal stays maximal
    if not np.abs(p @ v).max() <= 1e-9:
        raise ValueError(f"expected P v = 0, got entries up to {np.abs(p @ v).max():.3g}")
    plus, minus = int(np.argmax(v)), int(np.argmin(v))
    better = np.eye(len(v))
    better[:, plus], better[:, minus] = np.maximum(v, 0.0), np.maximum(-v, 0.0)
    better /= better.sum()
    garbling = np.eye(len(v))
    garbling[np.ix_([plus, minus], [plus, minus])] = [[1 - mixing, mixing], [mixing, 1 - mixing]]
    return Setting(p, better, better @ garbling.T)


def distance_impossibility(num_classes: int = 3) -> tuple[Setting, Setting]:
    """No score keeps the Hamming ordering, or any dist ordering, on all of ``Q_dom``.

    Two settings with the same two joint tables in opposite order. The errors are cyclic on three
    labels, so that every semimetric agrees with the Hamming distance; further labels are reported
    and observed without error.

    Args:
        num_classes: ``d``, at least 3.

    Returns:
        Two settings with ``first.joints == second.joints[::-1]``.

    Raises:
        ValueError: Fewer than three classes.

    Example:
        >>> one, two = distance_impossibility()
        >>> [round(float(np.trace(q)), 3) for q in (one.better, one.worse, two.better, two.worse)]
        [0.8, 0.7, 0.596, 0.592]

    Reference: Proposition 3.1(3) and appendix C of *Data Reliability Scoring*.
    """
    if num_classes < 3:
        raise ValueError(f"expected at least 3 classes, got {num_classes}")
    ahead = np.roll(np.eye(3), 1, axis=1)

    def padded(diagonal: float, off_diagonal: np.ndarray) -> np.ndarray:
        matrix = np.eye(num_classes)
        matrix[:3, :3] = diagonal * np.eye(3) + (1.0 - diagonal) * off_diagonal
        return matrix

    experiment = padded(0.74, ahead.T)
    better, worse = padded(0.8, ahead.T) / num_classes, padded(0.7, ahead) / num_classes
    return (
        Setting(experiment, better, worse),
        Setting(np.eye(num_classes), experiment @ worse, experiment @ better),
    )


def _sample_size(
    num_classes: int, failure_probability: float, error: float, eigenvalue: float
) -> int:
    _check_counts(num_classes=num_classes)
    _check_between("failure_probability", failure_probability, 0.0, min(1.0, num_classes / 4))
    _check_between("error", error, 0.0, 0.5)
    rate = 100.0 * num_classes**2 * math.log(num_classes / failure_probability)
    return math.ceil(rate / (eigenvalue * error) ** 2)


def _square_root(kernel: ArrayLike, num_outcomes: int) -> np.ndarray:
    matrix = np.asarray(kernel, np.float64)
    if matrix.shape != (num_outcomes, num_outcomes):
        raise ValueError(
            f"expected a kernel matrix [{num_outcomes}, {num_outcomes}] between outcomes, got "
            f"{list(matrix.shape)}"
        )
    values, vectors = np.linalg.eigh(matrix)
    if values[0] < -1e-9 * max(values[-1], 0.0):
        raise ValueError(
            f"expected a positive semi-definite kernel matrix, got an eigenvalue of {values[0]:.3g}"
        )
    rounding = len(values) * np.finfo(np.float64).eps * max(values[-1], 0.0)
    return np.sqrt(np.where(values > rounding, values, 0.0))[:, None] * vectors.T


def _check_counts(**counts: Any) -> None:
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"expected {name} >= 1, got {count}")


def _check_ratio(largest_ratio: float) -> None:
    if not largest_ratio >= 1.0:
        raise ValueError(f"expected L >= 1, got {largest_ratio}")


def _check_between(name: str, value: float, low: float, high: float) -> None:
    if not low < value <= high:
        raise ValueError(f"expected {name} in ({low:g}, {high:g}], got {value}")
