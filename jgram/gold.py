"""Accuracies from the right labels of a few records, with what else is known of the reports.

The accuracy on ``m`` records with gold is unbiased and noisy; a reading through observations or the
other reports is sharp and perhaps wrong. Empirical Bayes weighs one against the other by how well
they go together on these very records:

    accuracy_i  ~  N(alpha + beta x_i, tau^2)          observed with covariance ``S``

``x`` the standardised reading, ``S`` the covariance of accuracies over the same records; ``alpha``
and ``beta`` by generalised least squares, ``tau`` integrated over its restricted likelihood. A
negative ``beta`` says that the reading is upside down; with few reports ``tau`` is large, and gold
stands alone. The mean of both, with and without ``x``, by their marginal likelihoods, is taken.
"""

from collections.abc import Sequence
from typing import NamedTuple

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
        slope: ``beta``, of one standard deviation of the reading; 0 where it is not used.
    """

    mean: Float[np.ndarray, " k"]
    low: Float[np.ndarray, " k"]
    high: Float[np.ndarray, " k"]
    alone: Float[np.ndarray, " k"]
    slope: float


def accuracies(
    right: Float[np.ndarray, "k m"],
    reading: Float[np.ndarray, " k"] | None = None,
    weights: Float[np.ndarray, " m"] | None = None,
    *,
    confidence: float = 0.95,
) -> Accuracies:
    """Accuracies of reports from records with gold.

    Args:
        right: 1 where a report is right, 0 where it is not, ``nan`` where it has no label; the
            records a random sample of all.
        reading: Any reading of the reports, larger for better ones.
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
        >>> found = accuracies(right, true)
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
    designs = [np.ones((k, 1))]
    if reading is not None and k >= FEWEST and np.std(reading) > 0:
        x = (reading - np.mean(reading)) / np.std(reading)
        designs.append(np.column_stack([np.ones(k), x]))
    mean, error, slope = drawn_together(padded, cov, designs)
    return Accuracies(
        mean,
        np.clip(mean - quantile * error, 0.0, 1.0),
        np.clip(mean + quantile * error, 0.0, 1.0),
        np.where(present.any(axis=1), alone, np.nan),
        slope,
    )


def drawn_together(
    values: Float[np.ndarray, " k"], cov: Float[np.ndarray, "k k"], designs: Sequence[np.ndarray]
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"], float]:
    """Values drawn towards lines through them, with errors and the mean slope.

    The spread about a line is integrated over its restricted likelihood, and over the lines.

    Args:
        values: ``[k]``, each observed with an error.
        cov: Of the errors.
        designs: A matrix ``[k, 1]`` or ``[k, 2]`` a line, ones first.

    Example:
        >>> values, cov = np.array([0.5, 0.9]), np.diag([0.04, 0.04])
        >>> mean, error, _ = drawn_together(values, cov, [np.ones((2, 1))])
        >>> bool(0.5 < mean[0] < 0.7 < mean[1] < 0.9)
        True
    """
    found = [_fitted(values, cov, design, tau) for design in designs for tau in SPREADS]
    evidence = np.array([one[0] for one in found])
    share = np.exp(evidence - evidence.max())
    share /= share.sum()
    means, variances = (np.stack([one[i] for one in found]) for i in (1, 2))
    mean = share @ means
    error = np.sqrt(share @ (variances + (means - mean) ** 2))
    return mean, error, float(share @ np.array([one[3] for one in found]))


def _shrunk(cov: np.ndarray, variances: np.ndarray, share: float) -> np.ndarray:
    """Covariance with these variances, correlations drawn by a share to their mean."""
    k, spread = len(cov), np.sqrt(np.maximum(np.diag(cov), 1e-300))
    correlation = np.clip(cov / np.outer(spread, spread), -1, 1)
    outside = ~np.eye(k, dtype=bool)
    mean = max(float(correlation[outside].mean()), 0.0) if k > 1 else 0.0
    correlation = (1 - share) * correlation + share * mean
    np.fill_diagonal(correlation, 1.0)
    return correlation * np.sqrt(np.outer(variances, variances))


def _fitted(
    values: np.ndarray, cov: np.ndarray, design: np.ndarray, tau: float
) -> tuple[float, np.ndarray, np.ndarray, float]:
    """Log restricted likelihood, posterior means and variances, and the slope, given ``tau``."""
    inverse = np.linalg.pinv(cov + tau**2 * np.eye(len(values)), hermitian=True)
    inside = design.T @ inverse @ design
    back = np.linalg.pinv(inside, hermitian=True)
    line = back @ design.T @ inverse
    slopes = line @ values
    left = values - design @ slopes
    log = np.linalg.slogdet(inverse)[1] - np.linalg.slogdet(inside)[1] - left @ inverse @ left
    pull = tau**2 * inverse
    mean = design @ slopes + pull @ left
    rest = (np.eye(len(values)) - pull) @ design
    variances = np.diag(tau**2 * np.eye(len(values)) - tau**2 * pull)
    variances = variances + np.sum((rest @ back) * rest, axis=1)
    slope = float(slopes[1]) if len(slopes) > 1 else 0.0
    return 0.5 * float(log), mean, np.maximum(variances, 0.0), slope
