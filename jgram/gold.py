"""Accuracies from the right labels of a few records, with what else is known of the reports.

The accuracy on ``m`` records with gold is unbiased and noisy; a reading through observations or the
other reports is sharp and perhaps wrong. Empirical Bayes weighs one against the other by how well
they go together on these very records:

    accuracy_i  ~  N(alpha + beta x_i, tau^2)          observed with covariance ``S``

``x`` a standardised reading, ``S`` the covariance of accuracies over the same records; ``alpha``
and ``beta`` by generalised least squares, ``tau`` integrated over its restricted likelihood. A
negative ``beta`` says that the reading is upside down; with few reports ``tau`` is large, and gold
stands alone. The mean over lines, one through each reading and one through none, by their marginal
likelihoods, is taken: which reading goes with the right labels is not known beforehand.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jgram.arrays import Float
from jgram.comparisons import normal_quantile, student_quantile

__all__ = ["Accuracies", "accuracies", "drawn_together"]

SPREADS = np.geomspace(0.003, 0.5, 25)  # tau, of accuracies
FEWEST = 4  # reports for a line through them


class Accuracies(NamedTuple):
    """Accuracies of reports.

    Attributes:
        mean: ``[k]``.
        low: Lower ends of the intervals.
        high: Upper ends.
        alone: On the gold rows alone ``[k]``, ``nan`` where a report has none.
    """

    mean: Float[np.ndarray, " k"]
    low: Float[np.ndarray, " k"]
    high: Float[np.ndarray, " k"]
    alone: Float[np.ndarray, " k"]


def accuracies(
    right: Float[np.ndarray, "k m"],
    readings: Sequence[Float[np.ndarray, " k"]] = (),
    weights: Float[np.ndarray, " m"] | None = None,
    *,
    confidence: float = 0.95,
) -> Accuracies:
    """Accuracies of reports from records with gold.

    Args:
        right: 1 where a report is right, 0 where it is not, ``nan`` where it has no label; the
            records a random sample of all.
        readings: Of the reports, each larger for better ones.
        weights: Frequencies of the records.
        confidence: Level of each interval.

    Returns:
        :class:`Accuracies`.

    Raises:
        ValueError: Fewer than two records.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> true = np.linspace(0.5, 0.9, 9)
        >>> right = (rng.random((9, 30)) < true[:, None]).astype(float)
        >>> found = accuracies(right, [true])
        >>> bool(np.abs(found.mean - true).mean() < np.abs(found.alone - true).mean())
        True
    """
    k, m = right.shape
    w = np.ones(m) if weights is None else np.asarray(weights, float)
    if m < 2:
        raise ValueError(f"gold: expected the right labels of two records or more, got {m}")
    present = np.isfinite(right)
    size = np.maximum(present @ w, 1e-12)
    alone = np.where(present, right, 0.0) @ w / size
    # As if half a record were right and half were wrong: no accuracy is known for sure.
    padded = (alone * size + 0.5) / (size + 1)
    away = np.where(present, right - padded[:, None], 0.0)
    cov = (away * w) @ away.T / size[:, None] / size
    cov = _shrunk(cov, padded * (1 - padded) / size, 3 * k / (3 * k + m))
    quantile = float(student_quantile(normal_quantile(confidence), max(m - k // 2, 3)))
    used = [x for x in readings if k >= FEWEST and np.std(x) > 0]
    lines = [np.column_stack([np.ones(k), (x - np.mean(x)) / np.std(x)]) for x in used]
    mean, error = drawn_together(padded, cov, [np.ones((k, 1)), *lines])
    return Accuracies(
        mean,
        np.clip(mean - quantile * error, 0.0, 1.0),
        np.clip(mean + quantile * error, 0.0, 1.0),
        np.where(present.any(axis=1), alone, np.nan),
    )


def drawn_together(
    values: Float[np.ndarray, " k"], cov: Float[np.ndarray, "k k"], designs: Sequence[np.ndarray]
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Values drawn towards lines through them, with errors.

    The spread about a line is integrated over its restricted likelihood, and over the lines.

    Args:
        values: ``[k]``, each observed with an error.
        cov: Of the errors.
        designs: A matrix ``[k, 1]`` or ``[k, 2]`` a line, ones first.

    Example:
        >>> values, cov = np.array([0.5, 0.9]), np.diag([0.04, 0.04])
        >>> mean, error = drawn_together(values, cov, [np.ones((2, 1))])
        >>> bool(0.5 < mean[0] < 0.7 < mean[1] < 0.9)
        True
    """
    own, axes = np.linalg.eigh(cov)
    about = (values @ axes, np.maximum(own, 1e-12))
    found = [_fitted(*about, axes.T @ design, tau) for design in designs for tau in SPREADS]
    evidence = np.array([one[0] for one in found])
    share = np.exp(evidence - evidence.max())
    share /= share.sum()
    means = np.stack([axes @ one[1] for one in found])
    variances = np.stack([axes**2 @ one[2] + ((axes @ one[3]) ** 2).sum(axis=1) for one in found])
    mean = share @ means
    return mean, np.sqrt(share @ (variances + (means - mean) ** 2))


def _shrunk(cov: np.ndarray, variances: np.ndarray, share: float) -> np.ndarray:
    """Covariance with these variances, correlations drawn by a share to their mean."""
    k, spread = len(cov), np.sqrt(np.maximum(np.diag(cov), 1e-300))
    correlation = np.clip(cov / np.outer(spread, spread), -1, 1)
    outside = ~np.eye(k, dtype=bool)
    mean = max(float(correlation[outside].mean()), 0.0) if k > 1 else 0.0
    correlation = (1 - share) * correlation + share * mean
    np.fill_diagonal(correlation, 1.0)
    return correlation * np.sqrt(np.outer(variances, variances))


def _fitted(values: np.ndarray, own: np.ndarray, design: np.ndarray, tau: float) -> tuple[Any, ...]:
    """Given ``tau``, along the axes on which errors have the variances ``own``: log restricted
    likelihood, posterior means, their variances about the line, and a root of those of the line."""
    precision = 1 / (own + tau**2)
    root = np.linalg.cholesky(np.linalg.pinv((design.T * precision) @ design, hermitian=True))
    slopes = root @ root.T @ (design.T * precision) @ values
    left, pull = values - design @ slopes, tau**2 * precision
    log = np.log(precision).sum() + 2 * np.log(np.diag(root)).sum() - precision @ left**2
    return (
        log / 2,
        values - (1 - pull) * left,
        tau**2 * (1 - pull),
        (1 - pull)[:, None] * design @ root,
    )
