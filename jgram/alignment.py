"""One naming of the classes, and one boldness, for all reports."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from jgram.arrays import ArrayLike, Int, Num

__all__ = ["Alignment", "align", "most_likely"]


class Alignment(NamedTuple):
    """Reports in one naming of the classes and, where they are soft, at one boldness.

    Attributes:
        reports: ``[k, n]``, or soft ``[k, n, d]``, as they are compared.
        names: ``[k, d]``, the new name of every class of every report.
        nearest: ``[k]``, of the reports that keep their names the one most like each report.
        matrices: ``[k, d, d]``; rows of ``reports``, as matrices, are those given times these.
    """

    reports: Num[np.ndarray, "k n ..."]
    names: Int[np.ndarray, "k d"]
    nearest: Int[np.ndarray, " k"]
    matrices: Num[np.ndarray, "k d d"]


def align(
    reports: Num[ArrayLike, "k n ..."],
    num_classes: int,
    weights: Num[ArrayLike, " n"] | None = None,
) -> Alignment:
    """Name the classes of all reports alike, where that clearly helps; make soft ones as bold.

    The scores of the paper are blind to a relabelling; payoffs are not. The best renaming of one
    report to another maximises the sum of the matched cells ``(n_ab - n_a n_b / n) /
    sqrt(n_a n_b)`` of the cross table, their association. Reports are renamed one after the other
    along the maximum spanning tree of the associations, from the report that has the largest in
    all, so that a report of noise stands between no two others. A renaming is used where it beats
    the names as they are by more than chance would: ``sqrt(2 d / n)`` (the spread of such a gain
    for unrelated reports) times ``2 + sqrt(2 log d!)`` (the choice among ``d!`` renamings). In the
    end the naming of most reports stays, of as many the one that comes first.

    Soft reports say the same however boldly they are written: ``z`` is read as ``1/d + s (z - q)``,
    ``q`` its mean and ``s`` such that its variances add up to ``1 - 1/d``, as if they were labels
    of equally frequent classes. Taken for lotteries, the half of a report and of nothing would keep
    half of it, and a posterior less than its own most likely class. Soft reports that are all
    certain are labels.

    Args:
        reports: Labels ``[k, n]``, negative where missing, or soft ``[k, n, d]``; concrete.

    Example:
        >>> noise, truth = np.arange(100) // 50, np.arange(100) % 2
        >>> align(np.stack([noise, 1 - truth, truth, truth]), 2).names.tolist()
        [[0, 1], [1, 0], [0, 1], [0, 1]]
        >>> soft = np.eye(2)[truth]
        >>> float(np.ptp(align(np.stack([soft, (soft + 1) / 3]), 2).reports, axis=0).max().round(9))
        0.0
    """
    given = np.asarray(reports)
    labels = given if given.ndim == 2 else most_likely(given)
    names, nearest = _names(labels, num_classes, weights)
    matrices = np.eye(num_classes)[names]
    if given.ndim == 2 or ((given == 0) | (given == 1)).all():
        renamed = np.take_along_axis(names, np.maximum(labels, 0), axis=1)
        return Alignment(np.where(labels >= 0, renamed, labels), names, nearest, matrices)
    w = given.sum(axis=2) * (1.0 if weights is None else np.asarray(weights))
    w /= np.maximum(w.sum(axis=1, keepdims=True), 1e-300)
    q = np.einsum("kn,knd->kd", w, given)
    spread = np.einsum("kn,knd->k", w, (given - q[:, None]) ** 2)
    bold = np.sqrt((1 - 1 / num_classes) / np.where(spread > 1e-12, spread, 1 - 1 / num_classes))
    bold = bold[:, None, None]
    matrices = (bold * np.eye(num_classes) + 1 / num_classes - bold * q[:, None, :]) @ matrices
    return Alignment(given @ matrices, names, nearest, matrices)


def most_likely(soft: Num[np.ndarray, "... d"]) -> Int[np.ndarray, "..."]:
    """The class that soft reports favour, -1 where a record has no label."""
    return np.where(soft.any(axis=-1), soft.argmax(axis=-1), -1)


def _names(reports: np.ndarray, d: int, weights: Any) -> tuple[np.ndarray, np.ndarray]:
    """The new name of every class ``[k, d]``, and the report most like each ``[k]``."""
    k = len(reports)
    tables = {
        (i, j): _matched(reports[i], reports[j], d, weights) for j in range(k) for i in range(j)
    }
    association = np.zeros((k, k))
    for (i, j), (table, _) in tables.items():
        association[i, j] = association[j, i] = _best(table)[1]
    names, related = np.tile(np.arange(d), (k, 1)), np.zeros(k, bool)
    done = [int(np.argmax(association.sum(axis=1)))]
    while len(done) < k:
        left = [j for j in range(k) if j not in done]
        near = association[np.ix_(done, left)]
        i, j = (int(at) for at in np.unravel_index(np.argmax(near), near.shape))
        i, j = done[i], left[j]
        table, n = tables[min(i, j), max(i, j)]
        table = (table if i > j else table.T)[:, np.argsort(names[i])]
        (best, value), as_they_are = _best(table), np.trace(table)
        chance = np.sqrt(2 * d / n) * (2 + np.sqrt(2 * gammaln(d + 1)))
        if value - as_they_are > chance:
            names[j] = best
        related[[i, j]] |= value - min(as_they_are, 0.0) > chance
        done.append(j)
    votes = related * [(related & (names == row).all(axis=1)).sum() for row in names]
    names = np.argsort(names[np.argmax(votes)])[names]
    names[~related] = np.arange(d)
    kept = (names == np.arange(d)).all(axis=1)
    return names, np.argmax(np.where(kept, association, -np.inf), axis=1)


def _matched(one: np.ndarray, two: np.ndarray, d: int, weights: Any) -> tuple[np.ndarray, float]:
    """How much every class of one report goes with every class of another, and their records."""
    both = (one >= 0) & (two >= 0)
    copies = None if weights is None else np.asarray(weights)[both]
    cells = np.bincount(one[both].astype(np.int64) * d + two[both], copies, minlength=d * d)
    cells, n = cells.reshape(d, d), max(float(cells.sum()), 1.0)
    sizes = cells.sum(axis=1, keepdims=True) * cells.sum(axis=0, keepdims=True)
    return (cells - sizes / n) / np.sqrt(np.maximum(sizes, 1)), n


def _best(table: np.ndarray) -> tuple[np.ndarray, float]:
    """The column of every row in the matching with the largest sum, and that sum."""
    itself = np.arange(len(table))
    if (table.argmax(axis=1) == itself).all():
        return itself, float(np.trace(table))  # no renaming does better
    from scipy.optimize import linear_sum_assignment  # a third of a second, rarely needed

    _, best = linear_sum_assignment(table, maximize=True)
    return best, float(table[itself, best].sum())
