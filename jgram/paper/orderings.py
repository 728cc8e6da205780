"""Reliability orderings: which of two reports is closer to the truth, when the truth is known.

The benchmark for scores of *Data Reliability Scoring*, whose sections are cited, in simulations and
proofs: small ``[d, d]`` matrices in float64 on the host. Everything is a function of the *misreport
matrix*, the joint frequency ``Q[i, j]`` of true label ``i`` and reported label ``j``. Wherever
``misreport`` is asked for, integer counts are as good as frequencies; ``other`` is that of a second
report. ``tolerance`` is the slack of all inequalities, and the singular value at or below which a
matrix counts as singular, on ``Q_{reported|true}``: rare labels weigh the same. What is no
misreport matrix, and two of different truths or sizes, raise a ``ValueError``.

Unlike the paper's text ``Q_dom`` asks for invertibility too, ``Q_nonperm`` holds the truth, and
:func:`blackwell_ordering` leaves relabellings out: ``experiments/PAPER.md`` has counterexamples.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jgram.arrays import Float, infer_num_classes

__all__ = [
    "Blackwell", "Comparison", "balance", "blackwell_ordering", "dist_ordering",
    "exact_match_ordering", "hamming_distance", "is_balanced", "is_diagonally_dominant",
    "is_independent", "is_nonpermutation", "is_regular", "joint_frequencies", "misreport_matrix",
    "reported_given_true",
]  # fmt: skip

TOLERANCE = 1e-9
_SUM_TOLERANCE = 1e-6  # of a sum that should be one, float32 inputs included


class Comparison(NamedTuple):
    """The outcome of an ordering by distance to the truth.

    Attributes:
        dominates: Whether the first report is strictly more reliable.
        distance: Mean distance of the first report from the truth, per record.
        other_distance: That of the second.
    """

    dominates: bool
    distance: float
    other_distance: float


class Blackwell(NamedTuple):
    """The outcome of the Blackwell ordering.

    Attributes:
        dominates: Whether the second report is a garbling of the first, and not a relabelling.
        garbling: ``T[d, d]``, the only matrix with ``T Q_{reported|true} = Q'_{reported|true}``:
            column-stochastic if and only if the second report is a garbling of the first. ``None``
            where the first report is singular.
        reason: Why, in words.
    """

    dominates: bool
    garbling: np.ndarray | None
    reason: str


def misreport_matrix(
    x: ArrayLike, x_hat: ArrayLike, *, num_classes: int | None = None
) -> Float[np.ndarray, "d d"]:
    """Joint frequencies of truth and report, ``Q[i, j] = (1/N) #{n: x_n = i, x_hat_n = j}``.

    Section 2.2; true and reported labels ``[n]`` count from 0, ``num_classes`` is the largest of
    either + 1 by default. None, and such that are out of range or not as many, are refused.

    Example:
        >>> misreport_matrix([0, 0, 1, 1], [0, 1, 1, 1]).tolist()
        [[0.25, 0.25], [0.0, 0.5]]
    """
    x, x_hat = np.asarray(x), np.asarray(x_hat)
    if x.ndim != 1 or x.shape != x_hat.shape:
        raise ValueError(
            f"expected x and x_hat of one shape [n], got {list(x.shape)} and {list(x_hat.shape)}"
        )
    d = max(infer_num_classes(x, num_classes), infer_num_classes(x_hat, num_classes))
    cells = x.astype(np.int64) * d + x_hat
    return joint_frequencies(np.bincount(cells, minlength=d * d).reshape(d, d))


def joint_frequencies(misreport: ArrayLike) -> Float[np.ndarray, "d d"]:
    """A misreport matrix, checked: square, finite, at least 0; integer counts over their total.

    Example:
        >>> joint_frequencies([[3, 1], [0, 4]]).tolist()
        [[0.375, 0.125], [0.0, 0.5]]
    """
    given = np.asarray(misreport)
    matrix = given.astype(np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ValueError(f"expected a misreport matrix [d, d], got shape {list(matrix.shape)}")
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise ValueError("expected a misreport matrix of finite entries >= 0")
    total = matrix.sum()
    counted = np.issubdtype(given.dtype, np.integer)
    if total <= 0 or not (counted or abs(total - 1.0) <= _SUM_TOLERANCE):
        raise ValueError(
            f"expected joint frequencies of (true, reported) that sum to 1, got {total:.6g}: "
            "pass integer counts, or divide by the total"
        )
    return matrix / total


def reported_given_true(misreport: ArrayLike) -> Float[np.ndarray, "d d"]:
    """``Q_{reported|true}[j, i]``: how often a record truly ``i`` is reported ``j`` (section 2.2).

    Of the transposed misreport matrix it is ``Q_{true|reported}``, equation (1). Column-stochastic;
    refused where a label is never true: its frequencies do not exist.

    Example:
        >>> reported_given_true([[3, 1], [0, 4]]).tolist()
        [[0.75, 0.0], [0.25, 1.0]]
    """
    joint = joint_frequencies(misreport)
    totals = joint.sum(axis=1)
    if not totals.all():
        raise ValueError(
            f"expected every label at least once, but label {int(np.argmin(totals))} is never the "
            "true label: conditional frequencies do not exist; leave the label out"
        )
    return joint.T / totals


def balance(misreport: ArrayLike) -> float:
    """The smallest ``L`` for which the truth is ``L``-balanced; infinite where a label is missing.

    Example:
        >>> balance([[3, 1], [0, 2]])
        2.0
    """
    true = joint_frequencies(misreport).sum(axis=1)
    return float(true.max() / true.min()) if true.all() else np.inf


def is_nonpermutation(misreport: ArrayLike, *, tolerance: float = TOLERANCE) -> bool:
    """Membership in ``Q_nonperm``: every label occurs, the report is no relabelling (section 3).

    The truth itself is a member, which the paper's wording leaves out.

    Example:
        >>> is_nonpermutation(np.eye(2) / 2), is_nonpermutation(np.eye(2)[::-1] / 2)
        (True, False)
    """
    joint = joint_frequencies(misreport)
    if not joint.any(axis=1).all():
        return False
    conditional = reported_given_true(joint)
    kept = (conditional.argmax(axis=0) == np.arange(len(joint))).all()
    return bool(kept) or not _is_permutation(conditional, tolerance)


def is_regular(misreport: ArrayLike, *, tolerance: float = TOLERANCE) -> bool:
    """Membership in ``Q_reg``: invertible, each row largest on the diagonal (section 2.3).

    Example:
        >>> is_regular([[3, 1], [2, 4]]), is_regular([[1, 3], [2, 4]]), is_regular([[1, 1], [2, 2]])
        (True, False, False)
    """
    rows = _invertible_rows(misreport, tolerance)
    return rows is not None and bool((rows <= np.diag(rows)[:, None] + tolerance).all())


def is_diagonally_dominant(misreport: ArrayLike, *, tolerance: float = TOLERANCE) -> bool:
    """Membership in ``Q_dom``: invertible, half of each true label is reported so (section 3).

    Example:
        >>> is_diagonally_dominant([[3, 2], [1, 4]]), is_diagonally_dominant([[2, 2], [2, 2]])
        (True, False)
    """
    rows = _invertible_rows(misreport, tolerance)
    return rows is not None and bool((2 * np.diag(rows) >= 1 - tolerance).all())


def is_balanced(
    misreport: ArrayLike, largest_ratio: float, delta: float = 1.0, *, tolerance: float = TOLERANCE
) -> bool:
    """Membership in ``Q_{L,delta}``, and in ``Q_L`` for ``delta = 1`` (section 3).

    Diagonally dominant, the truth ``L``-balanced (``q(i) <= L q(j)`` for all labels), and at most
    ``delta N`` records misreported; ``largest_ratio`` is ``L``, whose slack is relative.

    Example:
        >>> is_balanced([[9, 1], [0, 5]], 2.0), is_balanced([[9, 1], [0, 5]], 2.0, delta=0.05)
        (True, False)
    """
    if not (largest_ratio >= 1.0 and 0.0 <= delta <= 1.0):
        raise ValueError(
            f"expected L >= 1 and delta in [0, 1], got L={largest_ratio} and delta={delta}"
        )
    return (
        is_diagonally_dominant(misreport, tolerance=tolerance)
        and balance(misreport) <= largest_ratio * (1.0 + tolerance)
        and hamming_distance(misreport) <= delta + tolerance
    )


def is_independent(experiment: ArrayLike, *, tolerance: float = TOLERANCE) -> bool:
    """Membership in ``P_indep``: linearly independent columns of ``P[m, d]`` (section 3), column
    ``x`` the distribution of the observation given ``x``, all scaled to unit length.

    Example:
        >>> is_independent([[0.9, 0.2], [0.1, 0.8]]), is_independent([[0.5, 0.5], [0.5, 0.5]])
        (True, False)
    """
    columns = check_experiment(experiment)
    columns = columns / np.linalg.norm(columns, axis=0)
    return bool(np.linalg.matrix_rank(columns, tol=tolerance) == columns.shape[1])


def check_experiment(experiment: ArrayLike) -> Float[np.ndarray, "m d"]:
    """An experiment ``P[m, d]`` as float64, its columns checked to be distributions."""
    columns = np.asarray(experiment, np.float64)
    if columns.ndim != 2 or columns.size == 0:
        raise ValueError(f"expected an experiment [m, d], got shape {list(columns.shape)}")
    sums = columns.sum(axis=0)
    if not ((columns >= 0).all() and (np.abs(sums - 1.0) <= _SUM_TOLERANCE).all()):
        raise ValueError(
            "expected an experiment P[y, x] with columns >= 0 that sum to 1, got column sums "
            f"{np.array2string(sums, precision=4)}: transpose a row-stochastic one"
        )
    return columns


def hamming_distance(misreport: ArrayLike) -> float:
    """Share of misreported records, ``1 - Tr(Q)``.

    Example:
        >>> hamming_distance([[3, 1], [0, 4]])
        0.125
    """
    return 1.0 - float(np.trace(joint_frequencies(misreport)))


def exact_match_ordering(
    misreport: ArrayLike, other: ArrayLike, *, tolerance: float = TOLERANCE
) -> Comparison:
    """The first report is the truth and the second is not (section 2.3, Proposition B.1).

    The distances are shares of misreported records, of which ``tolerance`` counts as none.

    Example:
        >>> exact_match_ordering([[4, 0], [0, 4]], [[3, 1], [0, 4]]).dominates
        True
    """
    distance, other_distance = map(hamming_distance, _same_truth(misreport, other))
    return Comparison(distance <= tolerance < other_distance, distance, other_distance)


def blackwell_ordering(
    misreport: ArrayLike, other: ArrayLike, *, tolerance: float = TOLERANCE
) -> Blackwell:
    """The second report is the first one garbled: ``Q'_{reported|true} = T Q_{reported|true}``.

    With an invertible first report there is one candidate,
    ``T = Q'_{reported|true} Q_{reported|true}^{-1}``, the proof either way; its columns sum to one
    by construction: what remains is its sign. Both reports have to be in ``Q_reg``. A permutation
    ``T`` does not count (in the paper, section 2.3 and Proposition B.2, the identity alone).

    Example:
        >>> result = blackwell_ordering([[4, 0], [0, 4]], [[3, 1], [1, 3]])
        >>> result.dominates, result.garbling.tolist()
        (True, [[0.75, 0.25], [0.25, 0.75]])
    """
    joint, other_joint = _same_truth(misreport, other)
    rows = _invertible_rows(joint, tolerance)
    if rows is None:
        return Blackwell(False, None, "the first report is singular")
    garbling = np.linalg.solve(rows, reported_given_true(other_joint).T).T
    least = garbling.min()
    refuted = {
        "the first report is not diagonally maximal": not is_regular(joint, tolerance=tolerance),
        "the second report is not in Q_reg": not is_regular(other_joint, tolerance=tolerance),
        f"the only candidate garbling has a negative entry {least:.3g}": least < -tolerance,
        "the reports are relabellings of each other": _is_permutation(garbling, tolerance),
    }
    against = [reason for reason, holds in refuted.items() if holds]
    reasons = [*against, "the second report is the first one garbled"]
    return Blackwell(not against, garbling, reasons[0])


def dist_ordering(
    misreport: ArrayLike,
    other: ArrayLike,
    distance: ArrayLike | None = None,
    *,
    alpha: float = 1.0,
    tolerance: float = TOLERANCE,
) -> Comparison:
    """The first report is closer to the truth: ``<Q, dist>_F < alpha <Q', dist>_F``.

    ``<Q, dist>_F = (1/N) sum dist(x_hat_n, x_n)`` is the report's mean distance from the truth
    (section 2.3, Proposition B.3).

    Args:
        distance: Semimetric ``[d, d]``: symmetric, zero on the diagonal and only there. Without it
            every error is as far: the Hamming ordering.
        alpha: In (0, 1]; the smaller, the fewer pairs are ordered.
        tolerance: Differences up to this, relative to the largest distance, are ties.

    Example:
        >>> dist_ordering([[4, 0], [1, 3]], [[3, 1], [1, 3]], [[0, 2], [2, 0]])
        Comparison(dominates=True, distance=0.25, other_distance=0.5)
        >>> dist_ordering([[4, 0], [1, 3]], [[3, 1], [1, 3]]).distance
        0.125
    """
    if not 0.0 < alpha <= 1.0:
        raise ValueError(f"expected alpha in (0, 1], got {alpha}")
    joint, other_joint = _same_truth(misreport, other)
    d = len(joint)
    between = check_distance(1.0 - np.eye(d) if distance is None else distance, d)
    near, far = (float(np.sum(q * between)) for q in (joint, other_joint))
    slack = tolerance * float(between.max())
    return Comparison(near < alpha * far - slack, near, far)


def _invertible_rows(misreport: ArrayLike, tolerance: float) -> np.ndarray | None:
    """The report's rows, or ``None`` where it is singular (a label that is never true included)."""
    joint = joint_frequencies(misreport)
    if not joint.any(axis=1).all():
        return None
    rows = reported_given_true(joint).T
    return rows if np.linalg.matrix_rank(rows, tol=tolerance) == len(rows) else None


