"""From pairs of reports to a ranking: values, confidence sets for ranks, and what each one keeps.

Every pair is judged at its own midpoint, so that no third report changes what is found of it; the
third reports only widen the simultaneous intervals. All statements hold together at the stated
confidence: errors of every pair are drawn at once from the normal law with the covariance of the
payoffs' differences (the multiplier bootstrap, in the limit of many records), and the largest of
them bounds all.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jgram.arrays import Array, ArrayLike, Bool, Float, Int, Key
from jgram.comparisons import Retention, retention, share_degrees, sign_test, student_quantile
from jgram.contrasts import Payoffs, pairs_of

__all__ = ["RankedPairs", "Ranks", "rank_pairs", "ranks_left"]


class RankedPairs(NamedTuple):
    """``k`` reports ranked from all their pairs.

    Attributes:
        values: ``[k]``, additive values ``s`` fitted to the differences of mean payoffs at the
            pairs' midpoints, in directions between classes; they sum to 0.
        standard_errors: ``[k]``, of the values.
        p_values: ``[k, k]``, of every pair, adjusted for all pairs (step-down); 1 on the diagonal.
        better: ``[k, k]``, whether report ``i`` is separated from, and better than, report ``j``.
        first_rank: ``[k]``, the lowest rank of the confidence set, 1 for the best.
        last_rank: ``[k]``, its highest rank.
        noise: ``[k]``, whether the report is inside the noise.
        most_reliable: ``[k]``, reports that none is separated from as a better one, without those
            inside the noise.
        best: Index of the report that shares are shares of: the highest value outside the noise.
        keeps: Shares of what the best one keeps (:class:`jgram.comparisons.Retention`, ``[k]``),
            simultaneous over reports and over the choice of the best.
    """

    values: Float[Array, " k"]
    standard_errors: Float[Array, " k"]
    p_values: Float[Array, "k k"]
    better: Bool[Array, "k k"]
    first_rank: Int[Array, " k"]
    last_rank: Int[Array, " k"]
    noise: Bool[Array, " k"]
    most_reliable: Bool[Array, " k"]
    best: Int[Array, ""]
    keeps: Retention


class Ranks(NamedTuple):
    """Ranks ``[k]`` that are left where some pairs have an order, the first and the last of each
    report, and whether none is better, of those that are not noise."""

    first: Int[Array, " k"]
    last: Int[Array, " k"]
    foremost: Bool[Array, " k"]


@jax.jit
def ranks_left(better: Bool[ArrayLike, "k k"], noise: Bool[ArrayLike, " k"]) -> Ranks:
    """:class:`Ranks`, where report ``i`` is better than report ``j`` as ``better[i, j]`` says.

    Example:
        >>> ranks_left(jnp.array([[False, True], [False, False]]), jnp.zeros(2, bool)).last.tolist()
        [1, 2]
    """
    better, noise = jnp.asarray(better), jnp.asarray(noise)
    first, last = 1 + better.sum(axis=0), len(better) - better.sum(axis=1)
    foremost = jnp.min(jnp.where(noise, len(better) + 1, first))
    return Ranks(first, last, ~noise & (first == foremost))


def rank_pairs(
    key: Key[ArrayLike, ""],
    pairs: Payoffs,
    noise_p_values: Float[ArrayLike, " k"],
    *,
    groups: Int[ArrayLike, " n"] | None = None,
    beyond: Float[ArrayLike, " p"] | float = 0.0,
    confidence: float = 0.95,
    draws: int = 10_000,
) -> RankedPairs:
    """Rank ``k`` reports from the payoffs of their pairs.

    Reports ``i`` and ``j`` are separated where their adjusted p-value is at most ``1 - confidence``
    and the better one's mean payoff is estimable (two reports of noise have no order, though unlike
    shares may tell them apart). The rank of ``i`` lies between one more than the number of reports
    separated above it and ``k`` less the number separated below.

    Args:
        key: A typed key; the only draws are ``draws`` normal vectors of one number a pair.
        pairs: :func:`jgram.contrasts.pair_payoffs`.
        noise_p_values: :func:`jgram.contrasts.noise_tests`; above ``1 - confidence``, a report is
            inside the noise.
        groups, beyond: Of all, and of every pair, as of :func:`jgram.comparisons.sign_test`.
        confidence: Of all intervals and sets together.

    Raises:
        ValueError: The number of pairs does not fit the number of reports.

    Reference:
        Mogstad, Romano, Shaikh and Wilhelm, *Inference for Ranks with Applications to Mobility
        across Neighbourhoods and Academic Achievement across Countries*, 2024.
    """
    noise = jnp.asarray(noise_p_values) > 1 - confidence
    k = len(noise)
    expected = k * (k - 1) // 2
    if pairs.means.shape[0] != expected:
        raise ValueError(
            f"expected payoffs of the {expected} pairs of {k} reports, got {pairs.means.shape[0]}"
        )
    groups = None if groups is None else jnp.asarray(groups)
    beyond = jnp.broadcast_to(beyond, (expected,))
    return _rank(key, pairs, noise, groups, beyond, confidence, draws)


@partial(jax.jit, static_argnames=("confidence", "draws"))
def _rank(key, pairs, noise, groups, beyond, confidence, draws) -> RankedPairs:
    k = noise.shape[0]
    first, second = pairs_of(k).T
    separation_key, share_key = jax.random.split(key)
    each = (pairs.differences, pairs.weights, groups, beyond)
    z = jax.vmap(sign_test, in_axes=(0, 0, None, 0))(*each)[0]
    factor = _normalised(_deviations(pairs.differences, pairs.weights, groups))
    p_pair = _adjusted(_draws(separation_key, factor, draws), jnp.abs(z))
    known = retention(pairs.means, pairs.covariance, 0.0).estimable
    swapped = retention(pairs.means[:, ::-1], pairs.covariance[:, ::-1, ::-1], 0.0).estimable
    separated = (p_pair <= 1 - confidence) & jnp.where(z > 0, known, swapped)
    none = jnp.zeros((k, k), bool)
    better = none.at[first, second].set(separated & (z > 0))
    better = better.at[second, first].set(separated & (z < 0))
    p_values = jnp.ones((k, k), z.dtype).at[first, second].set(p_pair).at[second, first].set(p_pair)
    ranks = ranks_left(better, noise)
    values, errors = _values(pairs, k, groups)
    best = jnp.argmax(jnp.where(noise, -jnp.inf, values))
    keeps = _keeps(share_key, pairs, k, best, groups, confidence, draws)
    found = values, errors, p_values, better, ranks.first, ranks.last, noise, ranks.foremost
    return RankedPairs(*found, best, keeps)


def _keeps(key: Any, pairs: Payoffs, k: int, best: Any, groups: Any, confidence: float, draws: int):
    """Shares of the best report, with one quantile for the shares of every pair: the normal law's,
    widened to Student's by what each pair's own standard error rests on."""
    one, two = pairs.means[:, :1], pairs.means[:, 1:]
    centred = pairs.values - pairs.means[:, :, None]
    shares = one * centred[:, 1] - two * centred[:, 0]  # the influence of a_2 / a_1, times a_1^2
    factor = _normalised(_deviations(shares, pairs.weights, groups))
    quantile = jnp.quantile(jnp.max(jnp.abs(_draws(key, factor, draws)), axis=1), confidence)
    degrees = share_degrees(pairs.values, pairs.means, pairs.weights, groups)
    first, second = pairs_of(k).T
    number, others = np.zeros((k, k), int), jnp.arange(k)
    number[first, second] = number[second, first] = np.arange(len(first))
    row = jnp.asarray(number)[best, others]
    means, covariance = pairs.means[row], pairs.covariance[row]
    turned = best > others
    means = jnp.where(turned[:, None], means[:, ::-1], means)
    covariance = jnp.where(turned[:, None, None], covariance[:, ::-1, ::-1], covariance)
    found = retention(means, covariance, student_quantile(quantile, degrees[row]))
    itself = (others == best) & jnp.any(found.estimable & (others != best))
    one = jnp.where(itself, 1.0, 0.0)
    own = Retention(one, one, jnp.where(itself, 1.0, jnp.inf), itself)
    return jax.tree.map(partial(jnp.where, others == best), own, found)


def _values(pairs: Payoffs, k: int, groups: Any):
    """Least squares of additive values, pairs weighted by their records, and standard errors."""
    signs = np.subtract(*np.eye(k)[pairs_of(k).T])
    totals = jnp.sum(pairs.weights, axis=1)
    weighted = totals[:, None] * signs
    fit = jnp.linalg.pinv(signs.T @ weighted) @ weighted.T
    gaps = pairs.means[:, 0] - pairs.means[:, 1]
    centred = pairs.values[:, 0] - pairs.values[:, 1] - gaps[:, None]
    deviations = _deviations(centred, pairs.weights, groups) / jnp.maximum(totals, 1)[:, None]
    return fit @ gaps, jnp.sqrt(jnp.sum((fit @ deviations) ** 2, axis=1))


def _deviations(values: Any, weights: Any, groups: Any):
    """``[pairs, n]`` whose inner products are the covariance of weighted sums of ``values``."""
    if groups is None:
        return jnp.sqrt(weights) * values  # every copy of a record on its own
    sums = jax.ops.segment_sum((weights * values).T, jnp.asarray(groups), values.shape[1])
    return sums.T


def _normalised(deviations: Any):
    """Rows of length 1 (or 0), so that the inner products are correlations."""
    lengths = jnp.sqrt(jnp.sum(deviations**2, axis=1, keepdims=True))
    return deviations / jnp.where(lengths > 0, lengths, 1.0)


def _draws(key: Any, rows: Any, draws: int):
    """Normal vectors ``[draws, pairs]`` with the rows' correlations."""
    values, vectors = jnp.linalg.eigh(rows @ rows.T)
    normal = jax.random.normal(key, (draws, rows.shape[0]), rows.dtype)
    return (normal * jnp.sqrt(jnp.maximum(values, 0.0))) @ vectors.T


def _adjusted(drawn: Any, found: Any):
    """Step-down p-values: the surest pair against the largest of all, the next of the rest."""
    order = jnp.argsort(-found)
    largest = jax.lax.cummax(jnp.abs(drawn)[:, order], axis=1, reverse=True)
    exceeded = (1 + jnp.sum(largest >= found[order], axis=0)) / (1 + drawn.shape[0])
    return jnp.zeros_like(found).at[order].set(jax.lax.cummax(exceeded))
