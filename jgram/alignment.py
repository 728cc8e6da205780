"""One naming of the classes for all reports."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from jgram.arrays import ArrayLike, Int, Num

__all__ = ["Alignment", "align"]


class Alignment(NamedTuple):
    """Reports with one naming of the classes.

    Attributes:
        names: ``[k, d]``, the new name of every class of every report.
        nearest: ``[k]``, of the reports that keep their names the one most like each report.
    """

    names: Int[np.ndarray, "k d"]
    nearest: Int[np.ndarray, " k"]

    def rename(self, reports: Int[ArrayLike, "k n"]) -> Int[np.ndarray, "k n"]:
        """Labels ``[k, n]`` by their new names."""
        reports = np.asarray(reports)
        renamed = np.take_along_axis(self.names, np.maximum(reports, 0), axis=1)
        return np.where(reports >= 0, renamed, reports)


def align(
    reports: Int[ArrayLike, "k n"],
    num_classes: int,
    weights: Num[ArrayLike, " n"] | None = None,
) -> Alignment:
    """Name the classes of all reports alike, where that clearly helps.

    The scores of the paper are blind to a relabelling; payoffs are not. The best renaming of one
    report to another maximises the sum of the matched cells ``(n_ab - n_a n_b / n) /
    sqrt(n_a n_b)`` of the cross table, their association. Reports are renamed one after the other
    along the maximum spanning tree of the associations, from the report that has the largest in
    all, so that a report of noise stands between no two others. A renaming is used where it beats
    the names as they are by more than chance would: ``sqrt(2 d / n)`` (the spread of such a gain
    for unrelated reports) times ``2 + sqrt(2 log d!)`` (the choice among ``d!`` renamings). In the
    end the naming of most reports stays, of as many the one that comes first.

    Args:
        reports: Labels ``[k, n]``, negative where missing; concrete.
        num_classes: ``d``.
        weights: Frequencies ``[n]``.

    Returns:
        An :class:`Alignment`.

    Example:
        >>> noise, truth = np.arange(100) // 50, np.arange(100) % 2
        >>> align(np.stack([noise, 1 - truth, truth, truth]), 2).names.tolist()
        [[0, 1], [1, 0], [0, 1], [0, 1]]
    """
    reports = np.asarray(reports)
    k, d = len(reports), num_classes
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
    return Alignment(names, np.argmax(np.where(kept, association, -np.inf), axis=1))


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
