"""What could be wrong with the order of two reports: what payoffs take for granted, tested.

Payoffs are right where reports and observations share nothing but the truth. Three questions:

**Does the order rest on the surest records alone?** Payoffs weigh a record by how sure the
observations are of it. In four strata of that sureness, ``a_s`` and ``b_s`` are the mean payoffs of
the two reports and ``m_s`` their mean; with each record weighing alike, the contrast of the pair is
``sum_s share_s (a_s - b_s) / m_s``, over strata with ``m_s > 0`` (:func:`record_weighted`).

**Do they share more than the truth?** If reports ``a``, ``b`` and observations ``y`` are
independent given the truth, ``P(a != b | y)`` is linear in ``E[z_a | y]``, and in ``E[z_b | y]``.
So the regression of ``1{a != b}`` on ``z_a`` by functions of ``y``, the leading eigenvectors of the
kernel and how sure it is of the record, leaves nothing: Hansen's ``J`` (:func:`disagreement_test`).
A record's own label has no part in its instruments, and nothing is assumed of the errors but their
independence of ``y``.

**How much would it take?** Errors that lean ``G`` to 1 to what ``y`` shows would explain the whole
difference (:func:`leaning`; Rosenbaum's bound); so would the fewest records that somebody rewrote
who knew ``y`` (:func:`breakdown_share`).

Every model is false, and of a million records the test will say so. A rejection matters where it
could turn the order: where the ``J`` beyond its degrees of freedom is a twentieth or more of the
squared ``z`` of the contrast, both of which grow with the number of records (:func:`turning`). Then
records weigh alike, and the order is told only where the payoffs do not say it too: they flatter
whoever errs where ``y`` is unsure, and a report that wins both ways may owe it to errors that lean
to ``y``.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaincc

from jgram.arrays import Bool, Float, Int
from jgram.comparisons import holm, mean_covariance
from jgram.contrasts import Payoffs
from jgram.observed import Observed, block

__all__ = [
    "Disagreement", "Stratum", "breakdown_share", "disagreement_test", "instruments", "leaning",
    "of_observations", "record_weighted", "standing", "strata", "turning",
]  # fmt: skip

STRATA = 4
LANDMARKS = 256  # records that eigenvectors of the kernel are extended from
MOST_TESTED = 10_000  # records of a test, evenly spread
FEWEST_APART = 5  # records on which two reports differ, for a test
MATTERS = 0.05  # of the squared z of a contrast


class Disagreement(NamedTuple):
    """A test of "the two reports and the observations share nothing but the truth".

    Attributes:
        p_value: The larger one of both directions; 1 where nothing can be tested.
        excess: ``J`` less its degrees of freedom, for all records where only some were tested.
    """

    p_value: float
    excess: float


class Stratum(NamedTuple):
    """What two reports are paid where the observations are about as sure.

    Attributes:
        share: Of the records.
        means: Of both payoffs, in units in which their mean is that of all records.
        error: Standard error of the difference of the means.
    """

    share: float
    means: tuple[float, float]
    error: float


def strata(
    sureness: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"], count: int = STRATA
) -> Int[np.ndarray, " n"]:
    """Strata ``0..count-1`` of about equal weight, from the least sure records to the surest.

    Records that are as sure as each other, to rounding, are in one stratum.

    Example:
        >>> strata(np.array([0.3, 0.1, 0.9, 0.2]), np.ones(4)).tolist()
        [2, 0, 3, 1]
    """
    return np.minimum(standing(sureness, weights) * count, count - 1).astype(int)


def standing(
    sureness: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """The share of the records that are less sure, half of those as sure (to rounding) included."""
    scale = max(float(np.max(sureness, initial=0.0)), 1e-300)
    _, level = np.unique(np.round(sureness / scale, 9), return_inverse=True)
    mass = np.bincount(level, weights)
    return ((np.cumsum(mass) - mass / 2) / max(mass.sum(), 1e-300))[level]


def record_weighted(paid: Payoffs, groups: Any = None) -> tuple[Payoffs, list[Stratum]]:
    """The payoffs of one pair with every record weighing alike, and what is kept by stratum.

    Args:
        paid: Payoffs of two reports, with their sureness, on the host.
        groups: Group ``[n]`` of each record, sampled as a whole.

    Returns:
        The payoffs times ``m / m_s``, whose means have the mean ``m`` they had, with the covariance
        that the estimated ``m_s`` leave them (delta method); and every stratum, the least sure
        first.

    Reference: ``D`` of the module's first question.
    """
    w, values = np.asarray(paid.weights, float), np.asarray(paid.values, float)
    place = strata(np.asarray(paid.sureness), w)
    size = np.maximum(np.bincount(place, w, STRATA), 1e-300)
    means = np.stack([np.bincount(place, w * one, STRATA) for one in values]) / size
    middle, share = means.mean(axis=0), size / max(w.sum(), 1e-300)
    scale = np.where(middle > 0, 1 / np.where(middle > 0, middle, 1.0), 0.0)
    scale *= share @ np.maximum(middle, 0.0) / max(share @ (middle > 0), 1e-300)
    away = values - means[:, place]
    alike = (values.mean(axis=0) - middle[place]) / np.where(middle > 0, middle, 1.0)[place]
    away = scale[place] * (away - means[:, place] * alike)
    new = means * scale @ share
    more = paid.covariance - mean_covariance(values - paid.means[:, None], w, groups)
    errors = np.sqrt(np.bincount(place, w * np.diff(away, axis=0)[0] ** 2, STRATA)) / size
    weighted = paid._replace(
        values=new[:, None] + away,
        differences=scale[place] * np.asarray(paid.differences),
        gains=scale[place] * np.asarray(paid.gains),
        means=new,
        covariance=mean_covariance(away, w, groups) + more,
    )
    kept = [
        Stratum(float(part), (float(a), float(b)), float(error))
        for part, a, b, error in zip(share, *means * scale, errors, strict=True)
    ]
    return weighted, kept


def instruments(
    observed: Observed, weights: Float[np.ndarray, " n"], count: int
) -> tuple[Int[np.ndarray, " s"], Float[np.ndarray, " s"], Float[np.ndarray, "s count"]]:
    """Functions of the observations alone: leading eigenvectors of the centred kernel.

    They are extended from :data:`LANDMARKS` records, evenly spread, to :data:`MOST_TESTED`.

    Returns:
        The records, their frequencies, and a row for each of them.
    """
    rows, w = _spread(weights, MOST_TESTED)
    marks, mass = _spread(weights, LANDMARKS)
    held = np.asarray(block(observed, np.concatenate([rows, marks]), marks), np.float64)
    held, between = held[: len(rows)], held[len(rows) :]
    level, root = w @ held / w.sum(), np.sqrt(mass)
    held, between = held - level, between - level
    square = between - (between @ mass / mass.sum())[:, None]
    values, vectors = np.linalg.eigh(root[:, None] * (square + square.T) / 2 * root)
    kept = values > 1e-9 * values[-1]
    vectors = root[:, None] * (vectors[:, kept] / values[kept])[:, -count:]
    found = (held - (held @ mass / mass.sum())[:, None]) @ vectors
    return rows, w, found / np.maximum(np.sqrt(w @ found**2 / w.sum()), 1e-300)


def of_observations(
    values: Float[np.ndarray, " n"], functions: Float[np.ndarray, "n m"], weights: Any
) -> Float[np.ndarray, " n"]:
    """Means over records that are observed alike: the record itself is left out of how sure its
    observation is, so that among equal observations its own label would show.

    Example:
        >>> of_observations(np.array([1.0, 3.0, 5.0]), np.array([[0.0], [0], [1]]), np.ones(3))
        array([2., 2., 5.])
    """
    _, place = np.unique(np.round(functions, 6), axis=0, return_inverse=True)
    mass = np.maximum(np.bincount(place.ravel(), weights), 1e-300)
    return (np.bincount(place.ravel(), weights * values) / mass)[place.ravel()]


def _spread(weights: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """At most ``count`` of the records, evenly spread, and how often each is taken."""
    rows = np.flatnonzero(weights)
    reached = np.cumsum(weights[rows])
    if reached[-1] <= count:
        return rows, weights[rows]
    places = (np.arange(count) + 0.5) / count * reached[-1]
    rows, taken = np.unique(rows[np.searchsorted(reached, places)], return_counts=True)
    return rows, taken.astype(float)


def disagreement_test(
    first: Int[np.ndarray, " n"],
    second: Int[np.ndarray, " n"],
    functions: Float[np.ndarray, "n m"],
    weights: Float[np.ndarray, " n"],
    groups: Any = None,
) -> Disagreement:
    """Whether two reports and their observations share more than the truth.

    Args:
        first: Labels ``[n]``.
        second: Labels of the same records.
        functions: Of their observations: :func:`instruments`, :func:`standing`.
        weights: Frequencies ``[n]``, 0 where one of the two has no label.
        groups: Group of each record: moments are independent between groups.

    Returns:
        A :class:`Disagreement`.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, clear = rng.integers(0, 2, 2000), rng.integers(0, 2, 2000)
        >>> flip = lambda share: np.where(rng.random(2000) < share, 1 - x, x)
        >>> y = np.stack([x + 0.3 * rng.normal(size=2000), clear, x * clear], axis=1)
        >>> careful, careless = flip(0.1), flip(0.4 * (1 - clear))  # errs where things are unclear
        >>> disagreement_test(careful, flip(0.2), y, np.ones(2000)).p_value > 0.05
        True
        >>> disagreement_test(careful, careless, y, np.ones(2000)).p_value < 0.001
        True

    Reference: Hansen, *Large Sample Properties of Generalized Method of Moments Estimators*, 1982.
    """
    kept = weights > 0
    first, second, w = first[kept], second[kept], weights[kept]
    apart = (first != second).astype(float)
    if w @ apart < FEWEST_APART:
        return Disagreement(1.0, 0.0)
    tools = np.column_stack([np.ones(len(w)), functions[kept]])
    groups = None if groups is None else groups[kept]
    found = []
    for labels in (first, second):
        used = np.unique(labels)
        classes = np.column_stack([np.ones(len(w)), labels[:, None] == used[:-1]])
        degrees = int(np.linalg.matrix_rank(tools)) - classes.shape[1]
        if degrees < 1:
            return Disagreement(1.0, 0.0)
        statistic = max(_hansen(apart, classes, tools, w, groups), 0.0)
        if not np.isfinite(statistic):  # too few groups for so many moments
            return Disagreement(1.0, 0.0)
        found.append((float(gammaincc(degrees / 2, statistic / 2)), statistic - degrees))
    return Disagreement(*max(found))


def _hansen(
    outcome: np.ndarray, regressors: np.ndarray, tools: np.ndarray, w: np.ndarray, groups: Any
) -> float:
    """``J`` of a linear regression by instruments, weights iterated; 0 where nothing is left."""
    n = w.sum()
    slopes, target = (w[:, None] * tools).T @ regressors / n, (w * outcome) @ tools / n
    weight = _inverse((w[:, None] * tools).T @ tools / n)
    statistic = 0.0
    for _ in range(4):
        bread = slopes.T @ weight
        fitted = _inverse(bread @ slopes) @ (bread @ target)
        left = outcome - regressors @ fitted
        if w @ left**2 < 1e-9 * n:
            return 0.0
        moments = left[:, None] * tools
        statistic = float(n * (target - slopes @ fitted) @ weight @ (target - slopes @ fitted))
        if groups is None:
            weight = _inverse((w[:, None] * moments).T @ moments / n)
        else:
            sums = np.stack([np.bincount(groups, w * one) for one in moments.T])
            weight = _inverse(sums @ sums.T / n)
    return statistic


def _inverse(matrix: np.ndarray) -> np.ndarray:
    return np.linalg.pinv(matrix, rcond=1e-9, hermitian=True)


def leaning(
    differences: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"], quantile: float = 1.96
) -> float:
    """``G``: errors that lean ``G`` to 1 to what the observations show would explain a difference.

    The largest ``G`` at which Rosenbaum's bound of the signed sum,

    ``(sum v - (G-1)/(G+1) sum |v|) / sqrt(4 G/(1+G)^2 sum v^2)``,

    is still ``quantile`` or more; 1 where it is less at ``G = 1`` already.

    Args:
        differences: Of the payoffs of two reports ``[n]``.
        quantile: Critical value.

    Example:
        >>> round(leaning(np.array([1.0] * 80 + [-1.0] * 20), np.ones(100)), 2)
        2.46

    Reference: Rosenbaum, *Observational Studies*, 2002, section 4.3.
    """
    total, size = abs(float(weights @ differences)), float(weights @ np.abs(differences))
    square = quantile**2 * float(weights @ differences**2)
    if total**2 <= square or size == 0:
        return 1.0
    # With t = (G-1)/(G+1): (total - t size)^2 = square (1 - t^2), the smaller root.
    a, b, c = size**2 + square, total * size, total**2 - square
    t = (b - sqrt(max(b**2 - a * c, 0.0))) / a
    return float((1 + t) / max(1 - t, 1e-9))


def breakdown_share(
    differences: Float[np.ndarray, " n"],
    gains: Float[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
) -> float | None:
    """The fewest records, as a share, that rewritten with knowledge of ``y`` overturn a pair.

    The labels of the report that is paid less become the classes that the scorer favours, the
    records where that pays most first; the scorer is taken to stay.

    Args:
        differences: Payoffs of the first report less those of the second ``[n]``.
        gains: What the first report would be paid more at each record
            (:attr:`jgram.contrasts.Payoffs.gains`).

    Returns:
        The share; ``None`` where no rewriting overturns it.

    Example:
        >>> breakdown_share(np.ones(10), np.full(10, 1.0), np.ones(10))
        0.5
    """
    total = float(weights @ differences)
    gains = gains + differences if total > 0 else gains
    order = np.argsort(-gains, kind="stable")
    reached = np.cumsum((weights * gains)[order])
    short = np.flatnonzero(reached >= abs(total) * (1 - 1e-12))
    if not len(short):
        return None
    last = order[short[0]]  # of which as much as it takes
    before = reached[short[0]] - weights[last] * gains[last]
    taken = weights[order[: short[0]]].sum() + (abs(total) - before) / gains[last]
    return float(taken / max(weights.sum(), 1e-300))


def turning(
    found: Sequence[Disagreement], z: Float[np.ndarray, " p"], level: float
) -> Bool[np.ndarray, " p"]:
    """Which pairs share more than the truth, and enough to turn their order.

    Args:
        found: A :func:`disagreement_test` a pair.
        z: Statistics of the contrasts with every record weighing alike.
        level: Of all tests together (Holm).

    Example:
        >>> tests = [Disagreement(1e-6, 40.0), Disagreement(1e-6, 40.0), Disagreement(0.6, -2.0)]
        >>> turning(tests, np.array([10.0, 90.0, 1.0]), 0.05).tolist()
        [True, False, False]
    """
    held = holm([one.p_value for one in found]) <= level
    return held & (np.array([one.excess for one in found]) > MATTERS * np.asarray(z) ** 2)
