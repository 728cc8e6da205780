"""What payoffs say of two reports: the better one, what it retains, how many records it takes."""

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jgram.arrays import Array, ArrayLike, Bool, Float, Int, Num

__all__ = [
    "ESTIMABLE", "Retention", "blocks", "holm", "mean_covariance", "normal_quantile",
    "records_needed", "retention", "share_degrees", "sign_test", "student_quantile",
    "suggested_block_length",
]  # fmt: skip

ESTIMABLE = 3.0
"""Standard errors by which the better report's mean payoff must exceed 0 before a share of it, or
an order, is stated."""


class Retention(NamedTuple):
    """``a_m / a_l`` with Fieller's interval; ``[0, inf]`` and 0 where it is not ``estimable``."""

    ratio: Float[Array, "..."]
    lower: Float[Array, "..."]
    upper: Float[Array, "..."]
    estimable: Bool[Array, "..."]


@jax.jit  # one program: outside of another, every step of it would be one
def sign_test(
    differences: Float[ArrayLike, " n"],
    weights: Num[ArrayLike, " n"] | None = None,
    groups: Int[ArrayLike, " n"] | None = None,
    beyond: Float[ArrayLike, ""] | float = 0.0,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Whether two reports may be swapped: random signs of the differences of their payoffs.

    Where the reports are exchangeable, the signs of the differences are random given all else,
    because swapping two reports leaves the scorer as it is. The sum over its root mean square under
    random signs is compared with the normal distribution.

    Args:
        differences: ``[n]``, :attr:`Payoffs.differences`.
        weights: Frequencies ``[n]``; each copy has a sign of its own.
        groups: ``[n]``; groups (:func:`blocks` of records in time order) are swapped as a whole.
        beyond: Standard deviation of the mean difference that no number of records lessens.

    Returns:
        ``z``, positive where the first report is the better one, and the two-sided p-value; 0 and 1
        where the reports do not differ.

    Example:
        >>> z, p = sign_test(jnp.array([1.0, 1.0, 1.0, -1.0]))
        >>> float(z)
        1.0
    """
    differences = jnp.asarray(differences)
    w = jnp.ones_like(differences) if weights is None else jnp.asarray(weights, differences.dtype)
    if groups is None:
        squares = jnp.sum(w * differences**2)
    else:
        sums = jax.ops.segment_sum(w * differences, groups, differences.shape[0])
        squares = jnp.sum(sums**2)
    squares = squares + (beyond * jnp.sum(w)) ** 2
    z = jnp.sum(w * differences) / jnp.sqrt(jnp.where(squares > 0, squares, 1.0))
    return z, 2 * jax.scipy.stats.norm.sf(jnp.abs(z))


def retention(
    means: Float[ArrayLike, "... 2"],
    covariance: Float[ArrayLike, "... 2 2"],
    quantile: Float[ArrayLike, "..."] | float,
) -> Retention:
    """What the second report retains of the first: ``a_2 / a_1`` with Fieller's interval,

    ``{r: (a_2 - r a_1)^2 <= quantile^2 Var(a_2 - r a_1)}``.

    with the covariance of the means ``(a_1, a_2)`` and ``quantile`` 1.96 for one interval of 95%.
    Not estimable where ``a_1`` is below :data:`ESTIMABLE` standard errors or the set is unbounded.

    Example:
        >>> found = retention(jnp.array([2.0, 1.0]), 0.01 * jnp.eye(2), 1.96)
        >>> [round(float(value), 3) for value in found[:3]]
        [0.5, 0.395, 0.615]

    Reference:
        E. C. Fieller, *Some problems in interval estimation*, 1954.
    """
    means, covariance = jnp.asarray(means), jnp.asarray(covariance)
    best, other = means[..., 0], means[..., 1]
    square = jnp.asarray(quantile) ** 2
    a = best**2 - square * covariance[..., 0, 0]
    b = best * other - square * covariance[..., 0, 1]
    c = other**2 - square * covariance[..., 1, 1]
    known = jnp.maximum(best, 0) ** 2 > ESTIMABLE**2 * covariance[..., 0, 0]
    known &= (best > 0) & (a > 0)
    root = jnp.sqrt(jnp.maximum(jnp.where(known, b**2 - a * c, 0.0), 0.0))
    a = jnp.where(known, a, 1.0)
    return Retention(
        jnp.where(known, other / jnp.where(known, best, 1.0), 0.0),
        jnp.where(known, (b - root) / a, 0.0),
        jnp.where(known, (b + root) / a, jnp.inf),
        known,
    )


def share_degrees(
    values: Float[ArrayLike, "... 2 n"],
    means: Float[ArrayLike, "... 2"],
    weights: Num[ArrayLike, "... n"],
    groups: Int[ArrayLike, " n"] | None = None,
) -> Float[Array, "..."]:
    """Degrees of freedom that the standard error of a share ``a_2 / a_1`` has.

    ``2 n / (kurtosis - 1)`` of the share's influences. Two reports that differ on a few records
    have a share whose standard error rests on those few: intervals by the normal law would be too
    narrow wherever fewer differ than should.

    Example:
        >>> values = np.random.default_rng(0).normal(size=(2, 1000))
        >>> 900 < float(share_degrees(values, jnp.ones(2), np.ones(1000))) < 1100
        True
    """
    values, means, weights = jnp.asarray(values), jnp.asarray(means), jnp.asarray(weights)
    centred = values - means[..., None]
    away = means[..., :1] * centred[..., 1, :] - means[..., 1:] * centred[..., 0, :]
    if groups is not None:
        sums = jnp.moveaxis(jnp.stack([weights * away, weights]), -1, 0)
        away, weights = jnp.moveaxis(jax.ops.segment_sum(sums, groups, len(sums)), 0, -1)
        weights = (weights > 0).astype(away.dtype)
    square, fourth = (jnp.sum(weights * away**power, axis=-1) for power in (2, 4))
    kurtosis = fourth / jnp.where(square > 0, square, 1.0) ** 2
    return 2 / jnp.maximum(kurtosis - 1 / jnp.maximum(jnp.sum(weights, axis=-1), 1), 1e-12)


def normal_quantile(confidence: float) -> float:
    """The two-sided normal quantile, 1.96 at 0.95."""
    if isinstance(confidence, str) or not 0.0 < confidence < 1.0:
        raise ValueError(f"expected confidence in (0, 1), got {confidence!r}")
    return NormalDist().inv_cdf(0.5 + confidence / 2.0)


def student_quantile(
    quantile: Float[ArrayLike, "..."] | float, degrees: Float[ArrayLike, "..."] | int
) -> Any:
    """Student's quantile where the normal one is ``quantile``: Cornish and Fisher's expansion.

    Example:
        >>> round(float(student_quantile(1.96, 15)), 2)
        2.13
    """
    z: Any = quantile  # numbers, of NumPy or of JAX
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    return z + (z**3 + z) / (4 * degrees) + second


def records_needed(
    differences: Float[ArrayLike, " n"],
    weights: Num[ArrayLike, " n"] | None = None,
    groups: Int[ArrayLike, " n"] | None = None,
    beyond: Float[ArrayLike, ""] | float = 0.0,
    *,
    power: float = 0.8,
    confidence: float = 0.95,
) -> Float[Array, ""]:
    """How many records like these :func:`sign_test` needs to separate the two reports.

    ``n ((q_level + q_power) / z)^2`` with ``z`` the statistic of these ``n`` records: mean and
    spread of the differences are taken to stay.

    Args:
        differences, weights, groups, beyond: As of :func:`sign_test`.
        power: Wanted probability of separating them.
        confidence: One minus the size of the two-sided test.

    Returns:
        The number, these records included; infinite where the reports do not differ, or no more
        than what no number of records lessens.

    Example:
        >>> float(records_needed(jnp.array([1.0, 1.0, 1.0, -1.0]))).__round__(1)
        31.4
    """
    differences = jnp.asarray(differences)
    z, _ = sign_test(differences, weights, groups)
    size = differences.shape[0] if weights is None else jnp.sum(jnp.asarray(weights))
    quantile = jax.scipy.stats.norm.ppf
    wanted = quantile((1 + confidence) / 2) + quantile(power)
    mean = jnp.sum(differences if weights is None else weights * differences) / size
    left = 1 - (wanted * beyond / jnp.where(mean == 0, jnp.inf, mean)) ** 2
    return jnp.where(left > 0, size * (wanted / z) ** 2 / jnp.maximum(left, 1e-12), jnp.inf)


def suggested_block_length(values: Float[ArrayLike, "... n"]) -> int:
    """A length of blocks within which payoffs in time order depend on each other.

    Twice the longest of Politis and White's automatic lengths for the block bootstrap, and of
    ``n^(1/3)``; at most ``n / 10``. Twice, because payoffs mix slow errors with much that is
    independent from record to record, in which short memory hides: of equal reports whose errors
    follow AR(0), AR(.7) and AR(.9), n = 300, :func:`sign_test` at 5% separated 4, 6 and 8% with
    these blocks, and 5, 16 and 34% without.

    ``values`` are payoffs and their differences, in order of time; concrete.

    Example:
        >>> suggested_block_length(np.random.default_rng(0).normal(size=1000))
        20

    Reference:
        Politis and White, *Automatic block-length selection for the dependent bootstrap*, 2004.
    """
    values = np.asarray(values, float)
    n = values.shape[-1]
    longest = max(_automatic_length(series) for series in values.reshape(-1, n))
    return int(min(np.ceil(2 * max(longest, np.cbrt(n))), max(n // 10, 1)))


def _automatic_length(series: np.ndarray) -> float:
    """Politis and White's length, ``(3 g^2 n / (2 s^2))^(1/3)``: ``s`` is the sum of the
    autocorrelations, ``g`` that by lag, tapered to 0 from the last significant lag ``m`` to ``2m``.
    """
    n, centred = len(series), series - series.mean()
    spread = centred @ centred
    if n < 10 or spread == 0:
        return 1.0
    limit, quiet = min(n // 2, int(3 * np.sqrt(n))), max(5, int(np.sqrt(np.log10(n))))
    spectrum = np.abs(np.fft.rfft(centred, 2 * n)) ** 2
    correlations = np.fft.irfft(spectrum)[: limit + 1] / spread
    significant = np.flatnonzero(np.abs(correlations) > 2 * np.sqrt(np.log10(n) / n))
    gaps = np.diff(np.append(significant, limit + quiet + 1)) > quiet
    last = significant[np.argmax(gaps)]
    if last == 0:
        return 1.0
    lags = np.arange(1, min(2 * last, limit) + 1)
    tapered = np.clip(2 * (1 - lags / (2 * last)), 0, 1) * correlations[lags]
    total = max(1 + 2 * np.sum(tapered), 0.1)
    return float(np.cbrt(1.5 * n * (2 * np.sum(lags * tapered) / total) ** 2))


def holm(p_values: Sequence[float]) -> Float[np.ndarray, " p"]:
    """P-values for all of some tests together, by Holm's method.

    Example:
        >>> holm([0.01, 0.04, 0.03]).tolist()
        [0.03, 0.06, 0.06]
    """
    each = np.asarray(p_values, float)
    order, adjusted = np.argsort(each), np.ones(len(each))
    stepped = (len(order) - np.arange(len(order))) * each[order]
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return adjusted


def mean_covariance(
    away: Float[np.ndarray, "k n"], weights: Float[np.ndarray, " n"], groups: Any = None
) -> Float[np.ndarray, "k k"]:
    """Covariance of weighted means over samples of records, or of groups, from deviations."""
    total, sums = max(float(weights.sum()), 2.0), weights * away
    if groups is None:
        return sums @ away.T / (total * (total - 1))
    sums = np.stack([np.bincount(groups, part) for part in sums])
    count = np.sum(np.bincount(groups, weights) > 0)
    return sums @ sums.T / total**2 * count / max(count - 1, 1)


def blocks(size: int, length: int) -> Int[np.ndarray, " n"]:
    """Groups of ``length`` consecutive records (the last block may be shorter).

    Example:
        >>> blocks(5, 2)
        array([0, 0, 1, 1, 2])
    """
    return np.arange(size) // length
