"""One naming of the classes for all reports."""

import numpy as np
from scipy.special import gammaln

from jgram.arrays import ArrayLike, Int, Num

__all__ = ["align"]


def align(
    reports: Int[ArrayLike, "k n"],
    num_classes: int,
    weights: Num[ArrayLike, " n"] | None = None,
) -> tuple[Int[np.ndarray, "k n"], Int[np.ndarray, "k d"]]:
    """Rename the classes of every report to those of the first, where that clearly helps.

    The scores of the paper are blind to a relabelling; payoffs are not. The best renaming maximises
    the sum of the matched cells ``(n_ab - n_a n_b / n) / sqrt(n_a n_b)`` of the cross table. It is
    used where it beats the names as they are by more than chance would: ``sqrt(2 d / n)`` (the
    spread of such a gain for unrelated reports) times ``2 + sqrt(2 log d!)`` (the choice among
    ``d!`` renamings).

    Args:
        reports: Labels ``[k, n]``, negative where missing; concrete.
        num_classes: ``d``.
        weights: Frequencies ``[n]``.

    Returns:
        The reports with classes renamed, and the new name of every class, ``[k, d]``.

    Example:
        >>> reports = np.array([[0, 1] * 50, [1, 0] * 50])
        >>> align(reports, 2)[1].tolist()
        [[0, 1], [1, 0]]
    """
    reports = np.asarray(reports)
    d, first = num_classes, reports[0]
    names = np.tile(np.arange(d), (len(reports), 1))
    for number, other in enumerate(reports[1:], 1):
        both = (first >= 0) & (other >= 0)
        copies = None if weights is None else np.asarray(weights)[both]
        pairs = other[both].astype(np.int64) * d + first[both]
        cells = np.bincount(pairs, copies, minlength=d * d).reshape(d, d)
        n = max(cells.sum(), 1)
        rows, columns = cells.sum(1, keepdims=True), cells.sum(0, keepdims=True)
        scaled = (cells - rows * columns / n) / np.sqrt(np.maximum(rows * columns, 1))
        if (scaled.argmax(axis=1) == np.arange(d)).all():
            continue  # no renaming does better
        from scipy.optimize import linear_sum_assignment  # a third of a second, rarely needed

        _, best = linear_sum_assignment(scaled, maximize=True)
        gain = scaled[np.arange(d), best].sum() - np.trace(scaled)
        if gain > np.sqrt(2 * d / n) * (2 + np.sqrt(2 * gammaln(d + 1))):
            names[number] = best
    aligned = np.where(reports >= 0, np.take_along_axis(names, np.maximum(reports, 0), 1), reports)
    return aligned, names
