"""What *Data Reliability Scoring* proves, as functions that raise where conditions do not hold.

Small float64 computations on the host. ``P[m, d]`` is an experiment (column ``x`` the distribution
of the observation given label ``x``), ``Q[d, d]`` a misreport matrix (true, reported; counts or
frequencies), ``N`` a number of records, ``delta`` a probability of failure.

Where each statement is in this package, and which of them do not hold as written, is one page:
``experiments/PAPER.md``.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jgram.paper.orderings import (
    balance,
    check_distance,
    check_experiment,
    dist_ordering,
    hamming_distance,
    is_balanced,
    joint_frequencies,
)

__all__ = [
    "DistGuarantee", "concentration_bound", "dist_guarantee", "log_population_score",
    "relative_error_bound", "sample_size",
]  # fmt: skip

SINGULAR = 1e-12


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


def log_population_score(
    experiment: ArrayLike, misreport: ArrayLike, *, kernel: ArrayLike | None = None
) -> float:
    """The score of infinitely many records, ``log Gamma = log det (P Q)^T K (P Q)``.

    The natural logarithm (Definitions 4.1 and 4.8); ``-inf`` where the columns of ``P Q`` are
    linearly dependent (under ``K``): relative to unit columns, a singular value of at most 1e-12.

    Args:
        experiment: ``P[m, d]``, columns that sum to one.
        kernel: ``K[m, m]``, the kernel between outcomes, positive semi-definite; the delta kernel
            by default.

    Example:
        >>> score = log_population_score([[0.9, 0.2], [0.1, 0.8]], [[1, 0], [0, 1]])
        >>> print(f"{score:.4f}")  # 2 log(.7 / 4)
        -3.4859
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
    reports and any kernel with ``|K| <= 1`` (Lemmas E.1 and 4.12). Loose: 65 to 90 times the true
    95% quantile at ``d = 4`` and N from 500 to 32,000, above the norm of the matrix itself up to
    N = 16,000.

    Example:
        >>> print(f"{concentration_bound(10_000, 4):.4f}")
        0.0911
    """
    _check("num_records", num_records)
    _check("num_classes", num_classes)
    _check("failure_probability", failure_probability, 0.0, 1.0)
    rate = math.log(2 * num_classes / failure_probability) / num_records
    return 4.0 * math.sqrt(rate) + 2.0 * rate


def relative_error_bound(gram: ArrayLike, deviation: float) -> float:
    """The relative error of a determinant: ``(1 + deviation / lambda_min)^d - 1`` at most.

    ``|det(G + E) - det(G)| / det(G)`` of Theorem A.2; infinite for a singular ``gram``.

    Args:
        gram: ``[d, d]``, symmetric positive semi-definite: the expected Gram matrix.
        deviation: Spectral norm of the difference, e.g. :func:`concentration_bound`.

    Example:
        >>> print(f"{relative_error_bound([[0.2, 0.0], [0.0, 0.1]], 0.01):.2f}")
        0.21
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


def sample_size(
    num_classes: int,
    failure_probability: float,
    error: float,
    smallest_eigenvalue: float | None = None,
) -> int:
    """Records that suffice for an error of the score of at most ``epsilon``.

    With probability ``1 - delta``, ``|score - Gamma| <= epsilon`` from
    ``N >= 100 d^2 ln(d/delta) / epsilon^2``, and ``|score - Gamma| <= epsilon Gamma`` from
    ``1 / lambda^2`` times as many (Proposition E.2). A score is at most ``d^(-2d)``: an absolute
    error that says anything is far smaller.

    Args:
        failure_probability: ``delta`` in (0, d/4].
        error: ``epsilon`` in (0, 1/2].
        smallest_eigenvalue: ``lambda`` in (0, 1/d], of the expected Gram matrix (whose trace is at
            most 1 for ``|K| <= 1``): the error is relative. Without it the error is absolute.

    Example:
        >>> sample_size(2, 0.05, 0.01), sample_size(4, 0.05, 0.5, smallest_eigenvalue=0.01)
        (14755518, 280449705)
    """
    _check("num_classes", num_classes)
    _check("failure_probability", failure_probability, 0.0, min(1.0, num_classes / 4))
    _check("error", error, 0.0, 0.5)
    if smallest_eigenvalue is not None:
        _check("smallest_eigenvalue", smallest_eigenvalue, 0.0, 1.0 / num_classes)
        error *= smallest_eigenvalue
    return math.ceil(
        100.0 * num_classes**2 * math.log(num_classes / failure_probability) / error**2
    )


def dist_guarantee(misreport: ArrayLike, other: ArrayLike, distance: ArrayLike) -> DistGuarantee:
    """Whether the first report is proven to score higher, under every independent experiment.

    By Theorem 4.2(3), which rests on Lemma D.3: both reports have to be in
    ``Q_{L, 1/(64 L^2 d^2)}`` and the first ahead in the ``1/(4 L Delta)``-dist ordering, with ``L``
    the balance of the truth and ``Delta`` the aspect ratio of the distance. At ``d = 4`` that is
    one misreported record in a thousand at most. The conclusion holds much farther out: in none of
    6,714 random pairs from all of ``Q_dom``, ordered by ``1/(4L)``-Hamming, did the determinants
    disagree.

    ``misreport`` is of the first report, ``distance`` a semimetric ``[d, d]``.

    Example:
        >>> first, second = [[500, 0], [0, 500]], [[500, 0], [1, 499]]
        >>> dist_guarantee(first, second, [[0, 1], [1, 0]]).applies
        True
    """
    ratio, d = balance(misreport), len(joint_frequencies(misreport))
    if not math.isfinite(ratio):
        raise ValueError("expected every label to occur in the truth, got a label without records")
    apart = check_distance(distance, d)[~np.eye(d, dtype=bool)]
    aspect = float(apart.max() / apart.min()) if apart.size else 1.0
    alpha = 1.0 / (4.0 * ratio * aspect)
    share = 1.0 / (64.0 * ratio**2 * d**2)
    closer = dist_ordering(misreport, other, distance, alpha=alpha).dominates
    balanced = is_balanced(misreport, ratio, share) and is_balanced(other, ratio, share)
    reason = "the first report scores higher under every independent experiment"
    if not balanced:
        worst = max(hamming_distance(misreport), hamming_distance(other))
        reason = f"a share of {worst:.3g} is misreported, above {share:.3g}"
    elif not closer:
        reason = f"the first report is not closer by the factor {alpha:.3g}"
    return DistGuarantee(balanced and closer, alpha, ratio, share, reason)


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


def _check(name: str, value: Any, low: Any = None, high: Any = None) -> None:
    if low is None and value < 1:
        raise ValueError(f"expected {name} >= 1, got {value}")
    if low is not None and not low < value <= high:
        raise ValueError(f"expected {name} in ({low:g}, {high:g}], got {value}")