def _is_permutation(matrix: np.ndarray, tolerance: float) -> bool:
    nearest = matrix.argmax(axis=0)
    expected = np.eye(len(matrix))[:, nearest]
    return len(set(nearest)) == len(matrix) and bool(np.abs(matrix - expected).max() <= tolerance)


def check_distance(distance: Any, num_classes: int) -> np.ndarray:
    """A semimetric ``[d, d]`` as float64: symmetric, zero on the diagonal and only there."""
    matrix = np.asarray(distance, np.float64)
    if matrix.shape != (num_classes, num_classes):
        raise ValueError(
            f"expected a distance [{num_classes}, {num_classes}], got shape {list(matrix.shape)}"
        )
    apart = ~np.eye(num_classes, dtype=bool)
    if not np.isfinite(matrix).all() or (matrix[apart] <= 0).any():
        raise ValueError("expected a semimetric: finite, above 0 between different labels")
    if np.diag(matrix).any() or (matrix != matrix.T).any():
        raise ValueError("expected a semimetric: symmetric and 0 on the diagonal")
    return matrix


def _same_truth(misreport: ArrayLike, other: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    joint, other_joint = joint_frequencies(misreport), joint_frequencies(other)
    if joint.shape != other_joint.shape:
        raise ValueError(
            f"expected two misreport matrices of one size, got {len(joint)} and {len(other_joint)}"
        )
    gap = np.abs(joint.sum(axis=1) - other_joint.sum(axis=1)).max()
    if gap > _SUM_TOLERANCE:
        raise ValueError(
            "expected two reports on the same truth, but the true frequencies (row sums) differ by "
            f"{gap:.3g}"
        )
    return joint, other_joint
